//! A vocabulary's folder: `vocabulary.json` says what is there, `tokenizer.json` (one, or one per
//! language) can be loaded by Hugging Face's `tokenizers`, and `subwords.tsv` lists every subword with
//! its count in each language, to be read by people.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use files::{At, NewFolder, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::{
    ImportedTokenizer, LanguageManifest, SpecialTokens, Vocabulary, VocabularyKind,
    VocabularyLanguage, check_languages, foreign,
};
use crate::prepare::{Preparer, SimplificationTable};
use crate::{Error, Result};

const MANIFEST: &str = "vocabulary.json";
const SUBWORDS: &str = "subwords.tsv";
const SIMPLIFIED: &str = "simplified.tsv";
const FORMAT: u32 = 1;
/// The most subwords that a manifest may speak of; the largest vocabularies have a million.
const MOST_SUBWORDS: usize = 10_000_000;
const RETRAIN: &str = "train the vocabulary again, or restore the folder from a copy";

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    kind: VocabularyKind,
    size: usize,
    specials: SpecialTokens,
    languages: Vec<LanguageManifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imported: Option<ImportedTokenizer>,
    fingerprint: String,
}

/// Text that happens to contain `<mask>` is text: special tokens are only inserted by this crate.
pub(super) fn as_text(mut tokenizer: Tokenizer) -> Tokenizer {
    tokenizer.set_encode_special_tokens(true);
    tokenizer
}

impl Vocabulary {
    /// Writes the folder, whole or not at all; one that exists is replaced if `force` is set.
    pub fn save(&self, folder: &Path, force: bool) -> Result<()> {
        let draft = NewFolder::with_force(folder, force)?;
        for (name, text) in self.files()? {
            draft.write(&name, text.as_bytes())?;
        }
        let manifest = serde_json::to_string_pretty(&self.manifest()).expect("plain data");
        draft.write(MANIFEST, manifest.as_bytes())?;
        Ok(draft.finish()?)
    }

