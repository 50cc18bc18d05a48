//! Every command that writes, as small as it gets: how it is begun, how it goes on after a kill, and what it leaves.

use std::path::{Path, PathBuf};

use torment::readers::copy;

use crate::process::Binary;
use crate::tree::{Tree, without_clocks};

/// A command that writes into the folder that it is run in.
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    /// Its command line; `{base}` is the folder of materials, `{seed}` one of two seeds, `{server}` the address of
    /// the server of the harness.
    begin: &'static str,
    /// What is typed after a kill.
    resume: Resume,
    /// Whether two that run at once must not both succeed: a run's folder belongs to one.
    pub(crate) exclusive: bool,
    /// Whether the seed changes what is written.
    pub(crate) seeded: bool,
    /// Materials that are copied into the folder first.
    pub(crate) copies: &'static [&'static str],
    /// What two undisturbed runs agree in.
    agree: Agree,
}

/// What of the outcome of a command can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Agree {
    /// Every file.
    Files,
    /// The records of the laboratory.
    Numbers,
    /// Nothing: its files have dates or the path of the folder in them.
    Nothing,
}

/// How a command that was killed is given again.
enum Resume {
    /// With `--force`.
    Force,
    /// As it was.
    Same,
    /// With `--resume`.
    Flag,
    /// By another line.
    Line(&'static str),
}

const SIZES: &str = "--set nli={train=6,dev=3,test=3} --set ner={train=12,dev=4,test=4} \
    --set treebank={train=4,dev=2,test=2,parallel=2} --set parallel={train=20,dev=4,test=4} \
    --set tatoeba=20 --set classify={train=8,dev=4,test=4}";

/// A run of a few seconds, with all that a run may have, and one that goes on from a model.
const SMALL: &str = "--world {base}/world --preset sep-emb-l1-3 --steps 12 --checkpoint-every 2 --evaluate-every 4 \
    --set stages=[{steps=3,length=16},{steps=2,sequences=2}] --set snapshots=3 \
    --vocabulary.merges 60 --batch.sequences 4 --text.dev 40 --encoder.layers 2 --encoder.dim 16 --encoder.heads 2 \
    --encoder.hidden 32 --seed {seed} --out out --device cpu";
const MORE: &str = "--steps 6 --checkpoint-every 2 --set stages=[] --batch.sequences 4 --text.dev 40 --seed {seed} \
    --out out --device cpu --threads 1";
const BOTH: &str = "--parallel qaa={base}/text.txt --parallel qab={base}/text.qab.txt";
const RESUME: &str = "pretrain --resume --out out --device cpu --threads 1";
const RANKS: &str = "pretrain --resume --out out --device cpu --threads 1 --ranks 2";

/// A command with a seed, which is begun anew by `--force`.
const fn seeded(name: &'static str, begin: &'static str) -> Recipe {
    let (resume, copies, agree) = (Resume::Force, &[], Agree::Files);
    Recipe { name, begin, resume, exclusive: false, seeded: true, copies, agree }
}

/// A command without a seed that is begun anew by `--force`.
const fn forced(name: &'static str, begin: &'static str) -> Recipe {
    Recipe { seeded: false, ..seeded(name, begin) }
}

/// A command without a seed that, given again, finds what is there and goes on.
const fn repeatable(name: &'static str, begin: &'static str) -> Recipe {
    Recipe { resume: Resume::Same, seeded: false, ..seeded(name, begin) }
}

/// A command of studies, whose laboratory holds these materials.
const fn study(
    name: &'static str,
    begin: &'static str,
    agree: Agree,
    copies: &'static [&'static str],
) -> Recipe {
    Recipe { agree, copies, ..repeatable(name, begin) }
}

/// A training in a file, which saves its state beside it.
const fn vectors(name: &'static str, begin: &'static str) -> Recipe {
    Recipe { resume: Resume::Flag, ..seeded(name, begin) }
}

