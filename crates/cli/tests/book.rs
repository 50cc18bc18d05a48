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
        let text = fs::read_to_string(&document).unwrap();
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
                true => fs::read_to_string(&target).is_ok_and(heading),
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
