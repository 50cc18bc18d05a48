//! Plain text from a Wikipedia dump: one paragraph a line, compressed with zstd.
//!
//! Only articles count (namespace 0, no redirects, wiki text). The dump is decompressed and read on
//! one thread, which is what takes longest; markup is removed on the others, a batch of articles
//! at a time, in the order of the dump.

mod dump;
mod inline;
mod markup;
mod structure;
#[cfg(test)]
mod tests;

use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use bzip2::read::MultiBzDecoder;
use files::{At, limits};
use flate2::read::MultiGzDecoder;
use rayon::prelude::*;

use crate::DownloadObserver;
use crate::error::{Error, Result};

use dump::{Article, Dump};
pub use markup::{Names, paragraphs};

/// Bytes of wiki text that are cleaned together.
const BATCH: usize = 4 << 20;

/// Counts of an extraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtractionCounts {
    /// Paragraphs written.
    pub paragraphs: u64,
    /// Articles that they come from.
    pub articles: u64,
    /// Other pages: redirects, talk, categories and so on.
    pub left_out: u64,
    /// Bytes of XML read.
    pub xml: u64,
}

/// Reads a dump (plain, bzip2 or gzip, as its first bytes say) and writes zstd.
pub(crate) fn extract(
    reader: &mut dyn Read,
    from: &Path,
    to: &Path,
    writer: &mut dyn Write,
    watch: &mut DownloadObserver,
) -> Result<ExtractionCounts> {
    let size = from.metadata().map_or(0, |metadata| metadata.len());
    let mut reader = BufReader::with_capacity(1 << 18, reader);
    let start = io::BufRead::fill_buf(&mut reader).at(from, "read")?.to_vec();
    let mut reader: Box<dyn Read + '_> = match &start[..] {
        [b'B', b'Z', b'h', ..] => Box::new(limits::bounded(MultiBzDecoder::new(reader), size)),
        [0x1f, 0x8b, ..] => Box::new(limits::bounded(MultiGzDecoder::new(reader), size)),
        _ => Box::new(reader),
    };
    let mut writer = zstd::Encoder::new(writer, 9).at(to, "write")?;
    let done = plain(&mut reader, from, &mut |text| writer.write_all(text).at(to, "write"), watch)?;
    writer.finish().at(to, "write")?;
    Ok(done)
}

/// Reads a dump's XML and hands on paragraphs, each with its end of line.
pub fn plain(
    reader: &mut dyn Read,
    from: &Path,
    write: &mut dyn FnMut(&[u8]) -> files::Result<()>,
    watch: &mut DownloadObserver,
) -> Result<ExtractionCounts> {
    let mut dump = Dump::new(reader, from);
    let (batches, incoming) = mpsc::sync_channel::<(Names, Vec<Article>)>(2);
    let (outgoing, cleaned) = mpsc::channel();
    let mut done = ExtractionCounts::default();
    thread::scope(|scope| {
        scope.spawn(move || clean(incoming, &outgoing));
        let mut more = true;
        while more {
            let batch = dump.batch(BATCH)?;
            more = !batch.is_empty();
            done.articles += batch.len() as u64;
            if more && batches.send((dump.names.clone(), batch)).is_err() {
                break;
            }
            watch("articles", done.articles, None);
            take(cleaned.try_iter(), write, &mut done)?;
        }
        drop(batches);
        take(cleaned.iter(), write, &mut done)
    })?;
    (done.left_out, done.xml) = (dump.left_out, dump.position());
    if done.articles == 0 {
        let remedy = "give a file that is called pages-articles.xml.bz2";
        return Err(Error::file(from, "holds no article", remedy));
    }
    Ok(done)
}

/// Cleans batch after batch, each on all threads.
fn clean(incoming: Receiver<(Names, Vec<Article>)>, outgoing: &Sender<Vec<String>>) {
    for (names, batch) in incoming {
        let texts = batch.par_iter().map(|article| paragraphs(&article.text, &names)).collect();
        // Nobody waits for the rest if writing has failed.
        if outgoing.send(texts).is_err() {
            return;
        }
    }
}

fn take(
    cleaned: impl Iterator<Item = Vec<String>>,
    write: &mut dyn FnMut(&[u8]) -> files::Result<()>,
    done: &mut ExtractionCounts,
) -> Result<()> {
    for text in cleaned.flatten() {
        done.paragraphs += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        write(text.as_bytes())?;
    }
    Ok(())
}
