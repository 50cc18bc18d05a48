//! `isogloss pretrain` with a vocabulary that was made beforehand: its text is prepared as the vocabulary's
//! was, whatever way that is.

mod common;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Folder, done, json, refused};

const TEXTS: &str = "--text en=en.txt --text zh=zh.txt";

/// A folder with English of capitals and accents, traditional Chinese, and a table to simplify it by.
fn place() -> Folder {
    let folder = Folder::new();
    let lines = |line: fn(u32) -> String| (0..300).map(line).collect::<String>();
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    write("en.txt", lines(|n| format!("Mr. Smith didn't see Anna {n}. The café, you know!\n")));
    write("zh.txt", lines(|n| format!("我來到中國北京 {n}。今天天氣很好！\n")));
    write("table.tsv", "國\t国\n來\t来\n".to_owned());
    write(
        "pieces.txt",
        pieces("MrSmithdn'seAcféyouknw.,!0123456789我來到中國北京今天天氣很好。！"),
    );
    folder
}

/// A list of word pieces: these characters, at the start of a word and within one.
fn pieces(characters: &str) -> String {
    let mut pieces: Vec<String> =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).into();
    for character in characters.chars() {
        let both = [character.to_string(), format!("##{character}")];
        pieces.extend(both.into_iter().filter(|piece| !pieces.contains(piece)).collect::<Vec<_>>());
    }
    pieces.join("\n") + "\n"
}

/// What each language of a run's vocabulary has done to its text.
fn preparations(run: &Path) -> Vec<Value> {
    let manifest = json(&run.join("vocabulary/vocabulary.json"));
    let languages = manifest["languages"].as_array().unwrap();
    languages.iter().map(|language| language["preparation"].clone()).collect()
}

/// Lets a run that is done want more updates.
fn lengthen(run: &Path) {
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).unwrap().replace("\nsteps = 2\n", "\nsteps = 4\n");
    // Without its last line, the digest, a configuration that was altered is taken as it is.
    fs::write(&config, text.trim_end().rsplit_once('\n').unwrap().0).unwrap();
}

const SHORT: &str = "--steps 2 --adam.schedule.total 4 --text.dev 20";

/// A run reads the very tokens that `corpus prepare` makes of its text, in every way of preparing it.
#[test]
fn text_is_prepared_as_the_vocabulary_says() {
    let folder: &Path = &place();
    for (name, flags) in [
        ("bert", "--kind wordpiece --subwords pieces.txt"),
        ("small", "--merges 60 --lowercase --strip-accents --simplify table.tsv"),
        ("lines", "--kind union --merges 40 --tokenizer whitespace --lines"),
    ] {
        done(folder, &format!("vocab train --out {name} {TEXTS} {flags}"));
        let run = format!("run-{name}");
        done(folder, &format!("pretrain --vocabulary.folder {name} --out {run} {TEXTS} {SHORT}"));
        let shelf = folder.join(&run).join("corpora");
        let prepare = format!("corpus prepare --vocab {name} --out corpora --seed 1");
        let made = done(folder, &format!("{prepare} {TEXTS} --dev 20"));
        for corpus in made["corpora"].as_array().unwrap() {
            let made = folder.join(corpus["folder"].as_str().unwrap());
            let read = shelf.join(made.file_name().unwrap());
            assert!(read.is_dir(), "{name}: {} is not in {}", made.display(), shelf.display());
            assert!(corpus["unknown"].as_f64().unwrap() < 0.2, "{name}: {corpus}");
        }
        assert_eq!(fs::read_dir(&shelf).unwrap().count(), 2, "{name}");
        let config = fs::read_to_string(folder.join(&run).join("config.toml")).unwrap();
        assert!(!config.contains("merges"), "{name} learned nothing: {config}");
    }
}

