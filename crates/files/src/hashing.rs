//! Digests of what is read or written, as it passes.

use std::io::{self, Read, Write};

/// A reader or a writer, and the digest of all that has passed.
pub struct Hashing<T> {
    /// What is read or written.
    pub inner: T,
    /// The digest, with the number of bytes ([`blake3::Hasher::count`]).
    pub hasher: blake3::Hasher,
}

impl<T> Hashing<T> {
    /// Nothing has passed yet.
    pub fn new(inner: T) -> Self {
        Self { inner, hasher: blake3::Hasher::new() }
    }
}

impl<T: Write> Write for Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Hashing<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hasher.update(&bytes[..read]);
        Ok(read)
    }
}
