//! What must be fetched for an entry in some languages, and what is made of each file.

use crate::convert::Conversion;
use crate::entries::DatasetEntry;

/// A file to fetch, once, whatever the number of languages that lie in it.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) url: String,
    pub(crate) sha256: Option<String>,
    pub(crate) wanted: Vec<TargetFile>,
}

#[derive(Debug)]
pub(crate) struct TargetFile {
    pub(crate) member: Option<String>,
    pub(crate) to: String,
    pub(crate) convert: Conversion,
    pub(crate) language: String,
}

impl TargetFile {
    /// Whether the lines of both belong to one another.
    pub(crate) fn is_parallel_to(&self, other: &TargetFile) -> bool {
        let parallel = [self, other].iter().all(|file| file.convert == Conversion::Parallel);
        parallel && self.language == other.language && self.to != other.to
    }
}

impl Download {
    pub(crate) fn file_name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }

    /// Whether the one file to make is what is fetched.
    pub(crate) fn is_plain(&self) -> bool {
        let plain = |wanted: &TargetFile| wanted.member.is_none() && wanted.convert.is_copy();
        self.wanted.iter().all(plain)
    }

    /// The address at another server that has the same paths.
    pub(crate) fn at(&self, mirror: Option<&str>) -> String {
        let Some(mirror) = mirror else { return self.url.clone() };
        let path = self.url.splitn(4, '/').nth(3).unwrap_or_default();
        format!("{}/{path}", mirror.trim_end_matches('/'))
    }
}

/// Everything to fetch, in the order of the catalogue.
pub(crate) fn needs(entry: &DatasetEntry, languages: &[String]) -> Vec<Download> {
    let mut needs: Vec<Download> = Vec::new();
    for language in languages {
        for source in &entry.sources {
            let url = entry.fill(&source.url, language);
            let wanted = source.files.iter().map(|file| TargetFile {
                member: file.member.as_deref().map(|member| entry.fill(member, language)),
                to: entry.fill(&file.to, language),
                convert: file.convert,
                language: language.clone(),
            });
            match needs.iter_mut().find(|need| need.url == url) {
                Some(need) => need.wanted.extend(wanted),
                None => {
                    let (sha256, wanted) = (source.sha256.clone(), wanted.collect());
                    needs.push(Download { url, sha256, wanted });
                }
            }
        }
    }
    needs
}
