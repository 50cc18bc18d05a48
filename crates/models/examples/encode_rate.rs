//! Encoding a text beside nothing but the forward pass over the same batches, by turns.
//!
//!     cargo run --release -p isogloss-models --example encode_rate -- RUN LANG FILE 5
//!
//! The one reads, tokenises, encodes, pools every layer and writes an array; the other has its
//! batches ready and throws away what comes out.

use std::path::Path;
use std::time::Instant;

use arrays::StackWriter;
use models::PretrainedModel;
use models::sentences::{lines, open};
use models::states::{Pooling, for_each};
use tensor::Device;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, language, file, turns] = arguments.as_slice() else {
        return eprintln!("RUN LANG FILE TURNS");
    };
    let device = Device::cpu(0).expect("the processor");
    let mut model = PretrainedModel::open(Path::new(run), &device).expect("a run");
    let (layers, dim) = (model.encoder.config().layers + 1, model.encoder.config().dim);
    let mut reader = model.reader(language).expect("a language of the run");
    let columns = text::TsvColumns::default();
    let source = open(std::slice::from_ref(file), &columns).expect("a text");
    let sentences: Vec<Vec<u32>> =
        lines(&source).map(|line| reader.sentence(&line.expect("a line")).ids).collect();
    let tokens: usize = sentences.iter().map(Vec::len).sum();
    for turn in 1..=turns.parse().unwrap_or(1) {
        let start = Instant::now();
        let ready = sentences.iter().map(|ids| Ok::<_, std::io::Error>(ids.clone()));
        for_each(model.parts(), reader.language(), ready, |_| Ok(())).expect("it is encoded");
        let plain = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let path = std::env::temp_dir().join("encode-speed.npy");
        let file = std::fs::File::create(&path).expect("a file");
        let mut writer = StackWriter::new(file, layers, sentences.len(), dim).expect("a file");
        let language = reader.language();
        let read = lines(&source)
            .map(|line| Ok::<_, std::io::Error>(reader.sentence(&line.expect("a line")).ids));
        let mut values = vec![Vec::new(); layers];
        for_each(model.parts(), language, read, |states| {
            for (layer, values) in values.iter_mut().enumerate() {
                values.clear();
                Pooling::Mean.push(states, layer, values);
            }
            writer.append(states.sentences(), &values)
        })
        .expect("it is encoded");
        writer.finish().expect("it is written");
        let whole = start.elapsed().as_secs_f64();
        let _ = std::fs::remove_file(&path);
        let rate = |seconds: f64| tokens as f64 / seconds;
        println!(
            "turn {turn}: forward {:.0} tokens/s, encode {:.0} tokens/s, ratio {:.2}",
            rate(plain),
            rate(whole),
            plain / whole
        );
    }
}
