//! MeanVectors, shifts and token translation on a small model, held against plain computations.

use std::path::Path;

use encoder::Request;
use models::PretrainedModel;
use models::parallel::ParallelSide;
use shift::bleu::{Bleu, References};
use shift::masked::masked_predictions;
use shift::means::{MeanVectors, compute};
use shift::shifter::{ShiftKind, Shifter};
use shift::token_sets::TokenSets;
use shift::translate::{
    DirectionSweep, GoldTranslations, ShiftDirection, SweepGrid, readable_pairs, sweep, translate,
};
use shift::{CLASSES, ParallelTokens, SweepCheckpoint, tokenize_parallel};
use tempfile::TempDir;
use tensor::{Device, Mode, Tape};
use text::{Corpus, LineRules, Selection, TextSource};
use train::pretrain::{Observer, RunRequest, begin};

struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, _: u64, _: u64, _: &str) {}
    fn stop(&self) -> bool {
        false
    }
}

/// Sentences of two languages that share the word `no`; line by line translations. Line n + 33 is line n.
fn line(number: usize, suffix: &str) -> String {
    let word = |place: usize| match (number * 7 + place * 3) % 11 {
        0 => "no".to_owned(),
        other => format!("w{other}{suffix}"),
    };
    (0..4 + number % 3).map(word).collect::<Vec<_>>().join(" ")
}

/// A folder with text of two languages and a run on it.
fn run(extra: &str) -> (TempDir, Device) {
    let folder = TempDir::new().unwrap();
    for (language, suffix) in [("aa", "a"), ("bb", "b")] {
        let lines: Vec<String> = (0..300).map(|number| line(number, suffix)).collect();
        std::fs::write(folder.path().join(language), lines.join("\n") + "\n").unwrap();
    }
    let file = |name: &str| folder.path().join(name).display().to_string();
    let text = format!(
        "steps = 30\nlanguages = [\"aa\", \"bb\"]\n[files]\naa = [{:?}]\nbb = [{:?}]\n[text]\n\
         prepared = true\ndev = 20\n[vocabulary]\nmerges = 60\n{extra}",
        file("aa"),
        file("bb")
    );
    let request = RunRequest { keys: text.parse().unwrap(), ..RunRequest::default() };
    let config = request.config().unwrap();
    let device = Device::cpu(2).unwrap();
    begin(&config, &folder.path().join("run"), false, &device, None, &mut Silent).unwrap();
    (folder, device)
}

fn corpus(model: &PretrainedModel, folder: &Path, language: &str) -> Corpus {
    let number = model.vocabulary.language(language).unwrap();
    Corpus {
        source: TextSource::new(language, &[folder.join(language).display().to_string()]).unwrap(),
        preparer: model.vocabulary.preparer(number).clone(),
        rules: LineRules::default(),
        selection: Selection::default(),
    }
}

/// The model of the run, and the means of its languages.
fn opened(folder: &Path, device: &Device) -> (PretrainedModel, MeanVectors) {
    let mut model = PretrainedModel::open(&folder.join("run"), device).unwrap();
    let corpora = ["aa", "bb"].map(|language| corpus(&model, folder, language));
    let means = compute(&mut model, &corpora, &mut |_, _| {}).unwrap();
    (model, means)
}

/// From the first language to the second, with the token sets of the means' text.
fn first_to_second(means: &MeanVectors) -> ShiftDirection<'_> {
    ShiftDirection::new(means, &TokenSets::of_means(means), "aa", "bb").unwrap()
}

