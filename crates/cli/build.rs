//! Tells the program which commit it is built from and for which target. Without git, or outside a checkout, the
//! commit is left out and the build is none the worse.

use std::path::Path;
use std::process::Command;

fn main() {
    // Sources of all crates: a change to any of them makes the checkout differ from its commit.
    for entry in std::fs::read_dir("..").into_iter().flatten().flatten() {
        let sources = entry.path().join("src");
        if sources.is_dir() {
            println!("cargo::rerun-if-changed={}", sources.display());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD grows with every commit, checkout and merge, also in a linked worktree.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".."]);
        let dirty = if changed.is_some_and(|files| !files.is_empty()) { "-dirty" } else { "" };
        println!("cargo::rustc-env=ISOGLOSS_COMMIT={commit}{dirty}");
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (arch, os) = (variable("CARGO_CFG_TARGET_ARCH"), variable("CARGO_CFG_TARGET_OS"));
    println!("cargo::rustc-env=ISOGLOSS_TARGET={arch}-{os}");
    // Part of every x86-64 processor, and so of no interest.
    let baseline = ["fxsr", "sse", "sse2", "x87"];
    let features = variable("CARGO_CFG_TARGET_FEATURE");
    let features: Vec<&str> =
        features.split(',').filter(|feature| !baseline.contains(feature)).collect();
    println!("cargo::rustc-env=ISOGLOSS_FEATURES={}", features.join("+"));
}

/// What a git command prints, if there is git and a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
