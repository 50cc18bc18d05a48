//! Downloads a data set into a folder: fetch or take, verify, unpack, convert, and leave a receipt.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::{At, Hashing};
use serde::{Deserialize, Serialize};

use crate::DownloadObserver;
use crate::convert::{ConversionJob, LineCounts};
use crate::digest::{self, Digest};
use crate::entries::DatasetEntry;
use crate::error::{Error, Result};
use crate::http::{Client, FetchError};
use crate::plan::{Download, TargetFile, needs};
use crate::receipt::{self, DownloadReceipt, FetchRecord, FileRecord};
use crate::unpack;

/// A data set to download.
pub struct DownloadRequest<'a> {
    /// The data set.
    pub entry: &'a DatasetEntry,
    /// Its languages, as [`DatasetEntry::choose`] gives them.
    pub languages: &'a [String],
    /// The folder to download it to.
    pub out: &'a Path,
    /// Where it comes from.
    pub origin: DownloadOrigin,
}

/// Where a data set comes from.
pub enum DownloadOrigin {
    /// Its own servers, or another with the same paths.
    Network {
        /// That other server's address.
        mirror: Option<String>,
    },
    /// Files, or folders of files, that were downloaded by hand.
    Hand(Vec<PathBuf>),
}

/// The result of downloading a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownloadResult {
    /// The data set.
    pub name: String,
    /// The terms that it may be used on.
    pub licence: String,
    /// Its files.
    pub files: Vec<DatasetFile>,
    /// Where the receipt lies.
    pub receipt: PathBuf,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// A file of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Lines kept and left out, where something was converted.
    pub lines: LineCounts,
    /// Whether it was there before, whole.
    pub found: bool,
}

/// Downloads a data set into a folder.
pub fn get(request: &DownloadRequest, watch: &mut DownloadObserver) -> Result<DownloadResult> {
    let DownloadRequest { entry, out, .. } = *request;
    let receipts = out.join("receipts");
    if let (Some(how), DownloadOrigin::Network { mirror: None }) = (&entry.by_hand, &request.origin)
    {
        let reason = format!("{} has no lasting address", entry.name);
        return Err(Error::setting("from", reason, how.clone()));
    }
    let _alone = files::FolderLock::take(&receipts)?;
    let mut getting = DownloadJob {
        request,
        receipt: DownloadReceipt::of(entry, out)?,
        client: Client::new(Duration::from_millis(500)),
        warnings: Vec::new(),
    };
    let needs = needs(entry, request.languages);
    let mut files = Vec::new();
    for need in &needs {
        match getting.found(need)? {
            Some(found) => {
                getting.forget_copy(need)?;
                files.extend(found);
            }
            None => files.extend(getting.bring(need, &needs, watch)?),
        }
    }
    let receipt = receipt::place(out, &entry.name);
    let (name, licence) = (entry.name.clone(), entry.licence.name.clone());
    Ok(DownloadResult { name, licence, files, receipt, warnings: getting.warnings })
}

struct DownloadJob<'a> {
    request: &'a DownloadRequest<'a>,
    receipt: DownloadReceipt,
    client: Client,
    warnings: Vec<String>,
}

