//! How fast batches of the papers' shape are made, on the one thread that makes them ahead:
//! `batch_speed VOCABULARY CORPUS... [-- FROM TO DICTIONARY]`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use text::{
    BatchSettings, CodeSwitch, Dictionary, LineRules, MaskSettings, MlmBatches, SwitchSettings,
    TokenizedCorpus, Vocabulary,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = arguments.split(|argument| argument == "--");
    let Some([vocabulary, corpora @ ..]) = parts.next() else {
        return Err("usage: batch_speed VOCABULARY CORPUS... [-- FROM TO DICTIONARY]".into());
    };
    let vocabulary = Arc::new(Vocabulary::load(Path::new(vocabulary))?);
    let open =
        |folder: &String| Ok(Arc::new(TokenizedCorpus::open(Path::new(folder), &vocabulary)?));
    let corpora = corpora.iter().map(open).collect::<text::Result<Vec<_>>>()?;
    let switch = match parts.next() {
        Some([from, to, file]) => {
            let dictionary = Dictionary::read(Path::new(file), from, to, LineRules::default())?;
            let both = [dictionary.reversed(), dictionary];
            Some(CodeSwitch::new(&vocabulary, &both, SwitchSettings::default())?)
        }
        _ => None,
    };
    for alpha in [0.0, 0.5] {
        let mask = MaskSettings { alpha, ..MaskSettings::default() };
        let settings = BatchSettings { mask, ..BatchSettings::default() };
        let (vocabulary, corpora) = (Arc::clone(&vocabulary), corpora.clone());
        let batches = Arc::new(MlmBatches::new(vocabulary, corpora, settings, switch.clone(), 1)?);
        let start = Instant::now();
        let (mut tokens, mut masked, mut switched) = (0, 0, 0);
        for batch in batches.from(0).take(400) {
            let batch = batch?;
            tokens += batch.tokens.len();
            masked += batch.masked.len();
            switched += batch.switched;
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "alpha {alpha}: {:.1} M tokens/s, {masked} of {tokens} hidden, {switched} words switched",
            tokens as f64 / 1e6 / seconds
        );
        let start = Instant::now();
        let _ = batches.from(1_000_000);
        println!("going to batch 1,000,000: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}