/// A list of WordPiece subwords needs no folder made of it first: the run reads the same tokens, cased, as
/// with the folder that `vocab train` makes of it.
#[test]
fn a_list_of_subwords_is_a_vocabulary() {
    let folder: &Path = &place();
    let train = "vocab train --kind wordpiece --subwords pieces.txt --out v";
    done(folder, &format!("{train} {TEXTS}"));
    let digests = |vocabulary: &str, run: &str, flags: &str| {
        done(folder, &format!("pretrain --vocab {vocabulary} --out {run} {TEXTS} {SHORT} {flags}"));
        let corpora = fs::read_dir(folder.join(run).join("corpora")).unwrap();
        let tokens = corpora.map(|corpus| fs::read(corpus.unwrap().path().join("train.bin")));
        let mut tokens: Vec<Vec<u8>> = tokens.map(|tokens| tokens.unwrap()).collect();
        tokens.sort();
        tokens
    };
    let made = digests("v", "of-folder", "");
    assert_eq!(digests("pieces.txt", "of-file", ""), made);
    let config = fs::read_to_string(folder.join("of-file/config.toml")).unwrap();
    assert!(config.contains("file = \"pieces.txt\"") && !config.contains("merges"), "{config}");
    assert_ne!(digests("pieces.txt", "uncased", "--vocabulary.uncased true"), made);
    let resumed = done(folder, "pretrain --resume --out of-file --steps 4");
    assert_eq!(resumed["finished"], true);

    let refused = |code: i32, flags: &str, expected: &str| {
        refused(folder, &format!("pretrain --out r {TEXTS} {SHORT} {flags}"), code, expected);
    };
    refused(2, "--vocab pieces.txt --vocabulary.merges 9", "vocabulary.file is used");
    refused(2, "--vocab v --vocabulary.file pieces.txt", "leave one of them out");
    refused(2, "--vocabulary.uncased true", "vocabulary.uncased: says how");
    refused(1, "--vocab nowhere.txt", "nowhere.txt");
}

/// Text of another domain is as much as there is of the first: a sample of one language alone.
#[test]
fn each_language_may_have_a_sample_of_its_own() {
    let folder: &Path = &place();
    let begin = format!("pretrain --vocabulary.merges 60 {TEXTS} {SHORT}");
    let sizes = |run: &str, flags: &str| {
        done(folder, &format!("{begin} --out {run} {flags}"));
        let corpora = fs::read_dir(folder.join(run).join("corpora")).unwrap();
        let summaries = corpora.map(|corpus| json(&corpus.unwrap().path().join("corpus.json")));
        let mut sizes: Vec<(String, u64)> = summaries
            .map(|summary| {
                let kept: Vec<u64> =
                    serde_json::from_value(summary["report"]["kept"].clone()).unwrap();
                (summary["origin"]["language"].as_str().unwrap().to_owned(), kept.iter().sum())
            })
            .collect();
        sizes.sort();
        sizes.into_iter().map(|(_, size)| size).collect::<Vec<_>>()
    };
    assert_eq!(sizes("all", ""), [600, 600]);
    assert_eq!(sizes("one", "--text.sample_of.zh 200"), [600, 200]);
    let both = "--text.sample 300 --text.sample_of.zh 200";
    assert_eq!(sizes("both", both), [300, 200]);
    let wrong = format!("{begin} --out r --text.sample_of.fr 9");
    refused(folder, &wrong, 2, "text.sample_of.fr: is none of the languages: en, zh");
}

