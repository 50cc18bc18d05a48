//! The two digests of a file: BLAKE3, which receipts keep, and SHA-256, which others publish.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use files::At;
use sha2::{Digest as _, Sha256};

use crate::error::Result;

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
    }
}