#[test]
fn means_are_means() {
    let (folder, device) = run("");
    let (mut model, means) = opened(folder.path(), &device);
    let dim = means.dim();
    let (before, after) = model.vocabulary.bos_eos();
    // One sentence at a time, in another precision and order.
    let mut sums = vec![vec![0.0f64; dim]; 5];
    let mut count = 0;
    for number in 0..300 {
        let mut ids = vec![before];
        model.vocabulary.encoder(1).encode(&line(number, "b"), &mut ids);
        ids.push(after);
        let batch = model.batch(1, [ids.as_slice()]);
        let mut tape = Tape::new(&mut model.params, Mode::Evaluate);
        let encoded = model.encoder.encode(&mut tape, &batch, Request::default());
        for (sum, &hidden) in sums.iter_mut().zip(&encoded.hidden) {
            let states = tape.value(hidden).to_vec();
            for row in 1..ids.len() - 1 {
                for (sum, x) in sum.iter_mut().zip(&states[row * dim..]) {
                    *sum += f64::from(*x);
                }
            }
        }
        count += ids.len() as u64 - 2;
    }
    let language = &means.languages[1];
    assert_eq!(language.counts[0], count);
    for (layer, sum) in language.layers.iter().zip(&sums) {
        for (mean, sum) in layer.iter().zip(sum) {
            assert!((f64::from(*mean) - sum / count as f64).abs() < 1e-5);
        }
    }
    // Classes make up the whole, and the shared word is seen as such.
    let [all, own, shared, bands @ ..] = language.counts;
    assert_eq!((own + shared, bands.iter().sum::<u64>()), (all, all));
    assert!(shared > 0 && own > shared, "{:?}", CLASSES.iter().zip(language.counts));
    let whole = |place: usize| {
        let part = |class: usize| {
            f64::from(language.layers[2][class * dim + place]) * language.counts[class] as f64
        };
        (part(1) + part(2)) / all as f64
    };
    assert!(
        (0..dim).all(|place| (whole(place) - f64::from(language.layers[2][place])).abs() < 1e-5)
    );
}

/// Directions are taken from the first 50,000 states, and what comes later has no part in them.
#[test]
fn directions_are_those_of_one_and_the_same_text() {
    let (folder, device) = run("");
    let text = (0..10_800).map(|number| line(number, "a") + "\n").collect::<String>();
    let of = |text: &str| {
        std::fs::write(folder.path().join("aa"), text).unwrap();
        opened(folder.path(), &device).1
    };
    let (short, long) = (of(&text), of(&(text.clone() + &"no no no no\n".repeat(1_000))));
    let [begun, all] = [&short, &long].map(|means| means.languages[0].counts[0]);
    assert!(begun > 53_000 && all > begun, "{begun} {all}");
    assert_ne!(short.languages[0].layers, long.languages[0].layers);
    assert_eq!(short.directions, long.directions);
}

#[test]
fn a_file_of_means_comes_back_and_fits_its_model_alone() {
    let (folder, device) = run("");
    let (model, means) = opened(folder.path(), &device);
    let path = folder.path().join("means");
    means.save(&path, &device).unwrap();
    let again = MeanVectors::open(&path, &model).unwrap();
    assert_eq!(again.directions, means.directions);
    for (a, b) in again.languages.iter().zip(&means.languages) {
        assert_eq!((&a.name, a.counts, &a.layers), (&b.name, b.counts, &b.layers));
        assert_eq!((&a.errors, &a.subwords), (&b.errors, &b.subwords));
    }
    let (other, device) = run("[encoder]\nlayers = 2\n");
    let other = PretrainedModel::open(&other.path().join("run"), &device).unwrap();
    let error = MeanVectors::open(&path, &other).unwrap_err().to_string();
    assert!(error.contains("mean vectors of another model"), "{error}");
}

#[test]
fn there_and_back_are_opposite_and_nothing_added_is_the_plain_model() {
    let (folder, device) = run("");
    let (mut model, means) = opened(folder.path(), &device);
    for kind in [ShiftKind::Mean, ShiftKind::Without(2)] {
        let there = Shifter::new(&means, 0, 1, 3, kind).unwrap();
        let back = Shifter::new(&means, 1, 0, 3, kind).unwrap();
        for (a, b) in there.vector(7).iter().zip(back.vector(7)) {
            assert!((a + b).abs() < 1e-6, "{a} {b}");
        }
    }
    // The layers above a layer, run on its states, give what the whole model gives.
    let ids: Vec<u32> = (0..9).collect();
    let batch = model.batch(0, [ids.as_slice()]);
    for layer in 0..=4 {
        let mut tape = Tape::new(&mut model.params, Mode::Evaluate);
        let encoded = model.encoder.encode(&mut tape, &batch, Request::default());
        let states = tape.value(encoded.hidden[layer]).to_vec();
        let whole = tape.value(encoded.output).to_vec();
        let states = device.tensor(ids.len(), means.dim(), &states);
        let mut tape = Tape::new(&mut model.params, Mode::Evaluate);
        let request = Request::default();
        let upper = model.encoder.encode_from(&mut tape, &batch, layer, states, request);
        assert_eq!(tape.value(upper.output).to_vec(), whole, "layer {layer}");
    }
    let direction = first_to_second(&means);
    let sentence = line(3, "a");
    let mut say = |layer, alphas: &[f32]| {
        translate(&mut model, &direction, layer, ShiftKind::Mean, alphas, &sentence).unwrap()
    };
    let plain = say(1, &[0.0]);
    assert_eq!(plain[0].subwords, say(4, &[0.0, -1.0])[0].subwords);
    assert_eq!(plain[0].subwords.len(), say(2, &[5.0])[0].subwords.len());
}

