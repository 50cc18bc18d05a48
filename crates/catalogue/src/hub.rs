//! Downloads models of the Hugging Face hub into the cache that all its clients share.
//!
//! `hf-hub` knows the cache's layout, tokens and the list of a model's files. A file, and what the hub says of it, comes
//! through the client of this crate: that crate takes whatever a server sends and follows it wherever it leads, without
//! an end, and checks neither size nor digest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::At;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, CacheRepo, Repo, RepoType};
use serde::{Deserialize, Serialize};

use crate::DownloadObserver;
use crate::digest;
use crate::error::{Error, Result};
use crate::http::{self, Client, FetchError};

/// Files of configuration and tokenizer; those that exist are fetched.
const DESCRIPTION: [&str; 9] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
];

/// Weights, best first: a file, or an index and the shards that begin and end so.
const WEIGHTS: [(&str, &str, &str); 4] = [
    ("model.safetensors", "", ""),
    ("model.safetensors.index.json", "model-", ".safetensors"),
    ("pytorch_model.bin", "", ""),
    ("pytorch_model.bin.index.json", "pytorch_model-", ".bin"),
];

/// How long to wait after a first failure.
const PAUSE: Duration = Duration::from_millis(500);

/// The result of downloading a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubDownload {
    /// Its name.
    pub name: String,
    /// The branch, tag or commit that was asked for.
    pub revision: String,
    /// The commit that this is.
    pub commit: String,
    /// The folder with its files, which every command takes.
    pub folder: PathBuf,
    /// Its files.
    pub files: Vec<HubFile>,
    /// Whether the hub could not be reached, and this is the cached model.
    pub offline: bool,
}

/// A file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whether it was in the cache already.
    pub found: bool,
}

/// Fetches what is missing of a model.
pub fn download(name: &str, revision: &str, watch: &mut DownloadObserver) -> Result<HubDownload> {
    check_name(name)?;
    let hub = HubClient::new(name, revision)?;
    let info = match ask(|| hub.remote.info()) {
        Ok(info) => info,
        Err(trouble) => match hub.explain("", &trouble) {
            // The cached model is better than none.
            Error::Fetch { .. } if hub.cached().is_some() => return hub.offline(),
            complaint => return Err(complaint),
        },
    };
    let names: Vec<String> = info.siblings.into_iter().map(|file| file.rfilename).collect();
    // The commit is the name of a folder of the cache.
    hub.check_plain("commit", &info.sha)?;
    let folder = hub.local.pointer_path(&info.sha);
    let mut files = Vec::new();
    for file in choose(name, &names)? {
        let found = folder.join(&file).exists();
        if !found {
            hub.fetch(&file, &info.sha, watch)?;
        }
        let path = folder.join(&file);
        let bytes = fs::metadata(&path).at(&path, "read")?.len();
        files.push(HubFile { name: file, bytes, found });
    }
    hub.local.create_ref(&info.sha).at(&folder, "note the commit of")?;
    let (name, revision) = (name.to_owned(), revision.to_owned());
    Ok(HubDownload { name, revision, commit: info.sha, folder, files, offline: false })
}

fn check_name(name: &str) -> Result<()> {
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
    };
    match name.split('/').count() <= 2 && name.split('/').all(part) {
        true => Ok(()),
        false => {
            let reason = format!("`{name}` is not a valid model name");
            Err(Error::request(
                reason,
                "write it as OWNER/MODEL, such as google-bert/bert-base-cased",
            ))
        }
    }
}

/// Which of a model's files are needed here.
fn choose(model: &str, names: &[String]) -> Result<Vec<String>> {
    let has = |name: &str| names.iter().any(|other| other == name);
    let complain = |lacks: &str| {
        let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
        let reason = format!("it has no {lacks}, only {}", shown.join(", "));
        let remedy =
            "only checkpoints of `transformers` in PyTorch's or safetensors' form are read";
        Error::file(Path::new(model), reason, remedy)
    };
    if !has("config.json") {
        return Err(complain("config.json"));
    }
    let weights = WEIGHTS.iter().find(|(name, ..)| has(name));
    let (weights, begins, ends) = *weights.ok_or_else(|| complain("weights"))?;
    let shard = |name: &&String| {
        !begins.is_empty()
            && !name.contains('/')
            && name.starts_with(begins)
            && name.ends_with(ends)
    };
    let mut chosen: Vec<String> =
        DESCRIPTION.iter().filter(|name| has(name)).map(|&name| name.to_owned()).collect();
    chosen.push(weights.to_owned());
    chosen.extend(names.iter().filter(shard).cloned());
    Ok(chosen)
}

struct HubClient {
    name: String,
    revision: String,
    endpoint: String,
    remote: ApiRepo,
    cache: Cache,
    local: CacheRepo,
    client: Client,
    token: bool,
}