/// A run in a folder of its own.
const fn run(name: &'static str, begin: &'static str, resume: &'static str) -> Recipe {
    Recipe { resume: Resume::Line(resume), exclusive: true, ..seeded(name, begin) }
}

/// The commands.
pub(crate) static RECIPES: [Recipe; 44] = [
    run("pretrain", "pretrain {small} --threads 1", RESUME),
    run("ranks", "pretrain {small} --threads 1 --ranks 2", RANKS),
    run("from", "pretrain --from {base}/run --text qaa={base}/text.txt {more}", RESUME),
    run(
        "add-language",
        "pretrain --from {base}/run --add-language qac={base}/text.qab.txt --vocabulary.merges 20 {more}",
        RESUME,
    ),
    run(
        "transfer",
        "transfer --task ner --model {base}/run --world {base}/world --quick --epochs 2 --limit 12 \
            --lr 1e-3,2e-3 --train-layers 2 --shift-layer 1 --means {base}/means.safetensors --alpha 0,1 --seeds {seed} --out out --device cpu --threads 1",
        "transfer --resume --out out --device cpu --threads 1",
    ),
    vectors(
        "word2vec",
        "vectors word2vec --text qaa={base}/text.txt --lines --dim 16 --epochs 12 --seed {seed} --threads 1 \
            --out out.vec",
    ),
    vectors(
        "glove",
        "vectors glove --text qaa={base}/text.txt --lines --dim 16 --epochs 25 --seed {seed} --threads 1 \
            --out out.vec",
    ),
    seeded("world", "world generate --out out --sentences 200 --seed {seed} {sizes}"),
    seeded(
        "vocabulary",
        "vocab train --text qaa={base}/text.txt --text qab={base}/text.qab.txt --merges 6{seed} --out out",
    ),
    repeatable(
        "corpus",
        "corpus prepare --vocab {base}/run/vocabulary --out out --text qaa={base}/text.txt \
            --text qab={base}/text.qab.txt --dev 20 --test 20",
    ),
    study("study", "study run {base}/study.toml --lab lab --device cpu", Agree::Numbers, &[]),
    study(
        "jobs",
        "study run {base}/study.toml --lab lab --device cpu --jobs 2",
        Agree::Numbers,
        &[],
    ),
    study("step", "study step {step} --lab lab", Agree::Nothing, &[]),
    study(
        "submit",
        "study submit {base}/study.toml --lab lab --device cpu --slurm --dry-run",
        Agree::Nothing,
        &[],
    ),
    study(
        "collect",
        "study collect {base}/study.toml --lab lab --device cpu",
        Agree::Numbers,
        &["lab/steps"],
    ),
    study("unpack", "study unpack {base}/pack.tar.zst --lab lab", Agree::Numbers, &[]),
    Recipe {
        agree: Agree::Nothing,
        ..forced("report", "report --lab {base}/lab --out out.html --figures figures")
    },
    forced("pack", "study pack {base}/lab --out out.tar.zst"),
    study(
        "results add",
        "results add --measure accuracy --value 0.1 --command x --lab lab",
        Agree::Numbers,
        &[],
    ),
    study("record", "vocab stats {base}/run/vocabulary --record-in lab", Agree::Numbers, &[]),
    forced("results", "results --lab {base}/lab --format csv --out out.csv"),
    seeded("explore", "explore {base}/run{seed} --export out.html --device cpu --threads 1"),
    seeded(
        "alter",
        "corpus alter --text qaa={base}/text.txt --order permuted --seed {seed} --out out.txt --original out-plain.txt \
            --dictionary out.dic --threads 1",
    ),
    seeded(
        "filter",
        "corpus filter --parallel qaa={base}/text.txt --parallel qab={base}/text.qab.txt --max-tokens 1{seed} \
            --out out.qaa --out out.qab",
    ),
    // Each seed keeps a state of its own in the folder of work, so that two writers of two seeds would leave both.
    forced(
        "sweep",
        "shift sweep --model {base}/run --means {base}/means.safetensors {both} --layers 1 --alpha 1 --work work --out out.json \
            --device cpu --threads 1",
    ),
    seeded(
        "map",
        "map --model {base}/run {both} --sample-size 20 \
            --seed {seed} --out out.svg --device cpu --threads 1",
    ),
    repeatable("data get", "data get tatoeba --lang fr --mirror {server} --out out"),
    seeded(
        "align words",
        "align words --source {base}/a.vec --target {base}/b.vec --dictionary {base}/dictionary.txt \
            --max-vocab 4{seed} --out out.vec --save-map out.npy --threads 1",
    ),
    seeded(
        "word-align",
        "word-align -p qaa-qab={base}/bitext.tsv --iterations {seed} --out links.txt --save out.model --threads 1",
    ),
    seeded(
        "mine",
        "mine --model {base}/run --text qaa={base}/text.txt --text qab={base}/text.qab.txt --threshold 1.0{seed} \
            --work work --out out.tsv --device cpu --threads 1",
    ),
    seeded(
        "align contexts",
        "align contexts --model {base}/run --parallel qaa-qab={base}/bitext.tsv --links {base}/links.txt \
            --sample-size 1{seed} --out out --device cpu --threads 1",
    ),
    seeded(
        "align many",
        "align many --vectors qaa={base}/a.vec --vectors qab={base}/b.vec --dictionary qaa-qab={base}/dictionary.txt \
            --max-vocab 4{seed} --out out --threads 1",
    ),
    seeded("cka", "cka --model {base}/run{seed} {both} --svg out.svg --device cpu --threads 1"),
    seeded(
        "similarity",
        "similarity --model {base}/run{seed} {both} --svg out.svg --device cpu --threads 1",
    ),
    forced(
        "exclude",
        "corpus exclude --text qaa={base}/text.txt --exclude {base}/bitext.tsv --out out.txt",
    ),
    forced(
        "paraphrases",
        "corpus paraphrases --parallel qaa-qab={base}/twice.tsv --lang qaa --out out.tsv",
    ),
    seeded(
        "retrieve",
        "retrieve --model {base}/run{seed} {both} --limit 20 --out out.json --device cpu --threads 1",
    ),
    seeded(
        "difference",
        "shift difference --model {base}/run --means {base}/means.safetensors --from qab --to qaa --layer {seed} \
            --out out.npy --device cpu --threads 1",
    ),
    seeded(
        "means",
        "shift means --model {base}/run{seed} --text qaa={base}/text.txt --text qab={base}/text.qab.txt \
            --out out.safetensors --device cpu --threads 1",
    ),
    seeded(
        "words",
        "words --model {base}/run{seed} --text qaa={base}/text.txt --limit 20 --out out --device cpu --threads 1",
    ),
    seeded("convert", "vectors convert {base}/a.vec --limit 4{seed} --out out.bin"),
    forced("hub import", "hub import {base}/hf --out out --device cpu --threads 1"),
    seeded("hub export", "hub export --model {base}/run{seed} --out out --device cpu --threads 1"),
    seeded(
        "encode",
        "encode --model {base}/run{seed} --text qaa={base}/text.txt --out out.npy --device cpu --threads 1",
    ),
];

