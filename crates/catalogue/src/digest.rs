//! The two digests of a file: BLAKE3, which receipts keep, and SHA-256, which others publish.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use files::At;
use sha2::{Digest as _, Sha256};

use crate::error::Result;

/// What a file holds, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
    pub(crate) sha256: String,
}

/// Reads a file once for both digests.
pub(crate) fn of(path: &Path) -> Result<Digest> {
    let mut file = File::open(path).at(path, "open")?;
    let (mut blake3, mut sha256, mut bytes) = (blake3::Hasher::new(), Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 18];
    loop {
        let read = file.read(&mut buffer).at(path, "read")?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        blake3.update(&buffer[..read]);
        sha256.update(&buffer[..read]);
    }
    Ok(Digest {
        bytes,
        blake3: blake3.finalize().to_hex().to_string(),
        sha256: hex(&sha256.finalize()),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) struct DigestWriter<W> {
    inner: W,
    blake3: blake3::Hasher,
    bytes: u64,
}

impl<W: Write> DigestWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, blake3: blake3::Hasher::new(), bytes: 0 }
    }

    /// Bytes written, and their BLAKE3.
    pub(crate) fn finish(self) -> (u64, String) {
        (self.bytes, self.blake3.finalize().to_hex().to_string())
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.blake3.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let digest = of(&path).unwrap();
        // FIPS 180-2 appendix B, and the test vectors of BLAKE3's authors.
        assert_eq!(
            digest.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            digest.blake3,
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
        );
        let mut digesting = DigestWriter::new(Vec::new());
        digesting.write_all(b"abc").unwrap();
        assert_eq!(digesting.finish(), (3, digest.blake3));
    }
}
