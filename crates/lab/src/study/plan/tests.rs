//! What studies come to: their steps, and what is refused.

use std::path::Path;

use commands::measured::Measurement;
use terms::Task;

use super::*;
use crate::build::Build;
use crate::study::file::{RealLanguages, StudyEvaluation};
use crate::study::laboratory::Laboratory;
use crate::study::one_off::OneOffOrigin;
use crate::study::step::CPU;

const BUILD: Build =
    Build { version: String::new(), commit: None, target: String::new(), features: String::new() };

/// Studies some of whose evaluations need gold annotations that only invented languages have.
const INVENTED_ONLY: [&str; 1] = ["bitext"];

const MANY: [&str; 1] = ["align-many"];

/// The plan of a study whose languages have enough text.
fn planned(study: &Study, scale: Scale) -> Result<StudyPlan> {
    StudyPlan::of(study, scale, CPU, &mut |_, _, most| Ok(most))
}

#[test]
fn every_study_comes_to_steps_at_every_scale() {
    for name in Study::names() {
        for scale in Scale::ALL {
            let plan = planned(&Study::find(name).unwrap(), scale).unwrap();
            // Of many languages one step gives the numbers of all pairs.
            let steps = if MANY.contains(&name) { 8 } else { 4 };
            assert!(plan.extractions.len() >= plan.steps.len() / steps, "{name} at {scale}");
            for (number, step) in plan.steps.iter().enumerate() {
                assert!(step.needs.iter().all(|need| need.0 < number), "{}", step.name);
            }
            assert_slots(&plan);
        }
    }
}

/// Results of a step replace those of another with the same slot and seed, so that no two steps of a plan may have one.
fn assert_slots(plan: &StudyPlan) {
    let mut steps = std::collections::HashMap::new();
    for extraction in &plan.extractions {
        let slot = extraction.slot(&plan.steps[extraction.step.0]);
        let step = steps.insert((slot.clone(), extraction.seed), extraction.step);
        let same = step.is_none_or(|step| step == extraction.step);
        assert!(same, "{}: two steps give {slot}", plan.study);
    }
}

#[test]
fn studies_share_what_is_the_same() {
    let keys = |name: &str| -> Vec<String> {
        let plan = planned(&Study::find(name).unwrap(), Scale::Tiny).unwrap();
        plan.steps
            .iter()
            .filter(|step| step.kind == "pretrain tiny")
            .map(|s| s.key.clone())
            .collect()
    };
    let (anchors, sharing) = (keys("anchors"), keys("sharing"));
    let common = anchors.iter().filter(|key| sharing.contains(key)).count();
    assert_eq!(common, 12, "default, no anchors and untrained, each of four seeds");
    let table = keys("table-1");
    assert!(anchors.iter().chain(&sharing).all(|key| table.contains(key)));
}

fn data_of(languages: [&str; 2]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    data(folder.path(), languages);
    folder
}

/// A folder with an empty file under every name that real studies of these languages look for.
fn data(folder: &Path, languages: [&str; 2]) {
    let make = |name: String| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    };
    let [en, fr] = languages;
    for language in languages {
        make(format!("text/{language}.wiki.txt.zst"));
        make(format!("text/{language}.docs.txt.zst"));
        for part in ["train", "dev", "test"] {
            make(format!("xnli/{part}-{language}.tsv"));
            make(format!("ner/panx-{part}-{language}.tsv"));
            make(format!("ud/{language}_gsd-ud-{part}.conllu"));
        }
    }
    make("nli/multinli.train.tsv".to_owned());
    for side in ["eng", "fra"] {
        make(format!("tatoeba/tatoeba.fra-eng.{side}"));
    }
    for name in [format!("{fr}-{en}.0-5000"), format!("{fr}-{en}.5000-6500"), format!("{en}-{fr}")]
    {
        make(format!("muse/{name}.txt"));
    }
    make(format!("bitext/bitext.{en}-{fr}.tsv"));
}

#[test]
fn every_study_can_be_asked_of_real_languages() {
    let folder = data_of(["en", "fr"]);
    for name in Study::names().filter(|name| !MANY.contains(name)) {
        let mut study = Study::find(name).unwrap();
        study.worlds.clear();
        study.real = Some(en_fr(folder.path()));
        let plan = planned(&study, Scale::Small).unwrap();
        assert!(plan.steps.iter().all(|step| step.kind != "world generate"), "{name}");
        assert_slots(&plan);
        let complete = plan.skipped.is_empty() || INVENTED_ONLY.contains(&name);
        assert!(complete, "{name}: {:?}", plan.skipped);
        for (number, step) in plan.steps.iter().enumerate() {
            let read = plan.extractions.iter().any(|extraction| extraction.step.0 == number);
            let needed = plan.steps.iter().any(|other| other.needs.contains(&StepId(number)));
            assert!(read || needed, "{name}: nothing comes of {}", step.name);
        }
    }
    let study =
        Study { real: Some(en_fr(&folder.path().join("none"))), ..Study::find("anchors").unwrap() };
    let refused = planned(&study, Scale::Small).err().unwrap().to_string();
    assert!(refused.contains("text/en.*.txt.zst"), "{refused}");
}