    /// Reads a folder, and refuses one that was changed since it was written.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        if !path.is_file() && folder.join("vocabulary").join(MANIFEST).is_file() {
            let remedy = "name the folder `vocabulary` in it";
            return Err(Error::file(folder, "is a run, not a vocabulary", remedy));
        }
        let text = std::fs::read_to_string(&path).at(&path, "read the vocabulary's manifest")?;
        let manifest: Manifest = serde_json::from_str(&text)
            .map_err(|error| Error::file(&path, error.to_string(), RETRAIN))?;
        if manifest.format != FORMAT {
            let reason = format!("is of format {}, not {FORMAT}", manifest.format);
            return Err(Error::file(&path, reason, RETRAIN));
        }
        check_languages(manifest.languages.iter().map(|language| language.name.as_str()))?;
        let outside = |language: &&LanguageManifest| !limits::is_plain_name(&language.tokenizer);
        if let Some(language) = manifest.languages.iter().find(outside) {
            let reason = format!("names `{}`, which is no file of its folder", language.tokenizer);
            return Err(Error::file(&path, reason, RETRAIN));
        }
        if manifest.kind == VocabularyKind::Imported {
            return Self::load_imported(folder, &manifest);
        }
        let (subwords, counts) = read_subwords(folder, &manifest)?;
        let languages = read_languages(folder, &manifest, counts)?;
        let vocabulary =
            Self::assemble(manifest.kind, manifest.specials, subwords, languages, None)?;
        vocabulary.unchanged(folder, &manifest)
    }

    /// The tokenizer file has the subwords, and there are no counts.
    fn load_imported(folder: &Path, manifest: &Manifest) -> Result<Self> {
        if manifest.size > MOST_SUBWORDS {
            let reason = format!("has {} subwords, more than {MOST_SUBWORDS}", manifest.size);
            return Err(Error::file(folder.join(MANIFEST), reason, RETRAIN));
        }
        let counts = vec![vec![0; manifest.size]; manifest.languages.len()];
        let languages = read_languages(folder, manifest, counts)?;
        let imported = manifest.imported.clone().ok_or_else(|| {
            Error::file(folder, "its manifest says nothing of its tokenizer", RETRAIN)
        })?;
        Self::adopt(languages, manifest.specials, manifest.size, imported)?
            .unchanged(folder, manifest)
    }

    fn unchanged(self, folder: &Path, manifest: &Manifest) -> Result<Self> {
        let vocabulary = self;
        if vocabulary.fingerprint != manifest.fingerprint {
            let reason = "the folder was changed since it was written";
            return Err(Error::file(folder, reason, RETRAIN));
        }
        Ok(vocabulary)
    }

    fn manifest(&self) -> Manifest {
        let entry = |index: usize| LanguageManifest {
            name: self.languages[index].name.clone(),
            tokenizer: self.tokenizer_file(index),
            preparation: self.languages[index].preparer.preparation(),
        };
        Manifest {
            format: FORMAT,
            kind: self.kind,
            size: self.subwords.len(),
            specials: self.specials,
            languages: (0..self.languages.len()).map(entry).collect(),
            imported: self.imported.clone(),
            fingerprint: self.fingerprint.clone(),
        }
    }

    /// One file for all languages where they share a tokenizer, one for each where they do not.
    fn tokenizer_file(&self, language: usize) -> String {
        match self.kind {
            VocabularyKind::Joint | VocabularyKind::WordPiece | VocabularyKind::Imported
                if self.has_first_tokenizer(language) =>
            {
                "tokenizer.json".to_owned()
            }
            _ => format!("tokenizer.{}.json", self.languages[language].name),
        }
    }

    /// The files that Hugging Face's `tokenizers` loads, by name.
    pub fn tokenizers(&self) -> Result<BTreeMap<String, String>> {
        let mut files = BTreeMap::new();
        for index in 0..self.languages.len() {
            // Languages that share a tokenizer share its file.
            if let Entry::Vacant(file) = files.entry(self.tokenizer_file(index)) {
                file.insert(self.tokenizer_json(index)?);
            }
        }
        Ok(files)
    }

    /// The tokenizer of a language, as Hugging Face's `tokenizers` loads it.
    pub fn tokenizer_json(&self, language: usize) -> Result<String> {
        self.languages[language].tokenizer.to_string(false).map_err(|error| {
            let file = self.tokenizer_file(language);
            Error::file(Path::new(&file), error.to_string(), "report this as a fault")
        })
    }

    /// The tokenizer of a language, or of all, which does to raw text what is done to it here before it is encoded. One that was imported
    /// stays as it came.
    ///
    /// # Errors
    /// Where no tokenizer can do that, or languages are not prepared alike.
    pub fn raw_tokenizer_json(&self, language: Option<usize>) -> Result<String> {
        let own = self.tokenizer_json(language.unwrap_or(0))?;
        if self.imported.is_some() {
            return Ok(own);
        }
        let preparer = self.preparer(language.unwrap_or(0));
        let all =
            (0..self.languages.len()).filter(|&other| language.is_none_or(|one| one == other));
        let unlike = all.map(|other| self.preparer(other)).find(|one| !one.prepares_like(preparer));
        if let Some(other) = unlike {
            let (a, b) = (preparer.language(), other.language());
            let reason = format!(
                "text of {a} is cut by other rules than text of {b}, and one tokenizer has one set"
            );
            let remedy = "name one language, or set `prepared` to export a tokenizer for text that is prepared already";
            return Err(Error::setting("prepared", reason, remedy));
        }
        let (normalizers, cuts) = preparer.as_steps()?;
        let mut tokenizer: Value = serde_json::from_str(&own).expect("a tokenizer is valid JSON");
        for (part, steps) in [("normalizer", normalizers), ("pre_tokenizer", cuts)] {
            if steps.is_empty() {
                continue;
            }
            let list = if part == "normalizer" { "normalizers" } else { "pretokenizers" };
            let own = Some(tokenizer[part].take()).filter(|own| !own.is_null());
            let steps: Vec<Value> = steps.into_iter().chain(own).collect();
            tokenizer[part] = json!({ "type": "Sequence", list: steps });
        }
        Ok(tokenizer.to_string())
    }

    /// One more than the largest id that the tokenizer of a language gives.
    pub fn tokenizer_size(&self, language: usize) -> usize {
        let ids = self.languages[language].tokenizer.get_vocab(true).into_values();
        ids.max().map_or(0, |largest| largest as usize + 1)
    }

    /// Every file but the manifest.
    fn files(&self) -> Result<BTreeMap<String, String>> {
        let mut files = self.tokenizers()?;
        if self.kind != VocabularyKind::Imported {
            files.insert(SUBWORDS.to_owned(), self.subwords_table());
        }
        if let Some(simplified) = self.simplified() {
            files.insert(SIMPLIFIED.to_owned(), simplified.to_text());
        }
        Ok(files)
    }

    fn subwords_table(&self) -> String {
        let mut table = String::from("id\tsubword");
        for language in &self.languages {
            let _ = write!(table, "\t{}", language.name);
        }
        table.push('\n');
        for (id, subword) in self.subwords.iter().enumerate() {
            let _ = write!(table, "{id}\t{subword}");
            for language in &self.languages {
                let _ = write!(table, "\t{}", language.counts[id]);
            }
            table.push('\n');
        }
        table
    }

    pub(super) fn compute_fingerprint(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        let manifest = Manifest { fingerprint: String::new(), ..self.manifest() };
        hasher.update(&serde_json::to_vec(&manifest).expect("plain data"));
        for (name, text) in self.files()? {
            hasher.update(name.as_bytes()).update(blake3::hash(text.as_bytes()).as_bytes());
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// The subwords, and for each language how often they occurred.
type SubwordsAndCounts = (Vec<String>, Vec<Vec<u64>>);

fn read_subwords(folder: &Path, manifest: &Manifest) -> Result<SubwordsAndCounts> {
    let path = folder.join(SUBWORDS);
    let text = std::fs::read_to_string(&path).at(&path, "read the list of subwords")?;
    let mut subwords = Vec::new();
    let mut counts = vec![Vec::new(); manifest.languages.len()];
    for (line, row) in (1..).zip(text.lines()).skip(1) {
        let mut columns = row.split('\t').skip(1);
        let subword = columns.next();
        let row: Option<Vec<u64>> = columns.map(|count| count.parse().ok()).collect();
        let (Some(subword), Some(row)) = (subword, row.filter(|row| row.len() == counts.len()))
        else {
            let reason = "not a subword with a count for each language";
            return Err(Error::line(path, line, reason, RETRAIN));
        };
        subwords.push(subword.to_owned());
        for (counts, count) in counts.iter_mut().zip(row) {
            counts.push(count);
        }
    }
    let known = |id: u32| (id as usize) < subwords.len();
    if subwords.len() != manifest.size || !manifest.specials.ids().into_iter().all(known) {
        let reason = format!("has {} subwords, not {}", subwords.len(), manifest.size);
        return Err(Error::file(&path, reason, RETRAIN));
    }
    Ok((subwords, counts))
}

fn read_languages(
    folder: &Path,
    manifest: &Manifest,
    counts: Vec<Vec<u64>>,
) -> Result<Vec<VocabularyLanguage>> {
    let simplify = manifest.languages.iter().any(|language| language.preparation.simplify);
    let simplified =
        simplify.then(|| SimplificationTable::read(&folder.join(SIMPLIFIED))).transpose()?;
    let simplified = simplified.map(Arc::new);
    let mut tokenizers: BTreeMap<&str, Arc<Tokenizer>> = BTreeMap::new();
    let mut languages = Vec::new();
    for (entry, counts) in manifest.languages.iter().zip(counts) {
        let tokenizer = match tokenizers.get(entry.tokenizer.as_str()) {
            Some(tokenizer) => Arc::clone(tokenizer),
            None => {
                let read = Arc::new(read_tokenizer(&folder.join(&entry.tokenizer), manifest.size)?);
                tokenizers.insert(&entry.tokenizer, Arc::clone(&read));
                read
            }
        };
        let preparer = Preparer::new(&entry.name, entry.preparation, simplified.clone())?;
        languages.push(VocabularyLanguage {
            name: entry.name.clone(),
            tokenizer,
            preparer,
            counts,
            own: Vec::new(),
        });
    }
    Ok(languages)
}

fn read_tokenizer(path: &Path, size: usize) -> Result<Tokenizer> {
    let tokenizer = foreign::read_tokenizer(path, RETRAIN)?;
    if tokenizer.get_vocab(true).into_values().any(|id| id as usize >= size) {
        return Err(Error::file(path, format!("has an id beyond {size}"), RETRAIN));
    }
    Ok(as_text(tokenizer))
}