#[test]
fn a_sweep_says_what_each_setting_says_by_itself() {
    let (folder, device) = run("");
    let (mut model, means) = opened(folder.path(), &device);
    let sides = ["aa", "bb"].map(|language| {
        let file = folder.path().join(language).display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let (language, lines) = (language.to_owned(), text.lines().map(str::to_owned).collect());
        ParallelSide::new(&language, &file, lines)
    });
    let text = tokenize_parallel(&model, &sides, 1000).unwrap();
    let direction = first_to_second(&means);
    let grid =
        SweepGrid { layers: &[1, 4], alphas: &[0.0, 2.0, -2.0], kind: ShiftKind::Mean, seed: 1 };
    let words: Vec<(String, String)> =
        (1..11).map(|number| (format!("w{number}a"), format!("w{number}b"))).collect();
    let pairs = words.iter().map(|(a, b)| (a.as_str(), b.as_str()));
    let gold = GoldTranslations::new(&model, "aa", "bb", pairs).unwrap();
    assert!(!gold.is_empty());
    let swept = sweep(&mut model, &direction, &grid, (&text, [0, 1]), &gold, None, &mut |_| true);
    let swept = swept.unwrap().unwrap();
    assert_eq!((swept.cells.len(), swept.rows, swept.repeated, swept.used), (6, 300, 267, 33));
    // At least one token of each sentence is masked, and about 15 % of all.
    let sources: Vec<&[u32]> =
        readable_pairs(&text, [0, 1]).into_iter().map(|pair| pair.0).collect();
    let tokens: usize = sources.iter().map(|ids| ids.len() - 2).sum();
    let masked = masked_predictions(&mut model, &direction, &sources, 1).unwrap();
    assert!((33..tokens as u64 / 3).contains(&masked.positions), "{masked:?} of {tokens}");
    assert!(masked.own_rate + masked.foreign_rate <= 1.0, "{masked:?}");
    assert_eq!(masked_predictions(&mut model, &direction, &sources, 1).unwrap(), masked);
    assert_ne!(masked_predictions(&mut model, &direction, &sources, 2).unwrap(), masked);
    let stopped =
        sweep(&mut model, &direction, &grid, (&text, [0, 1]), &gold, None, &mut |_| false);
    assert_eq!(stopped.unwrap(), None);
    a_stopped_sweep_is_continued(&mut model, &direction, &grid, &text, &gold, &swept);
    // By hand, from what is printed sentence by sentence.
    for cell in &swept.cells {
        let (mut converted, mut counted) = (0, 0);
        for number in 0..33 {
            let alphas = [cell.alpha];
            let sentence = line(number, "a");
            let printed =
                translate(&mut model, &direction, cell.layer, ShiftKind::Mean, &alphas, &sentence);
            let printed = &printed.unwrap()[0];
            for piece in &printed.subwords {
                converted += u32::from(piece.target && !piece.source);
                counted += u32::from(!piece.target || !piece.source);
            }
        }
        assert_eq!(cell.conversion_rate, Some(f64::from(converted) / f64::from(counted)));
    }
    let separate = run("[encoder]\nseparate = \"embeddings\"\n").0;
    let mut model = PretrainedModel::open(&separate.path().join("run"), &device).unwrap();
    let corpora = ["aa", "bb"].map(|language| corpus(&model, separate.path(), language));
    let means = compute(&mut model, &corpora, &mut |_, _| {}).unwrap();
    let direction = first_to_second(&means);
    let refused = translate(&mut model, &direction, 1, ShiftKind::Mean, &[1.0], "w1a");
    assert!(refused.unwrap_err().to_string().contains("separate embeddings"));
}