/// Means over seeds are of one text and one test set, whatever their folder is called.
#[test]
fn seeds_of_other_data_are_refused_and_data_may_lie_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let [first, moved] = ["data", "moved"].map(|name| place.path().join(name));
    data(&first, ["en", "fr"]);
    let lab = Laboratory::open(&place.path().join("lab")).unwrap();
    let enter = |folder: &Path, seed: u64| {
        let study = Study { seeds: vec![seed], ..real(folder, "anchors") };
        lab.enter_settings(&[planned(&study, Scale::Tiny).unwrap()], false)
    };
    enter(&first, 1).unwrap();
    let origin = OneOffOrigin { study: "anchors", seed: 1, command: "", build: &BUILD };
    let factors = Factors::from([("pair".to_owned(), "en-fr".to_owned())]);
    let measurement = Measurement { measure: "f1".to_owned(), factors, value: 0.5 };
    origin.add(&lab.root, Scale::Tiny.name(), measurement).unwrap();
    std::fs::rename(&first, &moved).unwrap();
    enter(&moved, 2).unwrap();
    let refused = |file: &str, named: &str| {
        let path = moved.join(file);
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, "other").unwrap();
        let refused = enter(&moved, 2).unwrap_err().to_string();
        assert!(refused.contains(named) && refused.contains("--force"), "{file}: {refused}");
        match before {
            Some(before) => std::fs::write(&path, before).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        enter(&moved, 2).unwrap();
    };
    refused("text/fr.wiki.txt.zst", "text of fr: ");
    refused("text/en.lit.txt.zst", "text of en: ");
    refused("text/en.bible.txt.zst", "text of en: ");
    let test = "ud/fr_gsd-ud-test.conllu";
    refused(test, "data of Transfer task: Parse source: en condition=default ");
    refused(test, "`--test fr ");
    // The text of the encoders has none of these sentences.
    refused("xnli/test-fr.tsv", "--exclude ");
    std::fs::remove_file(moved.join(test)).unwrap();
    enter(&moved, 2).unwrap();
}

fn en_fr(folder: &Path) -> RealLanguages {
    let (data, pairs) = (folder.to_owned(), vec!["en-fr".to_owned()]);
    RealLanguages { data, pairs, languages: Vec::new(), altered: Vec::new() }
}

fn real(folder: &Path, name: &str) -> Study {
    Study { worlds: Vec::new(), real: Some(en_fr(folder)), ..Study::find(name).unwrap() }
}

fn commands(plan: &StudyPlan) -> Vec<String> {
    let words = |(number, step): (usize, &StudyStep)| {
        step.words(StepId(number), |StepId(n)| format!("step-{n}").into()).join(" ")
    };
    plan.steps.iter().enumerate().map(words).collect()
}

fn count(commands: &[String], verb: &str, word: &str) -> usize {
    commands.iter().filter(|one| one.starts_with(verb) && one.contains(word)).count()
}

/// A quarter of the layers at a time, and none; all of an untrained encoder's are new already.
#[test]
fn layers_begin_anew_by_quarters() {
    let study = Study { seeds: vec![1], ..Study::find("reinit").unwrap() };
    let commands = commands(&planned(&study, Scale::Small).unwrap());
    for task in ["ner", "parse"] {
        let start = format!("transfer --task {task} ");
        let transfers: Vec<&String> =
            commands.iter().filter(|command| command.starts_with(&start)).collect();
        assert_eq!(transfers.len(), 6, "{transfers:?}");
        let new = |command: &&String| {
            let rest = command.split("--reinit-layers ").nth(1)?;
            Some(rest.split(' ').next().unwrap_or_default().to_owned())
        };
        let new: Vec<String> = transfers.iter().filter_map(new).collect();
        assert_eq!(new, ["1-2", "3-4", "5-6", "7-8"]);
    }
}

#[test]
fn the_larger_size_is_what_the_smaller_language_has() {
    let folder = data_of(["en", "fr"]);
    let plan = |name: &str, scale: Scale, french: u64| {
        let mut counted = 0;
        let plan =
            StudyPlan::of(&real(folder.path(), name), scale, CPU, &mut |language, files, most| {
                assert!(files[0][0].ends_with(format!("text/{language}.wiki.txt.zst")));
                counted += 1;
                Ok(most.min(if language == "fr" { french } else { 938_160 }))
            });
        assert!(counted <= 4, "each language once for each size");
        plan.map_err(|error| error.to_string())
    };
    for name in ["data-size", "window"] {
        let sizes: std::collections::BTreeSet<_> = plan(name, Scale::Small, 741_170)
            .unwrap()
            .extractions
            .iter()
            .filter_map(|extraction| {
                Some((
                    extraction.factors.get("size")?.clone(),
                    extraction.factors.get("sentences")?.clone(),
                ))
            })
            .collect();
        assert!(sizes.contains(&("large".to_owned(), "741170".to_owned())), "{sizes:?}");
        assert!(!sizes.contains(&("small".to_owned(), "741170".to_owned())), "{sizes:?}");
    }
    let small = commands(&plan("data-size", Scale::Small, 741_170).unwrap());
    let capped = small.iter().filter(|command| command.contains("--set text.sample=741170"));
    assert_eq!(capped.count(), 4, "the larger encoder of each of four seeds");
    let tiny = commands(&plan("data-size", Scale::Tiny, 741_170).unwrap());
    assert!(tiny.iter().all(|command| !command.contains("text.sample")));
}

