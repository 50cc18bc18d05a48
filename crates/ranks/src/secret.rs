//! The secret of a run, which its ranks share and nobody else has: everybody who can reach rank 0's port may say that he
//! is a rank. It is new for every run, so that it also tells the ranks of one run from those of another.
//!
//! Ranks that rank 0 starts have it in their environment. Those of a launcher read it from a file in the run's folder
//! that only this user can read, and that rank 0 keeps there while ranks meet; or all have it from the launcher's environment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::RankError;

pub(crate) const VARIABLE: &str = "ISOGLOSS_RANKS_SECRET";
/// Or the file: named and locked as a draft of the crate `files` is, so that the next process that writes into the folder
/// removes it where rank 0 was killed, and a folder with nothing else counts as empty. The end is the digest of the middle.
const FILE: &str = ".unfinished-secretoftheranks-284d8da8";
/// 128 bits, as hexadecimal digits.
const DIGITS: usize = 32;

/// What only ranks of this run can compute.
#[derive(Clone)]
pub(crate) struct Secret {
    key: [u8; 32],
}

impl Secret {
    pub(crate) fn of(text: &str) -> Self {
        Self { key: blake3::derive_key("isogloss ranks: the greeting", text.as_bytes()) }
    }

    /// The message authentication code of some bytes: BLAKE3's keyed mode, which needs no HMAC around it. Compared in constant time.
    pub(crate) fn mac(&self, bytes: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.key, bytes)
    }
}

/// Bits that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

pub(crate) fn new_text() -> io::Result<String> {
    Ok(random::<{ DIGITS / 2 }>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) enum SecretSource {
    Known(Secret),
    Folder(PathBuf),
}

impl SecretSource {
    /// From the environment, or else from the run's folder.
    pub(crate) fn of_run(folder: &Path) -> Result<Self, RankError> {
        let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
            return Ok(Self::Folder(folder.to_owned()));
        };
        match text.to_str() {
            Some(text) if text.len() >= DIGITS => Ok(Self::Known(Secret::of(text))),
            _ => Err(RankError::Request(format!(
                "{VARIABLE} holds less than {DIGITS} characters; `openssl rand -hex 16` makes a secret, or unset it"
            ))),
        }
    }

    /// The secret, for any rank but 0.
    pub(crate) fn read(&self) -> io::Result<Secret> {
        let folder = match self {
            Self::Known(secret) => return Ok(secret.clone()),
            Self::Folder(folder) => folder,
        };
        let path = folder.join(FILE);
        let explained = |reason: &dyn std::fmt::Display| {
            io::Error::other(format!(
                "{}, where rank 0 puts the secret of the run, cannot be used ({reason}); give all ranks the same --out on \
                 a file system that all see, or the same {VARIABLE}",
                path.display()
            ))
        };
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let mut file = opened.map_err(|error| explained(&error))?;
        let about = file.metadata().map_err(|error| explained(&error))?;
        // What somebody else has put there, he knows.
        let own = about.uid() == rustix::process::geteuid().as_raw();
        if !about.is_file() || !own || about.mode() & 0o077 != 0 {
            return Err(explained(&"it is not this user's alone"));
        }
        let mut text = String::new();
        (&mut file).take(DIGITS as u64).read_to_string(&mut text)?;
        match text.len() {
            DIGITS => Ok(Secret::of(&text)),
            _ => Err(explained(&"it is not whole yet")),
        }
    }

    /// The secret, for rank 0: others may have it from now on.
    pub(crate) fn publish(&self) -> Result<PublishedSecret, RankError> {
        match self {
            Self::Known(secret) => Ok(PublishedSecret { secret: secret.clone(), file: None }),
            Self::Folder(folder) => PublishedSecret::write(folder).map_err(|error| {
                let place = folder.join(FILE);
                RankError::Failed(format!("cannot write {}: {error}", place.display()))
            }),
        }
    }
}

/// The secret, as long as others may read it.
pub(crate) struct PublishedSecret {
    pub(crate) secret: Secret,
    /// The file, its folder, and whether that was made for it.
    file: Option<(File, PathBuf, bool)>,
}

impl PublishedSecret {
    /// Not through `files::write`: nothing of anybody else's may be followed or kept at this name, and the file is nobody else's
    /// to read at any moment.
    fn write(folder: &Path) -> io::Result<Self> {
        let made = !folder.exists();
        fs::create_dir_all(folder)?;
        let (path, text) = (folder.join(FILE), new_text()?);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        // Where a file system has no locks, nobody takes it for a leftover either.
        let _ = file.try_lock();
        let written = file.write_all(text.as_bytes());
        let this = Self { secret: Secret::of(&text), file: Some((file, folder.to_owned(), made)) };
        written.map(|()| this)
    }
}

impl Drop for PublishedSecret {
    fn drop(&mut self) {
        let Some((_, folder, made)) = &self.file else { return };
        let _ = fs::remove_file(folder.join(FILE));
        if *made {
            // Only where nothing else is in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_file_is_this_users_alone_and_goes_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        let source = SecretSource::Folder(folder.clone());
        assert!(source.read().is_err_and(|error| error.to_string().contains(VARIABLE)));
        let published = source.publish().unwrap();
        let mode = fs::metadata(folder.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(source.read().unwrap().mac(b"a"), published.secret.mac(b"a"));
        drop(published);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_killed_rank_0_left_is_no_content_and_goes() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(FILE), new_text().unwrap()).unwrap();
        assert!(files::is_vacant(place.path()));
        drop(files::lock(place.path()).unwrap());
        assert!(!place.path().join(FILE).exists());
    }

    #[test]
    fn what_others_can_read_or_have_planted_is_no_secret() {
        let place = tempfile::tempdir().unwrap();
        let (planted, precious) = (place.path().join(FILE), place.path().join("precious"));
        let source = SecretSource::Folder(place.path().to_owned());
        fs::write(&precious, new_text().unwrap()).unwrap();
        symlink(&precious, &planted).unwrap();
        source.read().err().unwrap();
        // Rank 0 does not write through it.
        let before = fs::read(&precious).unwrap();
        drop(source.publish().unwrap());
        assert_eq!(fs::read(&precious).unwrap(), before);
        fs::write(&planted, new_text().unwrap()).unwrap();
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(source.read().is_err_and(|error| error.to_string().contains("alone")));
    }
}
