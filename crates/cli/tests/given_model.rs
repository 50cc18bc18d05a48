//! Studies of a model that exists already: a small random one of multilingual BERT's shape, with its real vocabulary.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

use crate::common::{Folder, done, ran, refused};

const HIDDEN: usize = 32;
const LAYERS: usize = 3;

/// Numbers that look random, the same every time.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| 0.2 * next()).collect()
}

/// Writes a Hugging Face folder of BERT's shape over a WordPiece vocabulary.
fn write_bert(folder: &Path, vocabulary: &Path) {
    fs::create_dir(folder).unwrap();
    fs::copy(vocabulary, folder.join("vocab.txt")).unwrap();
    fs::write(folder.join("tokenizer_config.json"), r#"{"do_lower_case": false}"#).unwrap();
    let entries = fs::read_to_string(vocabulary).unwrap().lines().count();
    let config = json!({
        "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": entries,
        "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": 2,
        "intermediate_size": 2 * HIDDEN, "max_position_embeddings": 128, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, "tie_word_embeddings": true, "pad_token_id": 0,
    });
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("bert.embeddings.word_embeddings.weight".into(), vec![entries, HIDDEN]),
        ("bert.embeddings.position_embeddings.weight".into(), vec![128, HIDDEN]),
        ("bert.embeddings.token_type_embeddings.weight".into(), vec![2, HIDDEN]),
        ("cls.predictions.bias".into(), vec![entries]),
    ];
    let mut norms = vec!["bert.embeddings".to_owned(), "cls.predictions.transform".to_owned()];
    let mut dense = vec![("cls.predictions.transform.dense".to_owned(), HIDDEN, HIDDEN)];
    for layer in 0..LAYERS {
        let at = format!("bert.encoder.layer.{layer}");
        for name in ["query", "key", "value"] {
            dense.push((format!("{at}.attention.self.{name}"), HIDDEN, HIDDEN));
        }
        dense.push((format!("{at}.attention.output.dense"), HIDDEN, HIDDEN));
        dense.push((format!("{at}.intermediate.dense"), 2 * HIDDEN, HIDDEN));
        dense.push((format!("{at}.output.dense"), HIDDEN, 2 * HIDDEN));
        norms.extend([format!("{at}.attention.output"), format!("{at}.output")]);
    }
    for (name, out, input) in dense {
        shapes.push((format!("{name}.weight"), vec![out, input]));
        shapes.push((format!("{name}.bias"), vec![out]));
    }
    let mut tensors: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
    for (number, (name, shape)) in shapes.into_iter().enumerate() {
        let values = noise(shape.iter().product(), number as u64 + 1);
        tensors.push((name, shape, values));
    }
    for name in norms {
        tensors.push((format!("{name}.LayerNorm.weight"), vec![HIDDEN], vec![1.0; HIDDEN]));
        tensors.push((format!("{name}.LayerNorm.bias"), vec![HIDDEN], vec![0.0; HIDDEN]));
    }
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape, values)| {
            (name, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (name.clone(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).unwrap();
}

/// Liu et al. 2020, §4, on a model that is given: Tables 1 to 4, Figures 7 and 8.
#[test]
fn language_shift_of_a_given_model() {
    let Some(data) = terms::tests::real_data() else { return };
    let folder: &Path = &Folder::new();
    write_bert(&folder.join("mbert"), &data.join("vocab/mbert_cased_vocab.txt"));
    let shown = data.display().to_string();
    let choice = format!(
        "language-shift --model mbert=mbert --languages en,de,fr --data {shown} --seeds 1 \
            --limit 12 --tasks nli --device cpu --transfer '--quick --limit 40 --epochs 1'"
    );
    let run = done(folder, &format!("study run {choice}"));
    assert!(run["run"].as_u64().unwrap() > 5, "{run}");
    let rows = done(folder, "results --study language-shift");
    let rows = rows["records"].as_array().unwrap();
    let levels = |measure: &str, factor: &str| -> BTreeSet<String> {
        let of = rows.iter().filter(|row| row["measure"] == measure);
        of.map(|row| row["factors"][factor].to_string()).collect()
    };
    let directions = ["de-en", "en-de", "en-fr", "fr-en"].map(|one| format!("\"{one}\""));
    assert_eq!(levels("bleu1", "direction"), directions.clone().into());
    assert_eq!(levels("conversion_rate", "layer"), ["1", "2", "3"].map(str::to_owned).into());
    assert_eq!(levels("masked_foreign_rate", "direction"), directions.into());
    assert_eq!(
        levels("subwords", "language"),
        ["\"de\"", "\"en\"", "\"fr\""].map(str::to_owned).into()
    );
    let scored = levels("accuracy", "row");
    assert_eq!(
        scored,
        ["\"all-layers\"", "\"last-n\"", "\"last-n-shift\""].map(str::to_owned).into()
    );
    // But for the sentences that all systems are measured on.
    let of_all = |row: &serde_json::Value| row["factors"]["of"] == "length (comparison)";
    assert!(rows.iter().any(of_all));
    assert!(rows.iter().all(|row| of_all(row) || row["factors"]["system"] == "mbert"));
    let used = rows.iter().find(|row| row["measure"] == "used" && row["factors"]["of"] == "shift");
    assert_eq!(used.unwrap()["value"], 12.0);

    // A study that cannot be asked of the model says why, and what is missing is said.
    let [text, _] = ran(folder, &format!("study plan {choice}").replace("en,de,fr", "en,de,el"));
    assert!(text.contains("skipped: el: there is no") && text.contains("dev-el.tsv"), "{text}");
    assert!(text.contains("shift, en-de"), "{text}");
    let report = done(folder, "report --out page.html");
    assert!(folder.join("page.html").is_file(), "{report}");
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("mbert"), "the page says which model");
}

/// A single command records its result where studies do.
#[test]
fn the_result_of_a_command_is_recorded() {
    let folder: &Path = &Folder::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    let model = fixture.display().to_string();
    fs::write(folder.join("a.txt"), "the cat\nle chat sur\n42 cat\n").unwrap();
    fs::write(folder.join("b.txt"), "le chat\nthe cat\n42 chat\n").unwrap();
    let retrieve = format!(
        "retrieve --model {model} --parallel en=a.txt --parallel fr=b.txt --record-in lab \
            --factor system=tiny-bert"
    );
    for _ in 0..2 {
        done(folder, &retrieve);
    }
    let rows = done(folder, "results --measure retrieval");
    let rows = rows["records"].as_array().unwrap();
    // Three layers, raw and centred; the second run replaced the first.
    assert_eq!(rows.len(), 6, "{rows:?}");
    assert!(rows.iter().all(|row| row["factors"]["system"] == "tiny-bert"));
    assert!(rows.iter().all(|row| row["factors"]["pair"] == "en-fr"));
    let command = rows[0]["origin"]["command"].as_str().unwrap();
    assert!(command.starts_with("isogloss retrieve ") && !command.contains("record"), "{command}");

    let add = "results add --measure accuracy --value 0.5 --factor task=nli";
    refused(folder, &add, 2, "--command");
    done(folder, &format!("{add} --command 'python eval.py' --seed 3"));
    let rows = done(folder, "results --measure accuracy");
    let row = &rows["records"][0];
    assert_eq!((row["value"].as_f64(), row["origin"]["seed"].as_u64()), (Some(0.5), Some(3)));
    assert_eq!(row["origin"]["command"], "python eval.py");
    refused(folder, &format!("retrieve --model {model} --factor a=b"), 2, "--record-in");
}