#[test]
fn too_little_text_for_two_sizes_is_refused_before_anything_is_trained() {
    let folder = data_of(["en", "fr"]);
    for there in [150_000, 200_000] {
        let study = real(folder.path(), "data-size");
        let refused =
            StudyPlan::of(&study, Scale::Small, CPU, &mut |_, _, most| Ok(most.min(there)));
        let refused = refused.err().unwrap().to_string();
        assert!(refused.contains(&format!("holds {there} sentences")), "{refused}");
    }
}

#[test]
fn text_of_another_domain_is_asked_for_by_its_name() {
    let folder = data_of(["en", "fr"]);
    std::fs::remove_file(folder.path().join("text/fr.docs.txt.zst")).unwrap();
    let refused = planned(&real(folder.path(), "domain"), Scale::Tiny).err().unwrap().to_string();
    for word in ["text/fr.docs.txt.zst", "another domain", "of your own", "wiki-cc"] {
        assert!(refused.contains(word), "{word}: {refused}");
    }
    // English text of another domain is not asked for.
    std::fs::write(folder.path().join("text/fr.docs.txt.zst"), "").unwrap();
    std::fs::remove_file(folder.path().join("text/en.docs.txt.zst")).unwrap();
    planned(&real(folder.path(), "domain"), Scale::Tiny).unwrap();
}

#[test]
fn words_of_real_languages_are_linked_in_their_parallel_text() {
    let folder = data_of(["en", "fr"]);
    let study = real(folder.path(), "align-contexts");
    let pairs = folder.path().join("bitext/bitext.en-fr.tsv");
    std::fs::remove_file(&pairs).unwrap();
    let find = |plan: &StudyPlan, verb: &str| {
        let commands = commands(plan);
        commands.into_iter().find(|command| command.starts_with(verb)).unwrap()
    };
    let linking = find(&planned(&study, Scale::Tiny).unwrap(), "word-align");
    let place = |name: &str| linking.find(name).unwrap_or_else(|| panic!("{name}: {linking}"));
    assert!(linking.contains("--columns 1,2"), "{linking}");
    assert!(place("xnli/test-en.tsv") < place("xnli/dev-fr.tsv"), "the source comes first");
    std::fs::write(&pairs, "a\tb\n").unwrap();
    let plan = planned(&study, Scale::Tiny).unwrap();
    let linking = find(&plan, "word-align");
    assert!(linking.contains("bitext.en-fr.tsv --tokenizer auto"), "{linking}");
    let maps = find(&plan, "align contexts");
    assert!(maps.contains("--parallel en-fr=") && maps.contains("--onto en"), "{maps}");
    let mapped = |extraction: &&Extraction| {
        extraction.factors.get("system").is_some_and(|system| system.ends_with("-aligned"))
    };
    // Four systems, four seeds, two tasks, three layers.
    assert_eq!(plan.extractions.iter().filter(mapped).count(), 4 * 4 * 6);
}

#[test]
fn a_study_may_name_tasks_that_the_papers_do_not_have() {
    let folder = data_of(["en", "fr"]);
    std::fs::create_dir(folder.path().join("classify")).unwrap();
    for file in ["train-en", "dev-en", "test-en", "test-fr"] {
        std::fs::write(folder.path().join(format!("classify/{file}.tsv")), "").unwrap();
    }
    let mut study = real(folder.path(), "anchors");
    let tasks = [terms::Task::Pos, terms::Task::Classify];
    study.evaluate = tasks.map(StudyEvaluation::Transfer).to_vec();
    let plan = planned(&study, Scale::Tiny).unwrap();
    let commands = commands(&plan);
    let transfer = |task: &str| {
        let verb = format!("transfer --task {task} ");
        commands.iter().find(|command| command.starts_with(&verb)).unwrap()
    };
    let files = ["en_gsd-ud-train.conllu", "en_gsd-ud-dev.conllu", "fr_gsd-ud-test.conllu"];
    assert!(files.iter().all(|file| transfer("pos").contains(file)), "{}", transfer("pos"));
    let classify = transfer("classify");
    assert!(classify.contains("--train en=") && classify.contains("classify/train-en.tsv"));
    assert!(classify.contains("classify/test-fr.tsv"), "{classify}");
}