/// Commands without a recipe, and why.
#[cfg(test)]
const LEFT_OUT: [(&str, &str); 22] = [
    ("bench encode", PRINTS),
    ("bench mlm", PRINTS),
    ("bench search", PRINTS),
    ("completions", PRINTS),
    ("data list", PRINTS),
    ("demo", "it runs commands that have recipes, for longer than a case may take"),
    ("hub download", "it wants a hub; crates/cli/tests/hub_download.rs has a hostile one"),
    ("inspect", PRINTS),
    ("language-id", PRINTS),
    ("language-neurons", PRINTS),
    ("man", "it writes again what it would write"),
    ("neighbours", PRINTS),
    ("score", PRINTS),
    ("shift translate", PRINTS),
    ("study cancel", "it wants a cluster; crates/cli/tests/slurm.rs has one"),
    ("study keys", PRINTS),
    ("study list", PRINTS),
    ("study plan", "it writes a graph for Snakemake alone, which the materials are made with"),
    ("study show", PRINTS),
    ("study status", PRINTS),
    ("word-align score", PRINTS),
    ("world show", PRINTS),
];
#[cfg(test)]
const PRINTS: &str = "it prints alone";

/// The recipe of a name.
pub(crate) fn recipe(name: &str) -> &'static Recipe {
    RECIPES.iter().find(|recipe| recipe.name == name).expect("of the list")
}

