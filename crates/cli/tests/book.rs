//! The documents: every page of the book is in its summary, every link leads somewhere, and the README fits on
//! a screen or two.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Markdown file below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of a document outside blocks of code.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    document.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        !in_block && !fence
    })
}

/// Where the links of a document lead: `[text](target)`, and `src` and `srcset` of HTML.
fn links(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(document) {
        // What stands between backticks is code.
        let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            found.extend(rest.split(')').next().map(str::to_owned));
        }
        for mark in ["src=\"", "srcset=\"", "href=\""] {
            let quoted = line.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(quoted.map(str::to_owned));
        }
    }
    found
}

/// The text of a page as mdBook shows it: what it includes stands in its place, with links that lead on from the page.
fn with_included(page: &Path) -> String {
    let text = fs::read_to_string(page).unwrap();
    let line = |line: &str| match line.strip_prefix("{{#include ") {
        Some(path) => {
            fs::read_to_string(page.parent().unwrap().join(path.trim_end_matches('}'))).unwrap()
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The anchors of a document's headings, as GitHub and mdBook name them.
fn anchors(document: &str) -> BTreeSet<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = BTreeSet::new();
    for heading in prose(document).filter(|line| line.starts_with('#')) {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = seen.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
}

#[test]
fn every_page_is_in_the_summary() {
    let source = root().join("docs/src");
    let summary = source.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).unwrap();
    let listed: BTreeSet<PathBuf> = links(&text).iter().map(|link| source.join(link)).collect();
    let there: BTreeSet<PathBuf> =
        pages(&source).into_iter().filter(|page| *page != summary).collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    assert!(missing.is_empty(), "not in docs/src/SUMMARY.md: {missing:?}");
    let dead: Vec<_> = listed.difference(&there).collect();
    assert!(dead.is_empty(), "in docs/src/SUMMARY.md, but not there: {dead:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let names =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/RESULTS.md"];
    let mut documents: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
    documents.extend(pages(&root.join("docs/src")));
    let (mut dead, mut followed) = (Vec::new(), 0);
    for document in documents {
        let text = with_included(&document);
        for link in links(&text) {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            followed += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap().join(path),
            };
            let heading = |text: String| anchor.is_empty() || anchors(&text).contains(anchor);
            let leads = match target.extension().is_some_and(|extension| extension == "md") {
                true => target.is_file() && heading(with_included(&target)),
                false => target.exists(),
            };
            if !leads {
                dead.push(format!("{}: {link}", document.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(dead.is_empty(), "{} of {followed}:\n{}", dead.len(), dead.join("\n"));
    assert!(followed > 60, "only {followed} links were found");
}

/// The names of the crates that a manifest depends on, tests aside.
fn dependencies(manifest: &str, crates: &BTreeSet<String>) -> BTreeSet<String> {
    let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap();
    let lines = rest.split("\n[").next().unwrap().lines();
    let names = lines.filter_map(|line| line.split(['.', ' ']).next());
    let names = names.map(|name| if name == "command-line" { "cli" } else { name });
    names.filter(|name| crates.contains(*name)).map(str::to_owned).collect()
}

/// What ARCHITECTURE.md says that each crate depends on is what its manifest says; "everything" is most of them.
#[test]
fn the_architecture_names_each_crates_dependencies() {
    let folder = root().join("crates");
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let crates: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for name in &crates {
        let manifest = fs::read_to_string(folder.join(name).join("Cargo.toml")).unwrap();
        let real = dependencies(&manifest, &crates);
        let row = text.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row of `{name}`"));
        let said = row.split('|').nth(3).unwrap();
        if said.contains("everything") || said.contains("readers") {
            assert!(real.len() > crates.len() / 2, "`{name}` depends on {real:?} alone");
            continue;
        }
        let said: BTreeSet<String> =
            said.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(said, real, "ARCHITECTURE.md, `{name}`");
    }
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let words = readme.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
    let count = words.count();
    assert!(count <= 600, "the README has {count} words; the book is the place for more");
}

/// The rows of the table of speed that `bench/all.py` writes into a page: what, beside whom, how many times as fast.
fn speed_rows(page: &str) -> Vec<[String; 3]> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let (_, rest) = text.split_once("<!-- speed: written by bench/all.py -->").unwrap();
    let (table, _) = rest.split_once("<!-- /speed -->").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        [cells[1], cells[2], cells[3]].map(str::to_owned)
    })
    .collect()
}

#[test]
fn the_readme_and_the_results_show_the_same_speed() {
    let (short, long) = (speed_rows("README.md"), speed_rows("bench/RESULTS.md"));
    assert!(
        short.len() >= 4 && long.len() > short.len(),
        "{} and {} rows",
        short.len(),
        long.len()
    );
    for row in short {
        assert!(long.contains(&row), "only README has {row:?}: python bench/all.py --write");
    }
}

/// A block of shell commands of a tutorial, and what the comments before it say about its test:
/// `<!-- test: A => B -->` writes B for A, so that it takes seconds; `skip, REASON` leaves it out;
/// `data` runs it where there is real data; `given` runs it with the files of [`given`].
struct ShellBlock {
    page: String,
    commands: String,
    notes: Vec<String>,
}

fn shell_blocks(page: &str, document: &str) -> Vec<ShellBlock> {
    let (mut blocks, mut notes, mut open) = (Vec::new(), Vec::new(), None::<String>);
    for line in document.lines() {
        if let Some(commands) = &mut open {
            if line == "```" {
                let (page, commands) = (page.to_owned(), open.take().unwrap());
                blocks.push(ShellBlock { page, commands, notes: std::mem::take(&mut notes) });
            } else {
                commands.push_str(line);
                commands.push('\n');
            }
        } else if line == "```sh" {
            open = Some(String::new());
        } else if let Some(note) = line.strip_prefix("<!-- test: ") {
            notes.push(note.strip_suffix(" -->").expect("a comment ends on its line").to_owned());
        } else if !line.is_empty() {
            assert!(
                notes.is_empty(),
                "{page}: a comment on a test stands before its block: {line}"
            );
        }
    }
    assert!(open.is_none() && notes.is_empty(), "{page}: a block or a comment is left open");
    blocks
}

/// What a reader of the tutorial on models brings along: a small Hugging Face model and files of text.
fn given(folder: &Path) {
    let model = folder.join("mbert");
    if model.exists() {
        return;
    }
    fs::create_dir(&model).unwrap();
    for entry in fs::read_dir(root().join("crates/hub/tests/fixtures/bert")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    let pairs = [("Le chat", "The cat"), ("le tapis", "the mat"), ("assis", "sat"), ("sur", "on")];
    let side = |take: fn(&(&str, &str)) -> String| pairs.iter().map(take).collect::<String>();
    fs::write(folder.join("test.fr"), side(|pair| format!("{}\n", pair.0))).unwrap();
    fs::write(folder.join("test.en"), side(|pair| format!("{}\n", pair.1))).unwrap();
    let labels = ["entailment", "neutral", "contradiction"];
    let labelled = labels.map(|label| format!("The cat\tthe mat\t{label}\n")).concat();
    for name in ["train.tsv", "dev.tsv", "dev-fr.tsv"] {
        fs::write(folder.join(name), &labelled).unwrap();
    }
}

/// Every key that a command prints stands in its section of the book. The files are those of the tutorials.
fn json_is_as_described(folder: &Path) {
    let page = fs::read_to_string(root().join("docs/src/formats/json.md")).unwrap();
    let parallel = "--parallel qab=world/tatoeba/tatoeba.qab-qaa.qab --parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa";
    let words = "--source words-qab/layer-2.vec --target words-qaa/layer-2.vec";
    for (command, arguments) in [
        ("vocab stats", "joint".to_owned()),
        (
            "encode",
            "--model run --text qaa=world/tatoeba/tatoeba.qab-qaa.qaa --out j.npy".to_owned(),
        ),
        ("retrieve", format!("--model run {parallel}")),
        ("neighbours", "--model run --lang qaa --vocab qab so".to_owned()),
        ("align words", format!("{words} --test-dictionary world/muse/qab-qaa.txt")),
        ("cka", "qab.npy qaa.npy".to_owned()),
        ("language-id", "--vectors qab=qab.npy --vectors qaa=qaa.npy --layers 1".to_owned()),
        (
            "language-neurons",
            "--model run --text qab=world/tatoeba/tatoeba.qab-qaa.qab
                   --text qaa=world/tatoeba/tatoeba.qab-qaa.qaa --draws 1"
                .to_owned(),
        ),
        ("similarity", "qab.npy qaa.npy --measure anc,mexa".to_owned()),
        (
            "word-align",
            "--parallel qaa-qab=world/bitext/bitext.qaa-qab.tsv --out j.links".to_owned(),
        ),
        (
            "mine",
            "--model run --text qab=world/tatoeba/tatoeba.qab-qaa.qab
                   --text qaa=world/tatoeba/tatoeba.qab-qaa.qaa --out j.tsv"
                .to_owned(),
        ),
        (
            "score",
            "--task ner --gold world/ner/panx-test-qab.tsv --predicted
                   ner/predictions/qab.panx-test-qab.tsv"
                .to_owned(),
        ),
    ] {
        let heading = page.lines().find(|line| line.starts_with(&format!("## `{command}")));
        let heading =
            heading.unwrap_or_else(|| panic!("docs/src/formats/json.md has no {command}"));
        let section = page.split_once(heading).unwrap().1;
        let section = section.split("\n## ").next().unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_isogloss"))
            .args(command.split(' ').chain(arguments.split_whitespace()).chain(["--json"]))
            .current_dir(folder)
            .output()
            .unwrap();
        let printed: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{command}: {}", String::from_utf8_lossy(&output.stderr)));
        for key in printed.as_object().unwrap().keys() {
            let row = format!("| `{key}` |");
            assert!(section.contains(&row), "docs/src/formats/json.md, {heading}: no `{key}`");
        }
    }
}

/// Every command of the tutorials runs, in the order of the book and in one folder.
#[test]
fn tutorials_run_as_they_are_written() {
    let source = root().join("docs/src");
    let summary = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let tutorials: Vec<String> =
        links(&summary).into_iter().filter(|link| link.starts_with("tutorials/")).collect();
    let folder = tempfile::tempdir().unwrap();
    let data = terms::tests::real_data();
    if let Some(data) = data.as_ref() {
        std::os::unix::fs::symlink(data, folder.path().join("data")).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_isogloss")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut run = 0;
    for page in tutorials {
        let document = fs::read_to_string(source.join(&page)).unwrap();
        for ShellBlock { page, mut commands, notes } in shell_blocks(&page, &document) {
            let mut left_out = false;
            for note in notes {
                match note.split_once(" => ") {
                    Some((from, to)) => {
                        assert!(commands.contains(from), "{page}: no `{from}` in:\n{commands}");
                        commands = commands.replace(from, to);
                    }
                    None if note == "given" => given(folder.path()),
                    None if note == "data" => left_out |= data.is_none(),
                    None => {
                        assert!(note.starts_with("skip, "), "{page}: what is `{note}`?");
                        left_out = true;
                    }
                }
            }
            if left_out {
                continue;
            }
            let mut bash = std::process::Command::new("bash");
            bash.args(["-euo", "pipefail", "-c", &commands]).current_dir(folder.path());
            let began = std::time::Instant::now();
            let output =
                bash.env("PATH", &path).stdin(std::process::Stdio::null()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}:\n{commands}\n{printed}");
            println!("{page}: {:.1} s", began.elapsed().as_secs_f64());
            run += 1;
        }
    }
    json_is_as_described(folder.path());
    assert!(run >= 20, "only {run} blocks were run");
}

/// Every table and figure of both papers has its line in the book.
#[test]
fn every_table_and_figure_is_in_the_book() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_isogloss"))
        .args(["study", "list", "--papers", "--json"])
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = fs::read_to_string(root().join("docs/src/studies/papers.md")).unwrap();
    let items = listed["items"].as_array().unwrap();
    for item in items {
        let (paper, name) = (item["paper"].as_str().unwrap(), item["item"].as_str().unwrap());
        let row = format!("| {paper}, {name} |");
        assert!(page.contains(&row), "docs/src/studies/papers.md has no line `{row}`");
    }
    assert!(items.len() > 20);
}