impl DownloadJob<'_> {
    /// The files of a need, if all are there as the receipt has them.
    fn found(&self, need: &Download) -> Result<Option<Vec<DatasetFile>>> {
        let mut found = Vec::new();
        for wanted in &need.wanted {
            let path = self.request.out.join(&wanted.to);
            let Some(unpacked) = self.receipt.files.get(&wanted.to) else { return Ok(None) };
            if !path.exists() {
                return Ok(None);
            }
            let digest = digest::of(&path)?;
            if digest.blake3 != unpacked.blake3 {
                let reason = "is not the file that the receipt was written for";
                let remedy = "remove it to have it made again, or name another folder";
                return Err(Error::file(&path, reason, remedy));
            }
            found.push(DatasetFile {
                path,
                bytes: digest.bytes,
                lines: unpacked.lines,
                found: true,
            });
        }
        Ok(Some(found))
    }

    /// Fetches a file and makes what is wanted of it.
    fn bring(
        &mut self,
        need: &Download,
        all: &[Download],
        watch: &mut DownloadObserver,
    ) -> Result<Vec<DatasetFile>> {
        let (path, by_hand) = match &self.request.origin {
            DownloadOrigin::Hand(given) => (by_hand(given, need, all)?, true),
            DownloadOrigin::Network { mirror } => {
                (self.fetch(need, mirror.as_deref(), watch)?, false)
            }
        };
        refuse_page(&path)?;
        let digest = digest::of(&path)?;
        self.check(need, &path, &digest, by_hand)?;
        let mut made = Vec::new();
        for wanted in &need.wanted {
            let others = all.iter().flat_map(|need| &need.wanted);
            let sides = others.filter(|other| wanted.is_parallel_to(other));
            let sides: Vec<PathBuf> = sides.map(|other| self.request.out.join(&other.to)).collect();
            made.push(self.make(need, wanted, &path, &sides, watch)?);
        }
        self.receipt.write(self.request.out)?;
        if !by_hand {
            self.forget_copy(need)?;
        }
        Ok(made)
    }

    /// Removes what was fetched where the same bytes stand in their place now, also after a kill in between.
    fn forget_copy(&self, need: &Download) -> Result<()> {
        if !need.is_plain() {
            return Ok(());
        }
        Ok(files::remove(&self.request.out.join("downloads").join(need.file_name()))?)
    }

    /// The file as it came, fetched now or before.
    fn fetch(
        &self,
        need: &Download,
        mirror: Option<&str>,
        watch: &mut DownloadObserver,
    ) -> Result<PathBuf> {
        let folder = self.request.out.join("downloads");
        fs::create_dir_all(&folder).at(&folder, "make the folder")?;
        let path = folder.join(need.file_name());
        if path.exists() {
            return Ok(path);
        }
        let url = need.at(mirror);
        self.client.fetch(&url, &path, watch).map_err(|trouble| match trouble {
            FetchError::Files(error) => error.into(),
            trouble => {
                let (reason, remedy) = (trouble.reason(), self.remedy(need));
                Error::Fetch { url, reason, remedy }
            }
        })?;
        Ok(path)
    }

    /// How to go on without a network.
    fn remedy(&self, need: &Download) -> String {
        let DownloadRequest { entry, languages, .. } = self.request;
        let all = needs(entry, languages);
        let rest: Vec<&Download> = all.iter().skip_while(|other| other.url != need.url).collect();
        let urls: String = rest.iter().map(|need| format!("\n  {}", need.url)).collect();
        format!(
            "Ask again when there is a network: what has come so far is kept. Or download by hand \
             on another machine, into one folder:{urls}\nand set `from` to that folder"
        )
    }

    /// Holds a file against the catalogue's checksum and an earlier receipt, and warnings it.
    fn check(
        &mut self,
        need: &Download,
        path: &Path,
        digest: &Digest,
        by_hand: bool,
    ) -> Result<()> {
        let confirmed = need.sha256.as_ref() == Some(&digest.sha256);
        if let Some(sha256) = need.sha256.as_ref().filter(|_| !confirmed) {
            let reason = format!("has SHA-256 {}, but the catalogue knows {sha256}", digest.sha256);
            if !by_hand {
                let remedy = "it is damaged or another file: remove it and download it again; if it \
                              comes out the same, set `from` to it";
                return Err(Error::file(path, reason, remedy));
            }
            self.warnings
                .push(format!("{} {reason}: another file, or packed again", path.display()));
        }
        let before = self.receipt.fetched.get(&need.url);
        if let Some(before) = before.filter(|before| before.blake3 != digest.blake3 && !by_hand) {
            let reason = format!("is not what was fetched from there on {}", before.date);
            let remedy = format!(
                "the source has changed or the file is damaged; to go on with it, remove {}",
                receipt::place(self.request.out, &self.request.entry.name).display()
            );
            return Err(Error::file(path, reason, remedy));
        }
        let Digest { bytes, blake3, sha256 } = digest.clone();
        let date = receipt::today();
        let fetched = FetchRecord { date, bytes, blake3, sha256, confirmed, by_hand };
        self.receipt.fetched.insert(need.url.clone(), fetched);
        Ok(())
    }

    /// Makes one file of what was fetched, with as many lines as the other sides have.
    fn make(
        &mut self,
        need: &Download,
        wanted: &TargetFile,
        from: &Path,
        sides: &[PathBuf],
        watch: &mut DownloadObserver,
    ) -> Result<DatasetFile> {
        let path = self.request.out.join(&wanted.to);
        let parent = path.parent().expect("it lies in a folder");
        fs::create_dir_all(parent).at(parent, "make the folder")?;
        let (mut lines, mut size_and_hash, mut failure) = (None, (0, String::new()), None);
        let written = files::write_with(&path, |writer| {
            let mut writer = Hashing::new(writer);
            let result = unpack::open(from, wanted.member.as_deref(), &mut |reader, from| {
                let job = ConversionJob { from, to: &path, language: &wanted.language };
                lines = wanted.convert.run(&job, reader, &mut writer, watch)?;
                sides.iter().try_for_each(|side| check_side(from, lines, side))
            });
            size_and_hash = (writer.hasher.count(), writer.hasher.finalize().to_hex().to_string());
            result.map_err(|error| {
                failure = Some(error);
                io::Error::other("stopped")
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        written?;
        let (bytes, blake3) = size_and_hash;
        let unpacked = FileRecord { url: need.url.clone(), bytes, blake3, lines };
        self.receipt.files.insert(wanted.to.clone(), unpacked);
        Ok(DatasetFile { path, bytes, lines, found: false })
    }
}

/// Refuses what a server or a portal says in the place of a file.
fn refuse_page(path: &Path) -> Result<()> {
    let mut head = Vec::new();
    let file = fs::File::open(path).at(path, "open")?;
    file.take(512).read_to_end(&mut head).at(path, "read")?;
    let text = String::from_utf8_lossy(&head).to_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let reason = match () {
        () if head.is_empty() => "is empty",
        () if text.starts_with("<!doctype html") || text.starts_with("<html") => {
            "is a page of HTML, and no data"
        }
        () if text.starts_with("<?xml") && text.contains("<error>") => {
            "is a server's error in XML, and no data"
        }
        () if text.starts_with("404: not found") => "is a server's `404: Not Found`, and no data",
        () => return Ok(()),
    };
    let remedy = "look into it for what the server said, then remove it and download it again";
    Err(Error::file(path, reason, remedy))
}

/// Refuses a side that has not as many lines as one that is there.
fn check_side(from: &Path, lines: LineCounts, side: &Path) -> Result<()> {
    let Some([here, _]) = lines.filter(|_| side.exists()) else { return Ok(()) };
    let text = fs::read(side).at(side, "read")?;
    let there = text.split_inclusive(|&byte| byte == b'\n').count();
    if here == there as u64 {
        return Ok(());
    }
    let side = side.display();
    let reason = format!("has {here} lines and {side} has {there}, but line belongs to line");
    Err(Error::file(from, reason, format!("download both again, once {side} is removed")))
}

/// The file for a need among those that were given: the one of its name, or the only one there is.
fn by_hand(given: &[PathBuf], need: &Download, all: &[Download]) -> Result<PathBuf> {
    for path in given {
        let inside = path.join(need.file_name());
        if path.is_dir() && inside.is_file() {
            return Ok(inside);
        }
        if path.is_file() && path.file_name().is_some_and(|name| name == need.file_name()) {
            return Ok(path.clone());
        }
    }
    match given {
        [path] if path.is_file() && all.len() == 1 => Ok(path.clone()),
        [path] if !path.exists() => {
            let error = io::Error::from(io::ErrorKind::NotFound);
            Err(error).at(path, "read")?
        }
        _ => {
            let names: Vec<&str> = all.iter().map(Download::file_name).collect();
            let reason = format!("{} is not among the files that were given", need.file_name());
            let remedy = format!("give a folder with {}", names.join(", "));
            Err(Error::request(reason, remedy))
        }
    }
}