/// The file of materials with the words of `study step`.
pub(crate) const STEP: &str = "step";

/// What recipes need filled in.
pub(crate) struct Place<'a> {
    pub(crate) base: &'a Path,
    pub(crate) server: &'a str,
}

impl Place<'_> {
    /// A command line as arguments.
    pub(crate) fn line(&self, line: &str, seed: u32) -> Vec<String> {
        // One step of the study, by its key, and the file of its graph.
        let step = std::fs::read_to_string(self.base.join(STEP)).unwrap_or_default();
        let line = line.replace("{sizes}", SIZES).replace("{step}", &step);
        let line = line.replace("{small}", SMALL).replace("{more}", MORE).replace("{both}", BOTH);
        let fill = |word: &str| {
            word.replace("{base}", &self.base.display().to_string())
                .replace("{server}", self.server)
                .replace("{seed}", &seed.to_string())
        };
        line.split_whitespace().map(fill).chain(["-q".to_owned()]).collect()
    }
}

impl Recipe {
    pub(crate) fn begin(&self, place: &Place, seed: u32) -> Vec<String> {
        place.line(self.begin, seed)
    }

    /// Copies into the folder what the command finds there.
    pub(crate) fn lay_out(&self, place: &Place, folder: &Path) -> Result<(), String> {
        let copied = self
            .copies
            .iter()
            .try_for_each(|name| copy(&place.base.join(name), &folder.join(name)));
        copied.map_err(|error| error.to_string())
    }

    /// Whether its outcome can be compared.
    pub(crate) fn is_compared(&self) -> bool {
        self.agree != Agree::Nothing
    }

    /// Whether a second writer may replace what the first one wrote.
    pub(crate) fn takes_force(&self) -> bool {
        matches!(self.resume, Resume::Force)
    }

    /// What a person types after a kill, in the order in which one tries.
    pub(crate) fn again(&self, place: &Place, seed: u32) -> Vec<Vec<String>> {
        let begin = self.begin(place, seed);
        let with = |flag: &str| [begin.clone(), vec![flag.to_owned()]].concat();
        match self.resume {
            Resume::Force => vec![with("--force")],
            Resume::Same => vec![begin],
            Resume::Flag => vec![with("--resume"), begin],
            Resume::Line(line) => vec![place.line(line, seed), begin],
        }
    }

    /// What the folder holds in the end, for comparison.
    pub(crate) fn outcome(&self, binary: &Binary, folder: &Path) -> Result<Outcome, String> {
        let tree = |path: &Path| Tree::of(path).map_err(|error| error.to_string());
        let nothing = tree(Path::new("/nonexistent"))?;
        Ok(match self.agree {
            Agree::Files => Outcome { tree: tree(folder)?, numbers: String::new() },
            // A laboratory's database has the times in it; its numbers are what counts.
            Agree::Numbers => Outcome { tree: nothing, numbers: numbers(binary, folder)? },
            Agree::Nothing => Outcome { tree: nothing, numbers: String::new() },
        })
    }
}

/// The records of the study of the harness.
pub(crate) fn numbers(binary: &Binary, folder: &Path) -> Result<String, String> {
    if !folder.join("lab").exists() {
        return Ok(String::new());
    }
    let line = "results --lab lab --json".split(' ').map(str::to_owned).collect::<Vec<_>>();
    let ended = binary.run(folder, &line)?;
    if let Some(crash) = ended.crash() {
        return Err(crash);
    }
    let mut value: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    without_clocks(&mut value);
    Ok(value.to_string())
}

