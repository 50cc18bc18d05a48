//! How fast prepared sentences become ids on all threads, to be held against `tokenizers` from
//! Python: `encode_speed VOCABULARY LANGUAGE TEXT [PREPARED]`. With a fourth argument the prepared
//! sentences are also written there, a line each, so that others can encode the same.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use text::{Corpus, LineRules, Selection, SentenceBlock, TextSource, Vocabulary};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, vocabulary, language, text, rest @ ..] = arguments.as_slice() else {
        return Err("usage: encode_speed VOCABULARY LANGUAGE TEXT [PREPARED]".into());
    };
    let vocabulary = Vocabulary::load(Path::new(vocabulary))?;
    let index = vocabulary.language(language)?;
    let corpus = Corpus {
        source: TextSource::new(language, std::slice::from_ref(text))?,
        preparer: vocabulary.preparer(index).clone(),
        rules: LineRules::default(),
        selection: Selection::default(),
    };
    let mut sentences: Vec<String> = Vec::new();
    corpus.read(&mut |_| {}, &mut |blocks| {
        let all = blocks.iter().flat_map(SentenceBlock::sentences);
        sentences.extend(all.map(|(_, sentence)| sentence.to_owned()));
        Ok(())
    })?;
    if let [path] = rest {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        sentences.iter().try_for_each(|sentence| writeln!(file, "{sentence}"))?;
    }

    let bytes: usize = sentences.iter().map(String::len).sum();
    for _ in 0..3 {
        let encoders = vocabulary.encoders(index);
        let start = Instant::now();
        let encode = |chunk: &[String]| {
            let one = |encoder: &mut text::SubwordEncoder, sentence: &String| {
                let mut ids = Vec::new();
                encoder.encode(sentence, &mut ids);
                ids
            };
            encoders.with(|encoder| chunk.iter().map(|text| one(encoder, text)).collect::<Vec<_>>())
        };
        let ids: Vec<Vec<Vec<u32>>> = sentences.par_chunks(1024).map(encode).collect();
        let seconds = start.elapsed().as_secs_f64();
        let tokens: usize = ids.iter().flatten().map(Vec::len).sum();
        println!(
            "{} sentences, {tokens} tokens, {seconds:.3} s, {:.1} MB/s, {} threads",
            sentences.len(),
            bytes as f64 / 1e6 / seconds,
            rayon::current_num_threads()
        );
    }
    Ok(())
}