/// Stopped after its first batch and asked for again, a sweep goes on there and comes to the same counts; asked for
/// once more, it runs nothing. Other weights are another sweep, and a damaged file is not used.
fn a_stopped_sweep_is_continued(
    model: &mut PretrainedModel,
    direction: &ShiftDirection<'_>,
    grid: &SweepGrid<'_>,
    text: &ParallelTokens,
    gold: &GoldTranslations,
    whole: &DirectionSweep,
) {
    let work = tempfile::tempdir().unwrap();
    let mut attempt = |grid: &SweepGrid<'_>, batches: usize| {
        let (mut notes, mut seen) = (Vec::new(), Vec::new());
        let mut note = |text: &str| notes.push(text.to_owned());
        let mut checkpoint = SweepCheckpoint::new(work.path(), &mut note);
        let swept = sweep(
            model,
            direction,
            grid,
            (text, [0, 1]),
            gold,
            Some(&mut checkpoint),
            &mut |done| {
                seen.push(done);
                seen.len() < batches
            },
        );
        (swept.unwrap(), seen, notes.join(" "))
    };
    // All 33 sentences are one batch.
    assert_eq!(attempt(grid, 1), (None, vec![33], String::new()));
    let (again, seen, note) = attempt(grid, 9);
    assert_eq!((again.as_ref(), seen), (Some(whole), vec![33]));
    assert!(note.contains("continuing after 33 sentences"), "{note}");
    let other = SweepGrid { alphas: &[0.0, 2.0, -1.0], ..*grid };
    assert_eq!(attempt(&other, 9).2, "");
    for file in std::fs::read_dir(work.path()).unwrap() {
        let path = file.unwrap().path();
        let text =
            std::fs::read_to_string(&path).unwrap().replacen("\"done\":33", "\"done\":32", 1);
        std::fs::write(path, text).unwrap();
    }
    let (again, _, note) = attempt(grid, 9);
    assert_eq!(again.as_ref(), Some(whole));
    assert!(note.contains("is damaged"), "{note}");
}

/// Every reference stands in for that of another sentence of like length, as often as any other, and none for its own.
#[test]
fn references_are_permuted_among_sentences_of_like_length() {
    // Each reference is a word of its own, as often as it is long.
    let sentences: Vec<Vec<u32>> =
        (0..40_u32).map(|number| vec![number; 3 + number as usize * 7 % 20]).collect();
    let of = |seed| References::new(sentences.iter().map(Vec::as_slice), seed);
    let references = of(1);
    let stands_in = |references: &References, word: usize| -> Vec<usize> {
        let is = |sentence: &usize| references.score(*sentence, &[word as u32]).permuted.right > 0;
        (0..40).filter(is).collect()
    };
    for (number, own) in sentences.iter().enumerate() {
        let found = references.score(number, own);
        assert_eq!(found.own.score(), 1.0);
        assert_eq!(found.permuted.right, 0);
        let others = stands_in(&references, number);
        assert_eq!(others.len(), 5, "{number}: {others:?}");
        assert!(others.iter().all(|&other| sentences[other].len().abs_diff(own.len()) <= 6));
    }
    let all = |seed| (0..40).map(|word| stands_in(&of(seed), word)).collect::<Vec<_>>();
    assert_eq!(all(1), all(1));
    assert_ne!(all(1), all(2));
    // The words 0, 1, 2, … for every sentence: right once about every reference that is no longer than its own word's place.
    let words: Vec<u32> = (0..40).collect();
    let constant = references.constant(&words, sentences.iter().map(Vec::len));
    let right = sentences.iter().filter(|one| (one[0] as usize) < one.len()).count();
    assert_eq!(constant.right, right as u64);
    // One sentence has no other to stand in for it.
    let alone = References::new([&sentences[0][..]], 1).score(0, &sentences[0]);
    assert_eq!((alone.own.score(), alone.permuted.output), (1.0, 0));
}