/// What a command left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tree: Tree,
    numbers: String,
}

impl Outcome {
    /// The same but for one file.
    pub(crate) fn without(&self, name: &str) -> Self {
        Self { tree: self.tree.without(name), numbers: self.numbers.clone() }
    }

    pub(crate) fn difference(&self, reference: &Self) -> Option<String> {
        let numbers = (self.numbers != reference.numbers).then(|| "other results".to_owned());
        self.tree.difference(&reference.tree).or(numbers)
    }
}

/// What a recipe leaves when nothing disturbs it, for each of two seeds, and how long it takes.
pub(crate) struct Reference {
    pub(crate) outcomes: [Outcome; 2],
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
}

/// Runs every recipe undisturbed, twice with the first seed: what differs then cannot be compared.
pub(crate) fn references(
    binary: &Binary,
    place: &Place,
    scratch: &Path,
) -> Result<Vec<Reference>, String> {
    let mut references = Vec::new();
    for recipe in &RECIPES {
        let mut seconds = 0.0;
        let mut bytes = 0;
        let mut run = |seed: u32, name: &str| -> Result<Outcome, String> {
            let folder: PathBuf = scratch.join(format!("reference-{}-{name}", recipe.name));
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            recipe.lay_out(place, &folder)?;
            let begun = std::time::Instant::now();
            let ended = binary.run(&folder, &recipe.begin(place, seed))?;
            seconds = begun.elapsed().as_secs_f64();
            if !ended.success() {
                return Err(format!("{}: {}\n{}", recipe.name, ended.message(), ended.stderr));
            }
            bytes = size(&folder);
            let outcome = recipe.outcome(binary, &folder)?;
            std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
            Ok(outcome)
        };
        let outcomes = [run(1, "a")?, run(2, "b")?];
        let again = run(1, "c")?;
        if let Some(difference) = again.difference(&outcomes[0]) {
            return Err(format!("{}: two undisturbed runs differ: {difference}", recipe.name));
        }
        if recipe.seeded && outcomes[0] == outcomes[1] {
            return Err(format!(
                "{}: two seeds give the same, so that races cannot be told",
                recipe.name
            ));
        }
        references.push(Reference { outcomes, seconds, bytes });
    }
    Ok(references)
}

fn size(path: &Path) -> u64 {
    if !path.is_dir() {
        return path.metadata().map_or(0, |metadata| metadata.len().next_multiple_of(4096));
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands by their pages in the book, which a test compares with the program, and what is said of each.
    fn commands() -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cli");
        let pages = std::fs::read_dir(folder).unwrap();
        let pages = pages.map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap());
        let sections = |page: String| {
            let sections = page.split("# `isogloss ").skip(1);
            let named = sections.filter_map(|section| section.split_once("`\n"));
            named.map(|(name, text)| (name.to_owned(), text.to_owned())).collect::<Vec<_>>()
        };
        pages.flat_map(sections).collect()
    }

    #[test]
    fn every_command_has_a_recipe_or_a_reason() {
        let commands = commands();
        assert!(commands.len() > 60, "{}", commands.len());
        let begins = |line: &str, name: &str| {
            line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        for (name, text) in &commands {
            let own = RECIPES.iter().any(|recipe| begins(recipe.begin, name));
            let group = commands.iter().any(|(other, _)| begins(other, name) && other != name);
            let reason = LEFT_OUT.iter().find(|(left_out, _)| left_out == name);
            assert!(own || group || reason.is_some(), "`{name}` has no recipe");
            let prints = reason.is_some_and(|&(_, reason)| reason == PRINTS);
            let writes = ["`--out", "`--svg", "`--save"].iter().any(|flag| text.contains(flag));
            assert!(!prints || !writes, "`{name}` does not print alone");
        }
        let known = |name: &&str| commands.iter().any(|(command, _)| command == name);
        assert!(LEFT_OUT.iter().all(|(name, _)| known(name)), "of a command that is gone");
    }
}
