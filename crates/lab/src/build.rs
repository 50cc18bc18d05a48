//! Which build of the program computed a result.

use std::collections::BTreeMap;
use std::fmt;

/// A build of the program.
///
/// It is recorded with every result and is part of no key: results of two builds whose commands have the same
/// revisions may be put together, and readers are warned that they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    pub version: String,
    /// The commit that was built, with `-dirty` where files differed from it; none where git was not available.
    pub commit: Option<String>,
    /// The architecture and the operating system.
    pub target: String,
    /// The target features that the compiler could count on.
    pub features: String,
}

impl fmt::Display for Build {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit = self.commit.as_deref().unwrap_or("unknown commit");
        write!(out, "{} ({commit}, {}", self.version, self.target)?;
        match &*self.features {
            "" => out.write_str(")"),
            features => write!(out, ", {features})"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildCounts(pub BTreeMap<String, usize>);

impl BuildCounts {
    pub fn of<'a>(builds: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts = BTreeMap::new();
        for build in builds {
            *counts.entry(build.to_owned()).or_default() += 1;
        }
        Self(counts)
    }

    /// What to say where results of several builds are put together; none of one build.
    pub fn warning(&self, what: &str) -> Option<String> {
        if self.0.len() < 2 {
            return None;
        }
        let each = self.0.iter().map(|(build, count)| format!("{count} of {build}"));
        Some(format!(
            "{what} of {} builds are put together: {}",
            self.0.len(),
            each.collect::<Vec<_>>().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_builds_are_said_to_be_several() {
        let build = |commit: Option<&str>| Build {
            version: "0.1.0".to_owned(),
            commit: commit.map(str::to_owned),
            target: "x86_64-linux".to_owned(),
            features: "avx2".to_owned(),
        };
        let (old, new) = (build(None).to_string(), build(Some("0123456789ab")).to_string());
        assert_eq!(new, "0.1.0 (0123456789ab, x86_64-linux, avx2)");
        assert_eq!(BuildCounts::of([&*old, &*old]).warning("results"), None);
        let warning = BuildCounts::of([&*old, &*new, &*old]).warning("results").unwrap();
        assert!(
            warning.starts_with("results of 2 builds are put together: 1 of 0.1.0 (0123"),
            "{warning}"
        );
        assert!(warning.ends_with("2 of 0.1.0 (unknown commit, x86_64-linux, avx2)"), "{warning}");
    }
}
