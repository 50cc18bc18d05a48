//! Vectors of sentences as sentence-transformers makes them (`fixtures/sentences/make.py`), and states that were saved.

use std::fs;
use std::path::{Path, PathBuf};

use models::parallel::ParallelSide;
use models::sentences::{EncodeConfig, encode, mean_vectors};
use models::states::Pooling;
use models::{OpenError, PretrainedModel};
use serde::Deserialize;
use tensor::Device;
use text::TsvColumns;

/// What sentence-transformers made.
#[derive(Deserialize)]
struct Expected {
    /// The fixture of `hub`.
    model: String,
    prompt: Option<String>,
    text: Vec<String>,
    vectors: Vec<Vec<f32>>,
}

fn device() -> Device {
    Device::cpu(1).unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sentences").join(name)
}

fn of_hub(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures").join(name)
}

/// Puts the files of a folder, and of the folders in it, into another.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => _ = fs::copy(entry.path(), target).unwrap(),
        }
    }
}

/// A model with the files of sentence-transformers beside it.
fn sentence_model(name: &str) -> (tempfile::TempDir, Expected) {
    let text = fs::read_to_string(fixture(name).join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(&of_hub(&expected.model), folder.path());
    copy(&fixture(name), folder.path());
    (folder, expected)
}

fn last_layer(model: &mut PretrainedModel, text: &[String]) -> Vec<Vec<f32>> {
    let side = ParallelSide::new("en", "text", text.to_vec());
    let last = model.encoder.config().layers;
    let (mut matrices, _) = mean_vectors(model, &side, &[last]).unwrap();
    matrices.remove(0).iter().map(<[f32]>::to_vec).collect()
}

/// The largest difference, as a share of the largest number.
fn distance(ours: &[Vec<f32>], theirs: &[Vec<f32>]) -> f32 {
    let [ours, theirs] = [ours, theirs].map(<[_]>::concat);
    assert_eq!(ours.len(), theirs.len());
    let largest = theirs.iter().fold(0f32, |most, x| most.max(x.abs()));
    ours.iter().zip(&theirs).fold(0f32, |most, (a, b)| most.max((a - b).abs())) / largest
}

#[test]
fn every_way_of_pooling_is_that_of_sentence_transformers() {
    let names = fs::read_dir(fixture("")).unwrap().map(|entry| entry.unwrap().path());
    let mut plain = 0;
    for path in names.filter(|path| path.is_dir()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (folder, expected) = sentence_model(name);
        let mut model = PretrainedModel::open(folder.path(), &device()).unwrap();
        let untold = last_layer(&mut model, &expected.text);
        model.set_sentence_vectors(None, expected.prompt.as_deref()).unwrap();
        let ours = last_layer(&mut model, &expected.text);
        let far = distance(&ours, &expected.vectors);
        assert!(far <= 1e-5, "{name}: {far:.1e}");
        // The mean of a sentence's own tokens is another vector.
        plain += usize::from(ours[0].len() == untold[0].len() && distance(&ours, &untold) < 1e-3);
    }
    assert_eq!(plain, 0);
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let open = |folder: &Path| {
        let mut model = PretrainedModel::open(folder, &device()).unwrap();
        model.set_sentence_vectors(None, None).unwrap_err().to_string()
    };
    let error = open(&of_hub("bert"));
    assert!(error.contains("no modules.json") && error.contains("--pool"), "{error}");
    let altered = |file: &str, from: &str, to: &str| {
        let (folder, _) = sentence_model("several");
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
        open(folder.path())
    };
    for (file, from, to, reason) in [
        ("modules.json", "dense.Dense", "cnn.CNN", "`CNN`"),
        ("modules.json", "2_Dense", "../2_Dense", "no folder of its own"),
        ("1_Pooling/config.json", "\"mean\"", "\"median\"", "1_Pooling/config.json"),
        ("2_Dense/config.json", "Tanh", "Softsign", "`Softsign`"),
        ("2_Dense/config.json", "24", "25", "reads 25 columns where there are 24"),
    ] {
        let error = altered(file, from, to);
        assert!(error.contains(reason), "{error}");
    }
}

/// all-MiniLM-L6-v2, whose vectors `minilm.json` has as sentence-transformers makes them, where `ISOGLOSS_MODELS` holds it.
#[test]
fn vectors_of_minilm_are_those_of_sentence_transformers() {
    const NAME: &str = "all-MiniLM-L6-v2";
    let folder = std::env::var_os("ISOGLOSS_MODELS").map(|folder| Path::new(&folder).join(NAME));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        return terms::tests::left_out(&format!("{NAME}, which is not in $ISOGLOSS_MODELS"));
    };
    let text = fs::read_to_string(fixture("minilm.json")).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    let mut model = PretrainedModel::open(&folder, &device()).unwrap();
    model.set_sentence_vectors(None, None).unwrap();
    let ours = last_layer(&mut model, &expected.text);
    for ((ours, theirs), text) in ours.iter().zip(&expected.vectors).zip(&expected.text) {
        // The first columns are kept; the length of the whole is 1.
        let length: f32 = ours.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-5, "{text}");
        let far = distance(&[ours[..theirs.len()].to_vec()], std::slice::from_ref(theirs));
        assert!(far < 1e-4, "{text}: {far:.1e}");
    }
}