impl HubClient {
    /// Cache, server and token as the hub's other clients take them from the environment.
    fn new(name: &str, revision: &str) -> Result<Self> {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let home = Cache::from_env();
        let cache = set("HF_HUB_CACHE").map_or(home.clone(), |path| Cache::new(path.into()));
        let token = set("HF_TOKEN").map(|token| token.trim().to_owned()).or(home.token());
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let builder = ApiBuilder::from_cache(cache.clone()).with_endpoint(endpoint.clone());
        let builder = builder.with_token(token.clone()).with_progress(false);
        let api = builder.build().map_err(|error| {
            Error::request(format!("no client for {endpoint}: {error}"), "check HF_ENDPOINT")
        })?;
        let repo = || Repo::with_revision(name.to_owned(), RepoType::Model, revision.to_owned());
        let (remote, local) = (api.repo(repo()), cache.repo(repo()));
        let client = Client::new(PAUSE).with_token(&endpoint, token.clone());
        let (name, revision, token) = (name.to_owned(), revision.to_owned(), token.is_some());
        Ok(Self { name, revision, endpoint, remote, cache: home, local, client, token })
    }

    /// The folder of the commit that the cache has, if the model is whole there.
    fn cached(&self) -> Option<PathBuf> {
        let config = self.local.get("config.json")?;
        let folder = config.parent()?.to_owned();
        let names: Vec<String> = names_in(&folder);
        let whole = choose(&self.name, &names).ok()?;
        // An index names its shards; all of them must be there.
        let index = whole.iter().find(|name| name.ends_with(".index.json"));
        let complete = index.is_none_or(|index| shards_are_there(&folder, index));
        complete.then_some(folder)
    }

    fn offline(&self) -> Result<HubDownload> {
        let folder = self.cached().expect("it was asked for because it is there");
        let commit = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = Vec::new();
        for name in choose(&self.name, &names_in(&folder))? {
            let path = folder.join(&name);
            let bytes = fs::metadata(&path).at(&path, "read")?.len();
            files.push(HubFile { name, bytes, found: true });
        }
        let (name, revision) = (self.name.clone(), self.revision.clone());
        Ok(HubDownload { name, revision, commit, folder, files, offline: true })
    }

    /// Fetches a file of a commit, and once more from the beginning if what came is not it.
    fn fetch(&self, file: &str, commit: &str, watch: &mut DownloadObserver) -> Result<()> {
        let url = self.remote.url(file);
        let metadata = FileMetadata::of(&self.client, &url);
        let metadata = metadata.map_err(|trouble| self.explain(file, &trouble))?;
        if metadata.commit != commit {
            let reason = format!("`{}` moved on at the hub meanwhile", self.revision);
            return Err(Error::Fetch { url, reason, remedy: "ask again".into() });
        }
        // The mark is the name of a file of the cache.
        self.check_plain("mark of a file", &metadata.etag)?;
        let blob = self.local.blob_path(&metadata.etag);
        let folder = blob.parent().unwrap_or(&blob);
        fs::create_dir_all(folder).at(folder, "make the folder")?;
        // One process at a time adds to the cache of a model.
        let _together = files::lock_outputs([blob.as_path()]);
        for attempt in 0.. {
            if !blob.exists() {
                let fetched = self.client.fetch(&url, &blob, watch);
                fetched.map_err(|trouble| self.explain(file, &trouble))?;
            }
            let Some(reason) = differs(&blob, &metadata)? else { break };
            fs::remove_file(&blob).at(&blob, "remove")?;
            if attempt == 1 {
                return Err(Error::Fetch { url, reason, remedy: self.by_hand() });
            }
        }
        point(&self.local.pointer_path(commit).join(file), &blob, &metadata.etag)
    }

    /// What the server says becomes a name in the cache, and must not lead out of it.
    fn check_plain(&self, what: &str, name: &str) -> Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.is_empty() && name.chars().all(plain) {
            return Ok(());
        }
        let (url, shown) = (format!("{}/{}", self.endpoint, self.name), name.chars().take(100));
        let reason = format!("the server gives `{}` as the {what}", shown.collect::<String>());
        Err(Error::Fetch { url, reason, remedy: "check HF_ENDPOINT".into() })
    }

    /// What an error means, and what to do.
    fn explain(&self, file: &str, trouble: &FetchError) -> Error {
        let url = match file {
            "" => format!("{}/{}", self.endpoint, self.name),
            file => self.remote.url(file),
        };
        let (reason, remedy) = match trouble {
            FetchError::Status(401 | 403) => (self.refused(), self.access_remedy()),
            FetchError::Status(404) => {
                let reason = format!("there is no such model, or it has no `{}`", self.revision);
                (reason, format!("look for its name at {}/models", self.endpoint))
            }
            trouble => (trouble.reason(), self.by_hand()),
        };
        Error::Fetch { url, reason, remedy }
    }

    fn refused(&self) -> String {
        match self.token {
            true => "the token does not open this model".into(),
            false => "there is no such model, or it is private or gated and needs a token".into(),
        }
    }

    fn access_remedy(&self) -> String {
        format!(
            "Where a model is gated, accept its terms at {0}/{1} while logged in. Make a token at \
             {0}/settings/tokens, and set HF_TOKEN to it or write it into {2}",
            self.endpoint,
            self.name,
            self.cache.token_path().display()
        )
    }

    fn by_hand(&self) -> String {
        format!(
            "Ask again when there is a network: what has come so far is kept. Or download by hand \
             on another machine, from {}/{}/tree/{}, into one folder:\n  \
             config.json\n  tokenizer.json, or vocab.txt, or vocab.json and merges.txt\n  \
             model.safetensors with all its shards, or pytorch_model.bin\nEvery command that takes \
             a model takes that folder",
            self.endpoint, self.name, self.revision
        )
    }
}

