//! Every command that writes, as small as it gets: how it is begun, how it goes on after a kill, and what it leaves.

use std::path::{Path, PathBuf};

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

/// A command with a seed, which is begun anew by `--force`.
const fn seeded(name: &'static str, begin: &'static str) -> Recipe {
    Recipe { name, begin, resume: Resume::Force, exclusive: false, seeded: true }
}

/// A command without a seed that, given again, finds what is there and goes on.
const fn repeatable(name: &'static str, begin: &'static str) -> Recipe {
    Recipe { resume: Resume::Same, seeded: false, ..seeded(name, begin) }
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
pub(crate) const RECIPES: [Recipe; 14] = [
    run(
        "pretrain",
        "pretrain --world {base}/world --steps 12 --checkpoint-every 2 --evaluate-every 4 --set stages=[] \
            --vocabulary.merges 60 --batch.sequences 4 --text.dev 40 --encoder.layers 2 --encoder.dim 16 \
            --encoder.heads 2 --encoder.hidden 32 --seed {seed} --out out --device cpu --threads 1",
        "pretrain --resume --out out --device cpu --threads 1",
    ),
    run(
        "transfer",
        "transfer --task ner --model {base}/run --world {base}/world --quick --epochs 2 --limit 12 \
            --lr 1e-3,2e-3 --seeds {seed} --out out --device cpu --threads 1",
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
    repeatable("study", "study run {base}/study.toml --lab lab --device cpu"),
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
    seeded("hub export", "hub export --model {base}/run{seed} --out out --device cpu --threads 1"),
    seeded(
        "encode",
        "encode --model {base}/run{seed} --text qaa={base}/text.txt --out out.npy --device cpu --threads 1",
    ),
];

/// What recipes need filled in.
pub(crate) struct Place<'a> {
    pub(crate) base: &'a Path,
    pub(crate) server: &'a str,
}

impl Place<'_> {
    /// A command line as arguments.
    pub(crate) fn line(&self, line: &str, seed: u32) -> Vec<String> {
        let line = line.replace("{sizes}", SIZES);
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
        if self.name != "study" {
            let tree = Tree::of(folder).map_err(|error| error.to_string())?;
            return Ok(Outcome { tree, numbers: String::new() });
        }
        // A laboratory's database has the times in it; its numbers are what counts.
        let numbers = numbers(binary, folder)?;
        Ok(Outcome { tree: Tree::of(Path::new("/nonexistent")).expect("nothing"), numbers })
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