/// A vocabulary of each kind and the text in it, for all conditions and seeds.
#[test]
fn vocabularies_of_real_text_are_learned_once() {
    let folder = data_of(["en", "fr"]);
    let study = Study { seeds: vec![1, 2], ..real(folder.path(), "sharing") };
    let plan = planned(&study, Scale::Small).unwrap();
    let count = |verb: &str| {
        let steps = plan.steps.iter();
        steps.filter(|step| step.command.verb == verb).count()
    };
    let kinds = ["joint", "union", "disjoint"].len();
    assert_eq!((count("vocab train"), count("corpus prepare")), (kinds, kinds));
    let commands = commands(&plan);
    let pretrainings = commands.iter().filter(|command| command.starts_with("pretrain"));
    for command in pretrainings {
        assert!(command.contains("--vocab step-"), "{command}");
        assert!(command.contains("text.corpora=step-"), "{command}");
        assert!(command.contains("text.seed=1"), "{command}");
    }
}

#[test]
fn what_cannot_be_measured_is_said_and_not_run() {
    let mut study = Study::find("align-contexts").unwrap();
    study.evaluate = vec![StudyEvaluation::Transfer(terms::Task::Ner)];
    study.systems.truncate(2);
    study.seeds = vec![1];
    let plan = planned(&study, Scale::Tiny).unwrap();
    assert_eq!(plan.skipped, ["ner cannot be measured on monolingual"]);
    assert_eq!(plan.steps.len(), 3, "a world, the bilingual encoder and its transfer");
    assert_eq!(plan.steps[2].needs, [StepId(0), StepId(1)]);
    assert!(commands(&plan)[2].contains("step-1/run"));
    study.systems.truncate(1);
    let refused = planned(&study, Scale::Tiny).err().unwrap().to_string();
    assert!(refused.contains("nothing can be measured: ner"), "{refused}");
}

fn levels(plan: &StudyPlan, factor: &str) -> Vec<String> {
    let of = |one: &Extraction| one.factors.get(factor).cloned();
    let mut levels: Vec<String> = plan.extractions.iter().filter_map(of).collect();
    levels.sort();
    levels.dedup();
    levels
}