/// Saves the states of two languages' sentences, and says what the sentences are.
fn saved(folder: &Path, model: &mut PretrainedModel, pooling: Pooling) -> [Vec<String>; 2] {
    let texts = [["the cat sat", "a  mat"], ["le chat", "un tapis"]];
    let texts = texts.map(|lines| lines.map(str::to_owned).to_vec());
    let files = ["en", "fr"].into_iter().zip(&texts).map(|(language, lines)| {
        let file = folder.join(language);
        fs::write(&file, lines.join("\n")).unwrap();
        (language.to_owned(), vec![file.display().to_string()])
    });
    model.set_sentence_vectors(Some(pooling), None).unwrap();
    let config = EncodeConfig {
        texts: files.collect(),
        columns: TsvColumns::default(),
        layers: (0..=model.encoder.config().layers).collect(),
        out: folder.join("states"),
        folder: true,
        force: true,
        lengths: None,
    };
    encode(model, &config, |_, _| {}).unwrap();
    model.set_sentence_vectors(Some(Pooling::Mean), None).unwrap();
    texts
}

#[test]
fn saved_states_stand_for_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = PretrainedModel::open(&of_hub("bert"), &device()).unwrap();
    for pooling in [Pooling::None, Pooling::Mean] {
        let texts = saved(folder.path(), &mut model, pooling);
        let place = folder.path().join("states");
        let mut states = PretrainedModel::open_states(&place, &device()).unwrap();
        let config = states.encoder.config();
        assert_eq!((config.layers, config.dim), (2, model.encoder.config().dim));
        assert_eq!(config.languages, ["en", "fr"]);
        for (language, lines) in ["en", "fr"].into_iter().zip(&texts) {
            let side = ParallelSide::new(language, "text", lines.clone());
            let [ours, theirs] = [&mut states, &mut model]
                .map(|model| mean_vectors(model, &side, &[0, 1, 2]).unwrap().0);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                let rows = |matrix: &arrays::Matrix| -> Vec<Vec<f32>> {
                    matrix.iter().map(<[f32]>::to_vec).collect()
                };
                assert!(distance(&rows(ours), &rows(theirs)) < 1e-6, "{pooling:?}");
            }
            // Words are those between spaces, where the rows are tokens.
            let split: Vec<&str> = lines[0].split_whitespace().collect();
            let words = states.sentences(language).unwrap().words(&split);
            let expected = model.sentences(language).unwrap().words(&split).unwrap();
            match pooling {
                Pooling::None => assert_eq!(words.unwrap().firsts, expected.firsts),
                _ => assert!(words.unwrap_err().to_string().contains("give `words`")),
            }
        }
        let mut reader = states.sentences("en").unwrap();
        assert_eq!(reader.sentence(" a mat ").unwrap(), reader.sentence("a  mat").unwrap());
        let error = reader.sentence("a dog").unwrap_err().to_string();
        assert!(error.contains("no states of `a dog` in en"), "{error}");
        assert!(states.sentences("de").is_err());
        let error = PretrainedModel::open(&place, &device()).err().unwrap();
        assert!(matches!(error, OpenError::StatesAlone(_)), "{error}");
    }
}

#[test]
fn states_that_do_not_fit_their_sentences_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = PretrainedModel::open(&of_hub("bert"), &device()).unwrap();
    saved(folder.path(), &mut model, Pooling::None);
    let place = folder.path().join("states");
    let path = place.join("sentences.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let line = whole.lines().next().unwrap();
    for (text, reason) in [
        (whole.replacen(line, "", 1), "sentences.jsonl:1"),
        (whole.replace(&format!("{line}\n"), ""), "rows, and"),
        (whole.replacen("\"words\":[0", "\"words\":[0,0", 1), "`words`"),
        (whole.replacen("\"lang\":\"en\"", "\"lang\":\"\"", 1), "sentences.jsonl:1"),
        (format!("{whole}{{\"lang\":\"en\",\"text\":\"x\",\"length\":0}}\n"), "0 rows"),
    ] {
        fs::write(&path, text).unwrap();
        let error = PretrainedModel::open_states(&place, &device()).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