struct FileMetadata {
    commit: String,
    /// The name of the file in the cache; of a large file, its SHA-256.
    etag: String,
    size: u64,
}

impl FileMetadata {
    /// The hub itself names commit and mark, also where it sends the client on to a store of large files, which names the
    /// size.
    fn of(client: &Client, url: &str) -> std::result::Result<Self, FetchError> {
        let heads = client.describe(url)?;
        let header = |name: &str| {
            heads
                .iter()
                .find_map(|head| head.headers.get(name))
                .and_then(|value| value.to_str().ok())
        };
        let lacks = |what: &str| FetchError::Refused(format!("the server's answer has no {what}"));
        let commit = header("x-repo-commit").ok_or_else(|| lacks("commit"))?.to_owned();
        let etag = header("x-linked-etag").or(header("etag")).ok_or_else(|| lacks("mark"))?;
        let etag = etag.trim_start_matches("W/").replace('"', "");
        let last = heads.last().and_then(|head| http::range(&head.headers));
        let size = last.and_then(|(_, size)| size).ok_or_else(|| lacks("size"))?;
        Ok(Self { commit, etag, size })
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn shards_are_there(folder: &Path, index: &str) -> bool {
    let text = fs::read_to_string(folder.join(index)).unwrap_or_default();
    let index: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let shards = index["weight_map"].as_object().into_iter().flat_map(|map| map.values());
    let mut shards = shards.filter_map(|shard| shard.as_str()).peekable();
    shards.peek().is_some() && shards.all(|shard| folder.join(shard).exists())
}

/// How a file differs from what the hub says of it. A large file's mark is its SHA-256.
fn differs(path: &Path, metadata: &FileMetadata) -> Result<Option<String>> {
    let digest = digest::of(path)?;
    let (came, promised) = (digest.bytes, metadata.size);
    if came != promised {
        return Ok(Some(format!("{came} bytes came where {promised} were promised, twice")));
    }
    let large = metadata.etag.len() == 64;
    Ok((large && digest.sha256 != metadata.etag)
        .then(|| "its SHA-256 is not the hub's, twice".into()))
}

/// What the library asks of the hub; it panics at some answers.
fn ask<T>(
    request: impl FnOnce() -> std::result::Result<T, ApiError>,
) -> std::result::Result<T, FetchError> {
    let answer = terms::guarded(request).ok_or_else(|| {
        FetchError::Refused("the server's answer is none that the hub gives".into())
    })?;
    answer.map_err(|error| match error {
        ApiError::RequestError(error) => http::classify(&error),
        error => FetchError::Broken(error.to_string()),
    })
}

/// Gives a file of the cache its name in a commit's folder, as the hub's other clients do.
fn point(name: &Path, blob: &Path, mark: &str) -> Result<()> {
    let folder = name.parent().unwrap_or(name);
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    if name.exists() {
        // By another process, meanwhile.
        return Ok(());
    }
    // A link to a file that is gone.
    let _ = fs::remove_file(name);
    #[cfg(unix)]
    let made = {
        let _ = blob;
        std::os::unix::fs::symlink(Path::new("../../blobs").join(mark), name)
    };
    #[cfg(not(unix))]
    let made = {
        let _ = mark;
        fs::copy(blob, name).map(drop)
    };
    Ok(made.at(name, "make")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Result<Vec<String>> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        choose("m", &names)
    }

    #[test]
    fn the_best_weights_are_chosen() {
        let all = [
            "README.md",
            "config.json",
            "pytorch_model.bin",
            "model.safetensors",
            "vocab.txt",
            "tf_model.h5",
        ];
        assert_eq!(chosen(&all).unwrap(), ["config.json", "vocab.txt", "model.safetensors"]);
        assert_eq!(chosen(&all[..3]).unwrap(), ["config.json", "pytorch_model.bin"]);
        let index = "model.safetensors.index.json";
        let (one, two) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
        let sharded = chosen(&["config.json", "x/model-1.safetensors", one, two, index]).unwrap();
        assert_eq!(sharded, ["config.json", index, one, two]);
        let error = chosen(&["config.json", "tf_model.h5"]).unwrap_err().to_string();
        assert!(error.contains("m: it has no weights, only config.json, tf_model.h5"), "{error}");
        chosen(&["model.safetensors"]).unwrap_err();
    }

    #[test]
    fn names_are_checked() {
        for name in ["bert-base-cased", "google-bert/bert-base_1.5"] {
            check_name(name).unwrap();
        }
        for name in ["", "a/b/c", "../x", "a/..", "a b", "/a", "a?x"] {
            check_name(name).unwrap_err();
        }
    }
}