/// A run that is given its vocabulary and its tokenised text is the run that makes both itself.
#[test]
fn text_that_was_prepared_beforehand_changes_nothing() {
    let folder: &Path = &place();
    let short = "--steps 2 --text.dev 20 --seed 5";
    let kind = "--vocabulary.kind union --vocabulary.merges 40";
    done(folder, &format!("pretrain --out own {TEXTS} {short} {kind}"));
    let text = format!("{TEXTS} --dev 20 --seed 5");
    let vocabulary = "vocab train --kind union --merges 40 --out vocabulary";
    done(folder, &format!("{vocabulary} {text}"));
    done(folder, &format!("corpus prepare --vocab vocabulary --out shelf {text}"));
    let given = "--vocab vocabulary --text.corpora shelf";
    done(folder, &format!("pretrain --out given {TEXTS} {short} {given}"));
    for file in ["model.safetensors", "metrics.jsonl"] {
        let read = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
        assert!(read("own") == read("given"), "{file} differs");
    }
    for corpus in fs::read_dir(folder.join("own/corpora")).unwrap() {
        let name = corpus.unwrap().file_name();
        assert!(
            folder.join("shelf").join(&name).is_dir()
                && folder.join("given/corpora").join(&name).is_dir()
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let file = |shelf: &str| folder.join(shelf).join(&name).join("train.bin");
            let inode = |shelf: &str| fs::metadata(file(shelf)).unwrap().ino();
            assert_eq!(inode("shelf"), inode("given/corpora"), "it was tokenised again");
        }
    }
    // The seed of the text alone decides which sentences are held out.
    let other = "--steps 2 --text.dev 20 --seed 6 --text.seed 5";
    done(folder, &format!("pretrain --out other {TEXTS} {other} {given}"));
    let names = |run: &str| {
        let corpora = fs::read_dir(folder.join(run).join("corpora")).unwrap();
        let mut names: Vec<_> = corpora.map(|corpus| corpus.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("own"), names("other"));
}

/// The run's folder has its vocabulary, so that all that is made of a run can do without the first one.
#[test]
fn a_run_with_word_pieces_goes_on_and_is_used_like_any() {
    let folder: &Path = &Folder::new();
    let sizes = "--set nli={train=3,dev=3,test=3} --set ner={train=60,dev=20,test=20} \
                 --set tatoeba=20 --set treebank.train=9 --set parallel.train=9";
    done(folder, &format!("world generate --out world --sentences 1500 {sizes}"));
    let texts = ["world/text/qaa.base.txt", "world/text/qab.base.txt"];
    let characters = texts.map(|file| fs::read_to_string(folder.join(file)).unwrap()).concat();
    fs::write(folder.join("pieces.txt"), pieces(&characters.replace(['\n', ' '], ""))).unwrap();
    let of_world = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";
    done(folder, &format!("vocab train --kind wordpiece --subwords pieces.txt --out v {of_world}"));

    done(folder, &format!("pretrain --world world --vocabulary.folder v --out run {SHORT}"));
    fs::remove_dir_all(folder.join("v")).unwrap();
    lengthen(&folder.join("run"));
    let resumed = done(folder, "pretrain --resume --out run");
    assert_eq!((&resumed["steps"], &resumed["finished"]), (&4.into(), &true.into()));

    done(folder, "encode --model run --text qab=world/tatoeba/tatoeba.qab-qaa.qab --out qab.npy");
    done(folder, "vectors word2vec --model run --dim 4 --epochs 1 --out v.vec");
    let transfer = "transfer --task ner --quick --world world --model run";
    let scored = done(folder, &format!("{transfer} --epochs 1 --out ner"));
    assert_eq!(scored["results"].as_array().unwrap().len(), 2, "{scored}");
}

#[test]
fn keys_that_contradict_the_vocabulary_are_refused_by_name() {
    let folder: &Path = &place();
    let train = "vocab train --merges 60 --lowercase --simplify table.tsv";
    done(folder, &format!("{train} {TEXTS} --out v"));
    fs::write(folder.join("other.tsv"), "國\t国\n").unwrap();
    let begin = format!("pretrain --vocabulary.folder v --out r {TEXTS} {SHORT}");
    let refused = |flags: &str, expected: &str| {
        refused(folder, &format!("{begin} {flags}"), 2, expected);
        assert!(!folder.join("r").exists(), "{flags:?} left a folder");
    };
    refused("--text.lowercase false", "text.lowercase: asks for false, and the vocabulary");
    refused("--text.strip_accents true", "text.strip_accents: asks for true");
    refused("--text.words whitespace", "text.words: asks for words = whitespace");
    refused("--text.prepared true", "leave it out (text.lines has a sentence a line)");
    refused("--text.simplify other.tsv", "made with another table for `zh`");
    refused("--vocabulary.merges 9", "vocabulary.merges: is for a vocabulary to be learned");
    // What agrees is no contradiction.
    let agreeing = "--text.lowercase true --text.simplify table.tsv --text.lines true";
    done(folder, &format!("{begin} {agreeing}"));
}

#[test]
fn a_run_that_learns_its_vocabulary_prepares_text_by_its_keys() {
    let folder: &Path = &place();
    let begin = format!("pretrain --out r --vocabulary.merges 60 {TEXTS} {SHORT}");
    for (flags, reason) in [
        ("--text.words raw", "text.words: nothing to learn from raw text"),
        ("--text.words moses --text.prepared true", "text.words: text.prepared has"),
        ("--text.lines false --text.prepared true", "text.lines: text.prepared has"),
    ] {
        refused(folder, &format!("{begin} {flags}"), 2, reason);
    }
    let english = "pretrain --out r --text en=en.txt --text.simplify table.tsv";
    refused(folder, &english, 2, "text.simplify: is for Chinese");
    let keys = "--text.simplify table.tsv --text.lowercase true --text.distinct true";
    done(folder, &format!("{begin} {keys}"));
    let run = folder.join("r");
    let found = preparations(&run);
    assert_eq!((&found[0]["words"], &found[1]["words"]), (&"moses".into(), &"jieba".into()));
    assert_eq!((&found[0]["simplify"], &found[1]["simplify"]), (&false.into(), &true.into()));
    assert!(found.iter().all(|one| one["lowercase"] == true && one["split"] == true), "{found:?}");
    let pieces = fs::read_to_string(run.join("vocabulary/subwords.tsv")).unwrap();
    assert!(pieces.contains('国') && !pieces.contains(['國', 'M']), "{pieces}");
    for corpus in fs::read_dir(run.join("corpora")).unwrap() {
        let manifest = json(&corpus.unwrap().path().join("corpus.json"));
        // One sentence of each line is the same every time.
        assert_eq!(manifest["report"]["duplicates"], 299, "{manifest}");
    }
    lengthen(&run);
    assert_eq!(done(folder, "pretrain --resume --out r")["steps"], 4);
    fs::write(folder.join("table.tsv"), "國\t国\n").unwrap();
    fs::remove_file(run.join("summary.json")).unwrap();
    refused(folder, "pretrain --resume --out r", 2, "text.simplify: asks for");
}

/// Multilingual BERT's pieces on real English and Chinese.
#[test]
fn the_pieces_of_multilingual_bert_are_trained_on_real_text() {
    let Some(data) = terms::tests::real_data() else { return };
    let folder: &Path = &Folder::new();
    let real = |file: &str| fs::canonicalize(&data).unwrap().join(file).display().to_string();
    let texts = ["en", "zh"]
        .map(|name| format!("{name}={}", real(&format!("text/{name}.tatoeba.txt.zst"))));
    let texts = format!("--text {} --text {}", texts[0], texts[1]);
    let (pieces, table) = (real("vocab/mbert_cased_vocab.txt"), real("vocab/trad2simp.tsv"));
    let train = format!("vocab train --kind wordpiece --subwords {pieces} --simplify {table}");
    done(folder, &format!("{train} {texts} --limit 3000 --out v"));
    let begin = "pretrain --vocabulary.folder v --text.first 3000 --out run";
    let begun = done(folder, &format!("{begin} {texts} {SHORT}"));
    assert!(begun["parameters"].as_u64().unwrap() > 119_547 * 48, "{begun}");
    for corpus in fs::read_dir(folder.join("run/corpora")).unwrap() {
        let corpus = corpus.unwrap().path();
        let counts = fs::read(corpus.join("counts.bin")).unwrap();
        let count = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let counts: Vec<u64> = counts.chunks(8).map(count).collect();
        // BERT's [UNK] is number 100; a few characters of the Chinese text have no piece.
        let (all, unknown) = (counts.iter().sum::<u64>(), counts[100]);
        assert!(all > 15_000 && unknown * 200 < all, "{}: {unknown} of {all}", corpus.display());
    }
    lengthen(&folder.join("run"));
    assert_eq!(done(folder, "pretrain --resume --out run")["steps"], 4);
    let sentences = real("tatoeba/tatoeba.cmn-eng.cmn");
    done(folder, &format!("encode --model run --text zh={sentences} --out zh.npy"));
}

/// Liu et al. 2020, Table 3, to the digit: the token sets of XNLI's test set, premises and hypotheses, under
/// multilingual BERT's cased vocabulary, and what each has in common with English.
#[test]
fn token_sets_of_xnli_are_those_of_the_paper() {
    let Some(data) = terms::tests::real_data() else { return };
    let data = fs::canonicalize(&data).unwrap();
    let folder = Folder::new();
    let file = |name: &str| data.join(name).display().to_string();
    let texts = ["en", "de", "fr", "zh"]
        .map(|code| format!("--text {code}={} ", file(&format!("xnli/test-{code}.tsv"))))
        .concat();
    let subwords = file("vocab/mbert_cased_vocab.txt");
    let train = format!("vocab train --kind wordpiece --subwords {subwords} --out v");
    done(&folder, &format!("{train} {texts} --lines --columns 1,2"));
    let stats = done(&folder, "vocab stats v");
    let numbers = |list: &str, key: &str| -> Vec<u64> {
        stats[list].as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers("languages", "types"), [9140, 9212, 8552, 3866]);
    assert_eq!(numbers("pairs", "shared_types")[..3], [3230, 3911, 1325]);
}