#[test]
fn one_encoder_of_several_real_languages_is_evaluated_on_every_target() {
    let folder = data_of(["en", "fr"]);
    data(folder.path(), ["en", "de"]);
    for side in ["eng", "deu"] {
        let name = format!("tatoeba/tatoeba.deu-eng.{side}");
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let languages = ["en", "fr", "de"].map(str::to_owned).to_vec();
    for name in Study::names() {
        let real = RealLanguages {
            languages: languages.clone(),
            pairs: Vec::new(),
            ..en_fr(folder.path())
        };
        let study = Study {
            worlds: Vec::new(),
            real: Some(real),
            seeds: vec![1],
            ..Study::find(name).unwrap()
        };
        let plan = planned(&study, Scale::Small).unwrap();
        let complete = plan.skipped.is_empty() || INVENTED_ONLY.contains(&name);
        assert!(complete, "{name}: {:?}", plan.skipped);
        // Scores of transfer get their pair when they are read.
        let pairs = levels(&plan, "pair");
        let all = pairs.contains(&"en-de".to_owned()) && pairs.contains(&"en-fr".to_owned());
        let read = |verb: &str| commands(&plan).iter().filter(|one| one.starts_with(verb)).count();
        let tests = commands(&plan).iter().any(|command| {
            command.starts_with("transfer")
                && command.contains("test-de")
                && command.contains("test-fr")
        });
        assert!(all || tests || MANY.contains(&name), "{name}: {pairs:?}");
        if name == "similarity" {
            assert_eq!(pairs, ["en-de", "en-en'", "en-fr"]);
            assert_eq!(read("corpus paraphrases"), 1);
        }
    }
}

#[test]
fn many_languages_are_aligned_at_once() {
    let mut study = Study { seeds: vec![1], ..Study::find("align-many").unwrap() };
    let flags = |study: &Study| -> Vec<[usize; 3]> {
        let commands = commands(&planned(study, Scale::Tiny).unwrap());
        let many = commands.iter().filter(|one| one.starts_with("align many"));
        let count = |one: &String| {
            ["--vectors ", "--dictionary ", "--test-dictionary "]
                .map(|flag| one.matches(&format!(" {flag}")).count())
        };
        many.map(count).collect()
    };
    // Three with the source, and of three others the two pairs of neighbours; all six are tested, in both directions.
    assert_eq!(flags(&study), [[4, 5, 12]; 3]);
    study.worlds[0].flags.clear();
    assert_eq!(flags(&study), [[4, 3, 6]; 3], "a world has dictionaries of its source alone");
    study.worlds[0].languages = Some(2);
    let refused = planned(&study, Scale::Tiny).err().unwrap().to_string();
    assert!(refused.contains("align-many cannot be measured"), "{refused}");
}

/// How long a sentence is depends on the tokenizer; which are measured does not.
#[test]
fn all_encoders_of_a_study_are_measured_on_the_same_real_sentences() {
    let folder = data_of(["en", "fr"]);
    let of = |name: &str, verb: &str| -> (Vec<String>, Vec<String>) {
        let study = Study { seeds: vec![1], ..real(folder.path(), name) };
        let plan = planned(&study, Scale::Small).unwrap();
        let filters = commands(&plan).into_iter().filter(|one| one.starts_with("corpus filter"));
        let filters: Vec<String> = filters.collect();
        for filter in &filters {
            assert!(filter.contains("--max-tokens 254"), "{filter}");
        }
        let read = |command: String| {
            let flags = ["--parallel ", "--text ", "--train "];
            let files = flags.iter().flat_map(|flag| command.split(flag).skip(1));
            files.map(|file| file.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let measured = commands(&plan).into_iter().filter(|one| one.starts_with(verb));
        let mut files: Vec<String> = measured.flat_map(read).collect();
        files.sort();
        files.dedup();
        (filters, files)
    };
    for (name, verb, sides) in [
        ("anchors", "retrieve", 4),
        ("predictors", "similarity", 2),
        ("language-shift", "shift sweep", 2),
        ("language-identity", "language-id", 2),
    ] {
        let (filters, files) = of(name, verb);
        assert!(!filters.is_empty(), "{name}");
        let ends = |file: &String| file.ends_with("source.txt") || file.ends_with("target.txt");
        assert!(files.iter().all(ends), "{name}: {files:?}");
        assert_eq!(files.len(), sides, "{name}: {files:?}");
    }
    let world = Study { seeds: vec![1], ..Study::find("anchors").unwrap() };
    let commands = commands(&planned(&world, Scale::Tiny).unwrap());
    assert!(commands.iter().all(|one| !one.starts_with("corpus filter")));
}

/// Test sets are drawn from the collections that text to train on is of.
#[test]
fn no_encoder_is_trained_on_sentences_that_it_is_tested_on() {
    let folder = data_of(["en", "fr"]);
    for (name, scale) in
        [("domain", Scale::Small), ("new-language", Scale::Tiny), ("align-words", Scale::Tiny)]
    {
        let study = Study { seeds: vec![1], ..real(folder.path(), name) };
        let plan = planned(&study, scale).unwrap();
        let commands = commands(&plan);
        let of =
            |verb: &str| commands.iter().filter(|one| one.starts_with(verb)).collect::<Vec<_>>();
        let excluded = of("corpus exclude");
        for language in ["en", "fr"] {
            let own = |one: &&&String| one.contains(&format!("--text {language}="));
            let iso = terms::iso639_3(language);
            let tests = [
                "tatoeba/tatoeba.fra-eng.".to_owned() + iso,
                format!("xnli/dev-{language}.tsv"),
                format!("xnli/test-{language}.tsv"),
            ];
            let whole = |one: &&String| tests.iter().all(|test| one.contains(test.as_str()));
            assert!(excluded.iter().any(|one| own(&one)), "{name}: {commands:#?}");
            assert!(excluded.iter().filter(own).all(whole), "{name}: {excluded:#?}");
            let said = |one: &Extraction| {
                matches!(one.extractor, Extractor::TestExclusion(_))
                    && one.factors["language"] == language
            };
            assert!(plan.extractions.iter().any(said), "{name}, {language}");
        }
        for verb in ["pretrain", "vocab train", "corpus prepare", "vectors word2vec", "words"] {
            assert!(of(verb).iter().all(|one| !one.contains("/text/")), "{name}: {:#?}", of(verb));
        }
    }
}

/// A file that is missing is missing for every system, and a dictionary has two directions.
#[test]
fn what_is_skipped_names_the_file_that_is_missing() {
    let folder = data_of(["en", "fr"]);
    let mut study = Study { seeds: vec![1], ..real(folder.path(), "anchors") };
    study.evaluate = vec![
        StudyEvaluation::try_from("retrieval".to_owned()).unwrap(),
        StudyEvaluation::try_from("align-words".to_owned()).unwrap(),
        StudyEvaluation::Transfer(Task::Ner),
    ];
    let file = |name: &str| folder.path().join(name);
    for part in ["0-5000", "5000-6500"] {
        let name = |pair: &str| file(&format!("muse/{pair}.{part}.txt"));
        std::fs::rename(name("fr-en"), name("en-fr")).unwrap();
    }
    let plan = planned(&study, Scale::Tiny).unwrap();
    assert!(plan.skipped.is_empty(), "{:?}", plan.skipped);
    let aligned: Vec<String> =
        commands(&plan).into_iter().filter(|one| one.starts_with("align words")).collect();
    let whole = |one: &String| one.contains("en-fr.0-5000.txt") && one.contains(" --reversed");
    assert!(!aligned.is_empty() && aligned.iter().all(whole), "{aligned:?}");
    std::fs::remove_file(file("muse/en-fr.5000-6500.txt")).unwrap();
    ["dev", "test"]
        .iter()
        .for_each(|part| std::fs::remove_file(file(&format!("ner/panx-{part}-fr.tsv"))).unwrap());
    let skipped = planned(&study, Scale::Tiny).unwrap().skipped;
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    let names = ["muse/fr-en.0-5000.txt", "no ", "muse/en-fr.5000-6500.txt"];
    assert!(names.iter().all(|name| skipped[0].contains(name)), "{skipped:?}");
    assert!(skipped[1].contains("ner of fr: there is no"), "{skipped:?}");
}

/// The reverse of a test dictionary is none: each direction has its own where there is a file.
#[test]
fn each_direction_of_real_languages_has_its_own_test_dictionary() {
    let folder = data_of(["en", "fr"]);
    data(folder.path(), ["en", "de"]);
    std::fs::write(folder.path().join("muse/en-fr.5000-6500.txt"), "").unwrap();
    let languages = ["en", "fr", "de"].map(str::to_owned).to_vec();
    let real = RealLanguages { languages, pairs: Vec::new(), ..en_fr(folder.path()) };
    let study = Study {
        worlds: Vec::new(),
        real: Some(real),
        seeds: vec![1],
        ..Study::find("align-many").unwrap()
    };
    let commands = commands(&planned(&study, Scale::Small).unwrap());
    let many: Vec<&String> = commands.iter().filter(|one| one.starts_with("align many")).collect();
    assert!(!many.is_empty());
    for command in many {
        for (direction, there) in [("fr-en", 1), ("en-fr", 1), ("de-en", 1), ("en-de", 0)] {
            let flag = format!("--test-dictionary {direction}=");
            assert_eq!(command.matches(&flag).count(), there, "{direction}: {command}");
        }
    }
}

/// Text, test sentences and words of an altered copy come of `corpus alter`, and no other language is read.
#[test]
fn a_language_is_compared_with_its_altered_copies() {
    let folder = data_of(["en", "fr"]);
    let study = |language: &str| {
        let altered = vec![language.to_owned()];
        let real = RealLanguages { pairs: Vec::new(), altered, ..en_fr(folder.path()) };
        let study = Study::find("elements").unwrap();
        Study { worlds: Vec::new(), real: Some(real), seeds: vec![1], ..study }
    };
    let refused = planned(&study("en"), Scale::Tiny).err().unwrap().to_string();
    assert!(refused.contains("text/en.*.txt.zst"), "the study reads Tatoeba's: {refused}");
    std::fs::write(folder.path().join("text/en.tatoeba.txt.zst"), "").unwrap();
    let plan = planned(&study("en"), Scale::Tiny).unwrap();
    assert!(plan.skipped.is_empty(), "{:?}", plan.skipped);
    let with = |verb: &str, word: &str| count(&commands(&plan), verb, word);
    // Of each of two copies: text, test sentences, and others to learn a map from.
    assert_eq!((with("corpus alter", ""), with("corpus alter", "--order inverted")), (6, 3));
    assert_eq!(with("corpus alter", "/text.txt.zst --lowercase"), 2);
    assert_eq!(with("corpus exclude", "text/en.tatoeba.txt.zst --exclude"), 1);
    assert_eq!(with("corpus exclude", "text/en.wiki.txt.zst"), 0, "another text");
    assert_eq!(with("corpus alter", "tatoeba/tatoeba.fra-eng.eng"), 2);
    let systems = study("en").systems.len();
    assert_eq!(with("pretrain", "--set text.prepared=true"), 2 * systems);
    assert_eq!(with("retrieve", "--parallel xx=step-"), 2 * systems);
    assert_eq!(levels(&plan, "pair"), ["en-xx"]);
    assert_eq!(levels(&plan, "order"), ["inverted", "same"]);
    // The rows of each are those that both copies have short enough.
    assert_eq!((with("corpus filter", ""), with("corpus filter", "--beside step-")), (4, 4));
}

/// A model that is given needs no training, has the depth that it says, and of several folders each is a seed.
#[test]
fn a_given_model_is_evaluated_at_its_own_depth() {
    let folder = data_of(["en", "fr"]);
    let model = folder.path().join("mbert");
    std::fs::create_dir(&model).unwrap();
    let config = r#"{"model_type": "bert", "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 12,
        "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 12, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1}"#;
    std::fs::write(model.join("config.json"), config).unwrap();
    let study = |folders: &[&Path]| {
        let mut study = real(folder.path(), "language-shift");
        let models: Vec<_> =
            folders.iter().map(|folder| ("mbert".to_owned(), folder.to_path_buf())).collect();
        study.give(&models);
        study.seeds = vec![1, 2, 3];
        study
    };
    let plan = planned(&study(&[&model]), Scale::Tiny).unwrap();
    let typed = commands(&plan);
    assert!(typed.iter().all(|command| !command.starts_with("pretrain")));
    let with = |verb: &str, word: &str| count(&typed, verb, word);
    assert_eq!(with("shift translate", "--layer 10 "), 1, "the tenth of twelve");
    assert_eq!(with("transfer", "--train-layers 7-12"), 9, "three tasks, three seeds");
    assert_eq!(with("shift sweep", "--token-text fr="), 1, "hidden states have no seed");
    // XNLI's sentences that all encoders read: twelve positions, two of them of special tokens.
    assert_eq!(with("corpus filter", "--columns 1,2 --max-tokens 10"), 1);
    assert_eq!(with("shift means", "xnli/dev-fr.tsv"), 1);
    assert_eq!(levels(&plan, "system"), ["mbert"]);
    // The key holds what the folder holds.
    let keys = |plan: &StudyPlan| -> Vec<String> {
        // Which sentences are read depends on the length of its input alone.
        let of_model = plan.steps.iter().filter(|step| step.command.verb != "corpus filter");
        of_model.map(|step| step.key.clone()).collect()
    };
    let before = keys(&plan);
    std::fs::write(model.join("README.md"), "notes").unwrap();
    assert_eq!(keys(&planned(&study(&[&model]), Scale::Tiny).unwrap()), before);
    std::fs::write(model.join("model.safetensors"), "other").unwrap();
    let after = keys(&planned(&study(&[&model]), Scale::Tiny).unwrap());
    assert!(after.iter().all(|key| !before.contains(key)));
    // Two folders are two seeds, and there is no third.
    let second = folder.path().join("second");
    std::fs::create_dir(&second).unwrap();
    std::fs::write(second.join("config.json"), config).unwrap();
    let two = planned(&study(&[&model, &second]), Scale::Tiny).unwrap();
    let seeds: std::collections::BTreeSet<u64> =
        two.extractions.iter().map(|extraction| extraction.seed).collect();
    assert_eq!(seeds, [1, 2].into());
    let nothing = planned(&study(&[folder.path()]), Scale::Tiny).err().unwrap().to_string();
    assert!(nothing.contains("the model mbert") && nothing.contains("holds no model"), "{nothing}");
}

#[test]
fn no_weight_is_chosen_on_what_is_reported() {
    let folder = data_of(["en", "fr"]);
    std::fs::remove_file(folder.path().join("ner/panx-test-fr.tsv")).unwrap();
    let study = Study { seeds: vec![1], ..real(folder.path(), "shifted-transfer") };
    let plan = planned(&study, Scale::Tiny).unwrap();
    let ner: Vec<String> = commands(&plan)
        .into_iter()
        .filter(|command| command.starts_with("transfer --task ner"))
        .collect();
    assert!(!ner.is_empty());
    for command in ner {
        assert!(command.contains("--halves fr="), "{command}");
        assert!(!command.contains("--dev fr=") && !command.contains("--test fr="), "{command}");
    }
    // A language without any labelled file is left out, and a line says so.
    std::fs::remove_file(folder.path().join("ner/panx-dev-fr.tsv")).unwrap();
    let plan = planned(&study, Scale::Tiny).unwrap();
    assert!(plan.skipped[0].contains("ner of fr: there is no"), "{:?}", plan.skipped);
    assert_eq!(levels(&plan, "task"), ["nli", "parse"]);
}

/// Data sets differ in labels and texts: all files of a transfer are of one, or it is left out and a line says why.
#[test]
fn entities_are_learned_and_tested_on_one_data_set() {
    let folder = tempfile::tempdir().unwrap();
    data(folder.path(), ["en", "zh"]);
    for side in ["eng", "cmn"] {
        let name = format!("tatoeba/tatoeba.cmn-eng.{side}");
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let languages = vec!["en".to_owned(), "zh".to_owned()];
    let planned = |name: &str| {
        let real = RealLanguages {
            languages: languages.clone(),
            pairs: Vec::new(),
            ..en_fr(folder.path())
        };
        let study = Study {
            worlds: Vec::new(),
            real: Some(real),
            seeds: vec![1],
            ..Study::find(name).unwrap()
        };
        let mut study = study;
        study.choose_tasks(&[Task::Ner]);
        planned(&study, Scale::Tiny).unwrap()
    };
    let file = |name: &str| folder.path().join("ner").join(name);
    let add = |name: &str| std::fs::write(file(name), "").unwrap();
    // The files of every transfer, by flag.
    let read = |name: &str| -> std::collections::BTreeSet<String> {
        let commands = commands(&planned(name));
        let transfers = commands.iter().filter(|one| one.starts_with("transfer --task ner"));
        let words =
            transfers.flat_map(|one| one.split(" --")).filter(|word| word.contains("/ner/"));
        words.map(|word| word.replace(&format!("{}/ner/", folder.path().display()), "")).collect()
    };
    let of = |files: &[&str]| files.iter().map(|&file| file.to_owned()).collect();
    add("msra-test-zh.txt");
    let wikiann =
        ["train en=panx-train-en.tsv", "dev en=panx-dev-en.tsv", "test en=panx-test-en.tsv"];
    assert_eq!(read("anchors"), of(&[&wikiann[..], &["test zh=panx-test-zh.tsv"]].concat()));
    // What is chosen on the one half is not reported on it, in whichever study.
    std::fs::remove_file(file("panx-test-zh.tsv")).unwrap();
    for study in ["anchors", "shifted-transfer"] {
        let halved = of(&[&wikiann[..], &["halves zh=panx-dev-zh.tsv"]].concat());
        assert_eq!(read(study), halved, "{study}");
    }
    std::fs::remove_file(file("panx-dev-zh.tsv")).unwrap();
    let skipped = planned("anchors").skipped.join("; ");
    assert!(skipped.contains("ner/msra-test-zh.txt is of another data set than en's"), "{skipped}");
    assert!(read("anchors").is_empty());
    ["train", "dev", "test"].iter().for_each(|part| add(&format!("conll2003-{part}-en.txt")));
    let conll = [
        "train en=conll2003-train-en.txt",
        "dev en=conll2003-dev-en.txt",
        "test en=conll2003-test-en.txt",
    ];
    for (study, zh) in [
        ("anchors", "test zh=msra-test-zh.txt"),
        ("shifted-transfer", "halves zh=msra-test-zh.txt"),
    ] {
        assert_eq!(read(study), of(&[&conll[..], &[zh]].concat()), "{study}");
    }
}

/// The source's development set chooses the epoch, so that the same file is no test set.
#[test]
fn the_source_is_not_tested_on_what_its_epoch_is_chosen_on() {
    let folder = data_of(["en", "fr"]);
    std::fs::remove_file(folder.path().join("ner/panx-test-en.tsv")).unwrap();
    let study = Study { seeds: vec![1], ..real(folder.path(), "anchors") };
    let transfers = |study: &Study| -> Vec<String> {
        let commands = commands(&planned(study, Scale::Tiny).unwrap());
        commands.into_iter().filter(|one| one.starts_with("transfer --task ner")).collect()
    };
    let halves = transfers(&study);
    assert!(!halves.is_empty());
    for command in halves {
        assert!(command.contains("--halves en=") && command.contains("--test fr="), "{command}");
        assert!(!command.contains("--dev en=") && !command.contains("--test en="), "{command}");
    }
    std::fs::write(folder.path().join("ner/wikiann-test-en.txt"), "").unwrap();
    for command in transfers(&study) {
        assert!(command.contains("--dev en=") && command.contains("--test en="), "{command}");
    }
}

#[test]
fn panlex_is_preferred_and_domains_are_of_equal_size() {
    let folder = data_of(["en", "fr"]);
    let anchors = |folder: &Path| {
        let plan = planned(&real(folder, "anchors"), Scale::Tiny).unwrap();
        commands(&plan).into_iter().find(|one| one.contains("--preset extra-anchors")).unwrap()
    };
    assert!(anchors(folder.path()).contains("muse/en-fr.txt"));
    std::fs::create_dir(folder.path().join("panlex")).unwrap();
    std::fs::write(folder.path().join("panlex/en-fr.tsv"), "").unwrap();
    assert!(anchors(folder.path()).contains("panlex/en-fr.tsv"));
    // Default has all of its text too, where it is compared with other conditions than the other domain.
    for (name, all) in [("domain", 0), ("table-1", 1)] {
        let study = Study { seeds: vec![1], ..real(folder.path(), name) };
        let plan = StudyPlan::of(&study, Scale::Small, CPU, &mut |_, files, most| {
            let docs = files[0][0].display().to_string().contains("docs");
            Ok(most.min(if docs { 300_000 } else { 700_000 }))
        });
        let plan = plan.unwrap();
        let trained = |preset: &str, equal: bool| {
            let equal = |one: &&String| one.contains("text.sample_of.fr=300000") == equal;
            let commands = commands(&plan);
            commands.iter().filter(|one| one.contains(preset)).filter(equal).count()
        };
        assert_eq!(["--preset default ", "--preset wiki-cc "].map(|of| trained(of, true)), [1; 2]);
        assert_eq!(trained("--preset default ", false), all, "{name}");
        let conditions = levels(&plan, "condition");
        assert!(
            ["default-equal", "untrained", "wiki-cc"]
                .iter()
                .all(|of| conditions.contains(&(*of).to_owned()))
        );
        assert_eq!(conditions.contains(&"default".to_owned()), all == 1, "{name}");
    }
    // Invented text is of one amount: what would be one encoder under two names is one condition.
    for (name, wanted) in [("domain", "default-equal"), ("table-1", "default")] {
        let conditions =
            levels(&planned(&Study::find(name).unwrap(), Scale::Tiny).unwrap(), "condition");
        let own: Vec<&String> = conditions
            .iter()
            .filter(|of| of.starts_with("default") && !of.contains("anchors"))
            .collect();
        assert_eq!(own, [wanted], "{name}");
    }
}

/// Vectors of different vocabularies are compared on a common one too.
#[test]
fn static_vectors_are_aligned_on_the_encoders_vocabulary() {
    let plan = planned(&Study::find("align-words").unwrap(), Scale::Tiny).unwrap();
    let of = |system: &str, vocabulary: &str| {
        let has = |one: &&Extraction| {
            one.factors["system"] == system && one.factors["vocabulary"] == vocabulary
        };
        plan.extractions.iter().filter(has).count()
    };
    for system in ["fasttext", "embeddings", "monolingual", "untrained"] {
        assert!(of(system, "own") > 0);
        assert_eq!(of(system, "own"), of(system, "common"), "{system}");
    }
}
