//! The XML of a dump, article by article, in memory of one batch.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quick_xml::Reader;
use quick_xml::escape::{resolve_xml_entity, unescape_with};
use quick_xml::events::{BytesStart, Event};

use super::markup::Names;
use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(super) struct Article {
    pub(super) text: String,
}

#[derive(Default)]
struct Page {
    article: Article,
    namespace: String,
    model: String,
    redirect: bool,
}

impl Page {
    fn is_article(&self) -> bool {
        let wiki_text = self.model.is_empty() || self.model == "wikitext";
        self.namespace == "0" && wiki_text && !self.redirect
    }
}

/// The most XML between the ends of two pages; Wikipedia's own limit for a page is 2 MB.
const LONGEST_PAGE: usize = 64 << 20;

/// Ends where one page is longer than any is: an element is held whole.
struct PageLimit<'a> {
    inner: &'a mut dyn Read,
    left: Rc<Cell<usize>>,
}

impl Read for PageLimit<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = self.left.get().checked_sub(read).ok_or_else(|| {
            io::Error::other(format!("a page is longer than {} MB", LONGEST_PAGE >> 20))
        })?;
        self.left.set(left);
        Ok(read)
    }
}

pub(super) struct Dump<'a> {
    reader: Reader<BufReader<PageLimit<'a>>>,
    /// Bytes that the page at hand may still have.
    left: Rc<Cell<usize>>,
    from: PathBuf,
    buffer: Vec<u8>,
    pub(super) names: Names,
    /// Pages that are no articles.
    pub(super) left_out: u64,
}

impl<'a> Dump<'a> {
    pub(super) fn new(reader: &'a mut dyn Read, from: &Path) -> Self {
        let left = Rc::new(Cell::new(LONGEST_PAGE));
        let limited = PageLimit { inner: reader, left: Rc::clone(&left) };
        let reader = Reader::from_reader(BufReader::with_capacity(1 << 18, limited));
        let (names, from) = (Names::default(), from.to_owned());
        Self { reader, left, from, buffer: Vec::new(), names, left_out: 0 }
    }

    pub(super) fn position(&self) -> u64 {
        self.reader.buffer_position()
    }

    /// The next articles, of so many bytes at least; none at the end.
    pub(super) fn batch(&mut self, bytes: usize) -> Result<Vec<Article>> {
        let (mut batch, mut held) = (Vec::new(), 0);
        while held < bytes {
            let Some(page) = self.page()? else { break };
            if page.is_article() {
                held += page.article.text.len();
                batch.push(page.article);
            } else {
                self.left_out += 1;
            }
        }
        Ok(batch)
    }

    fn page(&mut self) -> Result<Option<Page>> {
        let mut page: Option<Page> = None;
        self.left.set(LONGEST_PAGE);
        loop {
            self.buffer.clear();
            let event = self.reader.read_event_into(&mut self.buffer);
            let event = event.map_err(|error| wrong(&self.from, &self.reader, error))?.into_owned();
            match event {
                Event::Start(start) => self.start(&start, &mut page)?,
                Event::Empty(empty) if empty.name().as_ref() == "redirect" => {
                    page.iter_mut().for_each(|page| page.redirect = true);
                }
                Event::End(end) if end.name().as_ref() == "page" => return Ok(page),
                Event::Eof if page.is_some() => {
                    return Err(wrong(&self.from, &self.reader, "it ends within a page"));
                }
                Event::Eof => return Ok(None),
                _ => {}
            }
        }
    }

    fn start(&mut self, start: &BytesStart, page: &mut Option<Page>) -> Result<()> {
        match (start.name().as_ref(), page) {
            ("page", page) => *page = Some(Page::default()),
            ("namespace", None) => {
                let key = start.try_get_attribute("key").ok().flatten();
                let hidden = key.is_some_and(|key| matches!(key.value.as_ref(), "6" | "14"));
                let name = self.content(start)?;
                if hidden {
                    self.names.hide(&name);
                }
            }
            ("ns", Some(page)) => page.namespace = self.content(start)?.trim().to_owned(),
            ("model", Some(page)) => page.model = self.content(start)?.trim().to_owned(),
            ("text", Some(page)) => page.article.text = self.content(start)?,
            _ => {}
        }
        Ok(())
    }

    /// The text of an element that holds nothing else.
    fn content(&mut self, start: &BytesStart) -> Result<String> {
        self.buffer.clear();
        let raw = self.reader.read_text_into(start.name(), &mut self.buffer);
        let raw = raw.map_err(|error| wrong(&self.from, &self.reader, error))?.into_inner();
        match unescape_with(&raw, resolve_xml_entity) {
            Ok(text) => Ok(text.into_owned()),
            Err(error) => Err(wrong(&self.from, &self.reader, error)),
        }
    }
}

fn wrong<R>(from: &Path, reader: &Reader<R>, error: impl std::fmt::Display) -> Error {
    let at = reader.buffer_position();
    let reason = format!("is cut short or no dump, at byte {at} of its XML: {error}");
    Error::file(from, reason, "remove it and download it again")
}