#[test]
fn bleu_is_that_of_sacrebleu() {
    let numbers = |text: &str| text.split(',').map(|id| id.parse().unwrap()).collect::<Vec<u32>>();
    let mut checked = 0;
    for row in include_str!("fixtures/bleu.tsv").lines() {
        let (score, corpus) = row.split_once('\t').unwrap();
        let mut bleu = Bleu::default();
        for pair in corpus.split(';') {
            let (printed, reference) = pair.split_once('|').unwrap();
            bleu.add(&numbers(printed), &numbers(reference));
        }
        let score: f64 = score.parse().unwrap();
        assert!((100.0 * bleu.score() - score).abs() < 1e-9, "{row}: {}", bleu.score());
        checked += 1;
    }
    assert_eq!(checked, 2000);
}

/// The head of a decoder predicts the next token, so what stands at a place is decoded from the row before it; without a special token
/// before a text, its first token has no such row. An output that is off by one, or a `<bos>` too many, is another.
#[test]
fn a_decoder_is_decoded_at_the_row_before() {
    let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures");
    let folder = TempDir::new().unwrap();
    for (language, text) in [("aa", "the cat sat\n"), ("bb", "le chat\n")] {
        std::fs::write(folder.path().join(language), text.repeat(9)).unwrap();
    }
    for (name, framed) in [("llama", true), ("gpt2", false)] {
        let mut model = PretrainedModel::open(&hub.join(name), &Device::cpu(1).unwrap()).unwrap();
        assert!(model.predicts_next && !model.has_mlm_head);
        let corpora = ["aa", "bb"].map(|language| corpus(&model, folder.path(), language));
        let means = compute(&mut model, &corpora, &mut |_, _| {}).unwrap();
        let direction = first_to_second(&means);
        let sentence = "the cat sat on";
        let alphas = [0.0, 0.5];
        let kind = ShiftKind::Mean;
        let found = translate(&mut model, &direction, 1, kind, &alphas, sentence).unwrap();
        let ids = model.reader("aa").unwrap().sentence(sentence).ids;
        let batch = model.batch(0, [ids.as_slice()]);
        let mut tape = Tape::new(&mut model.params, Mode::Evaluate);
        let encoded = model.encoder.encode(&mut tape, &batch, Request::default());
        let best = model.encoder.best_tokens(&mut tape, 0, encoded.output, 1);
        // The last row predicts what comes after the text.
        let expected = &best[..best.len() - 1];
        assert_eq!(expected.len(), ids.len() - 1);
        let own = model.vocabulary.frame().within(0..ids.len()).len();
        assert_eq!(expected.len(), if framed { own } else { own - 1 });
        let texts: Vec<String> = expected
            .iter()
            .map(|&id| match model.vocabulary.subword(id).unwrap() {
                special if special.starts_with('<') => special.to_owned(),
                subword => format!("{subword}-"),
            })
            .collect();
        let ours: Vec<&str> = found[0].subwords.iter().map(|subword| &*subword.text).collect();
        assert_eq!(ours, texts, "{name}");
        assert_eq!(found[1].subwords.len(), texts.len());
        // A sweep over the same text goes through, and predicts no masked tokens.
        let sides = [("aa", "the cat sat"), ("bb", "le chat")]
            .map(|(language, line)| ParallelSide::new(language, language, vec![line.to_owned()]));
        let text = tokenize_parallel(&model, &sides, 9).unwrap();
        let grid = SweepGrid { layers: &[0, 1, 2], alphas: &alphas, kind, seed: 1 };
        let gold = GoldTranslations::default();
        let swept =
            sweep(&mut model, &direction, &grid, (&text, [0, 1]), &gold, None, &mut |_| true);
        assert_eq!(swept.unwrap().unwrap().cells.len(), 6);
        let error = masked_predictions(&mut model, &direction, &[&ids], 1).unwrap_err();
        assert!(error.to_string().contains("no masked"), "{error}");
    }
}
