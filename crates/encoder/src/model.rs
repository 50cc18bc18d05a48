//! The encoder: which weights it has, and the way forward.
//!
//! A batch holds text of one language, and sequences follow one another without padding. Where only
//! some positions are wanted (the masked ones, the first of each sequence), the last layer computes
//! only those: everything in it but keys and values is spared for the rest.

use tensor::{Activation, Affine, Indices, LayerNorm, ParamId, Params, Spans, Tape, Tensor, Var};

use crate::config::{ConfigError, EncoderConfig, NormPlace};
use crate::init::Builder;
use crate::parts::{Part, PerLanguage, Place};

/// Some text of one language.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The number of the language.
    pub language: usize,
    /// The tokens of all sequences, one after another.
    pub tokens: Indices,
    /// Where each sequence begins.
    pub spans: Spans,
    /// The segment of each token, where the encoder has segments; all are 0 where none are given.
    pub segments: Option<Indices>,
}

/// Positions to be guessed.
#[derive(Clone, Debug)]
pub struct Masked {
    /// Rows of the batch, in ascending order.
    pub rows: Indices,
    /// The token that stood in each.
    pub targets: Indices,
}

/// A vector added to every hidden state on the way.
#[derive(Clone, Copy, Debug)]
pub struct Shift<'a> {
    /// After which layer; 0 is the embeddings.
    pub layer: usize,
    /// 1 x dim.
    pub vector: &'a Tensor,
}

/// What is wanted of the encoder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Only these rows of the last layer, in ascending order; all of them if none are named.
    pub rows: Option<&'a Indices>,
    /// Vectors to add on the way.
    pub shifts: &'a [Shift<'a>],
    /// The last layer to run, where those above it are not wanted; [`Encoded::output`] then is what
    /// the next layer would read.
    pub until: Option<usize>,
}

/// What comes out of the encoder.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What heads are put on: the wanted rows x dim.
    pub output: Var,
    /// The hidden states after the embeddings and after each layer that was run: layers + 1 of
    /// rows x dim. Where only some rows were wanted, those of the encoder's last layer are only
    /// these.
    pub hidden: Vec<Var>,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    query: Affine,
    /// Keys, then values.
    key_value: Affine,
    output: Affine,
    attention_norm: LayerNorm,
    up: Affine,
    down: Affine,
    hidden_norm: LayerNorm,
}

/// A dense layer before the softmax.
#[derive(Clone, Copy, Debug)]
struct Transform {
    dense: Affine,
    norm: LayerNorm,
}

/// The residual stream: the hidden states, and what the next layer reads. Where LayerNorm stands
/// after, the two are the same.
#[derive(Clone, Copy)]
struct Stream {
    hidden: Var,
    read: Var,
}

/// A Transformer encoder with a head that guesses masked tokens.
#[derive(Debug)]
pub struct Encoder {
    config: EncoderConfig,
    tokens: PerLanguage<ParamId>,
    positions: PerLanguage<ParamId>,
    languages: Option<ParamId>,
    segments: Option<ParamId>,
    /// With LayerNorm after: on the embeddings.
    embedding_norm: Option<PerLanguage<LayerNorm>>,
    layers: Vec<PerLanguage<Layer>>,
    /// With LayerNorm before: on the last hidden states.
    final_norm: Option<LayerNorm>,
    transform: Option<Transform>,
    /// The softmax's table, where it is not that of the tokens.
    decoder: Option<PerLanguage<ParamId>>,
    bias: PerLanguage<ParamId>,
    parts: Vec<(ParamId, Part)>,
}

impl Encoder {
    /// Makes the weights of a new encoder and adds them to `params`.
    pub fn new(config: EncoderConfig, params: &mut Params, seed: u64) -> Result<Self, ConfigError> {
        Self::build(config, params, Some(seed))
    }

    /// An encoder whose weights are yet to be written: for whoever reads them from a file.
    pub fn empty(config: EncoderConfig, params: &mut Params) -> Result<Self, ConfigError> {
        Self::build(config, params, None)
    }

    fn build(
        config: EncoderConfig,
        params: &mut Params,
        seed: Option<u64>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        params.device().kernels().expect(config.dim, config.heads, config.positions);
        let mut maker = Maker { builder: Builder { config: &config, params, seed }, parts: vec![] };
        let (plan, dim) = (&config.separate, config.dim);
        let tokens = maker.each(plan.tokens, Place::Embeddings, |maker, part| {
            let entries = config.entries(part.language.unwrap_or(0));
            maker.normal(part, "embeddings.tokens", entries, dim, 1.0)
        });
        let positions =
            maker.each(plan.positions, Place::Embeddings, |maker, part| maker.positions(part));
        let shared = Part { place: Place::Embeddings, language: None };
        let languages = config.language_embeddings.then(|| {
            maker.normal(shared, "embeddings.languages", config.languages.len(), dim, 1.0)
        });
        let segments = (config.segments > 0)
            .then(|| maker.normal(shared, "embeddings.segments", config.segments, dim, 1.0));
        let post = config.norm == NormPlace::Post;
        let embedding_norm = post.then(|| {
            maker.each(plan.tokens, Place::Embeddings, |maker, part| {
                maker.norm(part, "embeddings.norm")
            })
        });
        let layers = (1..=config.layers)
            .map(|number| {
                let separate = plan.layers.contains(&number);
                maker.each(separate, Place::Layer(number), |maker, part| maker.layer(part, number))
            })
            .collect();
        let head = Part { place: Place::Head, language: None };
        let final_norm = (!post).then(|| maker.norm(head, "head.final_norm"));
        let transform = config.transform.then(|| Transform {
            dense: maker.affine(head, "head.dense", dim, dim, 1.0),
            norm: maker.norm(head, "head.norm"),
        });
        let decoder = config.untied.then(|| {
            maker.each(plan.tokens, Place::Embeddings, |maker, part| {
                let entries = config.entries(part.language.unwrap_or(0));
                maker.normal(part, "head.decoder", entries, dim, 1.0)
            })
        });
        let bias = maker.each(plan.tokens, Place::Embeddings, |maker, part| {
            let entries = config.entries(part.language.unwrap_or(0));
            maker.constant(part, "head.bias", entries, 0.0)
        });
        let parts = maker.parts;
        Ok(Self {
            config,
            tokens,
            positions,
            languages,
            segments,
            embedding_norm,
            layers,
            final_norm,
            transform,
            decoder,
            bias,
            parts,
        })
    }

    /// What it looks like.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Every weight matrix and what it belongs to.
    pub fn parts(&self) -> &[(ParamId, Part)] {
        &self.parts
    }

    /// Lets learn what `learns` says, and freezes the rest.
    pub fn set_trainable(&self, params: &mut Params, learns: impl Fn(Part) -> bool) {
        for &(id, part) in &self.parts {
            params.set_trainable(id, learns(part));
        }
    }

    /// Runs the encoder.
    ///
    /// # Panics
    /// Where a sequence is longer than the encoder's positions, a token or language is unknown to
    /// it, or a shift is beyond its last layer: whoever asks knows the configuration.
    pub fn encode(&self, tape: &mut Tape<'_>, batch: &Batch, request: Request<'_>) -> Encoded {
        assert!(batch.spans.longest() <= self.config.positions, "a sequence is too long");
        let stream = self.embed(tape, batch);
        self.run(tape, batch, 0, stream, request)
    }

    /// Runs the encoder over vectors that come from elsewhere (rows x dim), in the place of token
    /// embeddings.
    ///
    /// # Panics
    /// As [`Encoder::encode`] does.
    pub fn encode_vectors(
        &self,
        tape: &mut Tape<'_>,
        vectors: Var,
        language: usize,
        spans: &Spans,
        request: Request<'_>,
    ) -> Encoded {
        assert!(spans.longest() <= self.config.positions, "a sequence is too long");
        let batch =
            Batch { language, tokens: Vec::new().into(), spans: spans.clone(), segments: None };
        let positions = vec![(*self.positions.get(language), positions(spans))];
        let positions = tape.embed(positions, None, 0.0);
        let sum = tape.residual(vectors, positions, 0.0);
        let norm = self.embedding_norm.as_ref().map(|norm| *norm.get(language));
        let hidden = norm.map_or(sum, |norm| tape.norm(sum, norm));
        let hidden = tape.drop(hidden, self.config.dropout);
        let stream = self.read(tape, 0, language, hidden);
        self.run(tape, &batch, 0, stream, request)
    }

    /// Runs only the layers above `layer`, on the hidden states after it: rows x dim. The hidden
    /// states that come out begin with those.
    ///
    /// # Panics
    /// As [`encode`](Self::encode).
    pub fn encode_from(
        &self,
        tape: &mut Tape<'_>,
        batch: &Batch,
        layer: usize,
        hidden: Tensor,
        request: Request<'_>,
    ) -> Encoded {
        let hidden = tape.input(hidden, false);
        let mut stream = self.read(tape, layer, batch.language, hidden);
        // No layer is left to compute some rows alone.
        if let Some(rows) = request.rows.filter(|_| layer == self.config.layers) {
            stream = stream.select(tape, rows);
        }
        self.run(tape, batch, layer, stream, request)
    }

    /// The layers above `first`, from the stream after it.
    fn run(
        &self,
        tape: &mut Tape<'_>,
        batch: &Batch,
        first: usize,
        mut stream: Stream,
        request: Request<'_>,
    ) -> Encoded {
        let inside = |shift: &Shift<'_>| shift.layer <= self.config.layers;
        assert!(request.shifts.iter().all(inside), "a shift beyond the last layer");
        let last = request.until.unwrap_or(self.config.layers).min(self.config.layers);
        let mut hidden = Vec::with_capacity((last + 1).saturating_sub(first));
        for number in first..=last {
            if number > first {
                let rows = request.rows.filter(|_| number == self.config.layers);
                stream = self.layer(tape, number, batch, stream, rows);
            }
            for shift in request.shifts.iter().filter(|shift| shift.layer == number) {
                stream = self.shift(tape, number, batch, stream, shift.vector);
            }
            hidden.push(stream.hidden);
        }
        Encoded { output: stream.read, hidden }
    }

    /// The scores of hidden states over the vocabulary of a language: rows x vocabulary.
    pub fn logits(&self, tape: &mut Tape<'_>, language: usize, output: Var) -> Tensor {
        let output = self.transformed(tape, output);
        tape.logits(output, self.table(language), *self.bias.get(language))
    }

    /// Guesses the masked tokens. The result is 1 x 2: the sum of the losses, and how many guesses
    /// were right. When training, gradients of `weight` times that sum go onto the tape.
    pub fn guess(
        &self,
        tape: &mut Tape<'_>,
        batch: &Batch,
        masked: &Masked,
        weight: f32,
    ) -> Tensor {
        let request = Request { rows: Some(&masked.rows), ..Request::default() };
        let encoded = self.encode(tape, batch, request);
        let output = self.transformed(tape, encoded.output);
        let (table, bias) = (self.table(batch.language), *self.bias.get(batch.language));
        tape.tied_cross_entropy(output, table, bias, &masked.targets, weight)
    }

    /// The softmax's table: vocabulary x dim.
    fn table(&self, language: usize) -> ParamId {
        *self.decoder.as_ref().unwrap_or(&self.tokens).get(language)
    }

    /// The dense layer before the softmax, where there is one.
    fn transformed(&self, tape: &mut Tape<'_>, output: Var) -> Var {
        match self.transform {
            None => output,
            Some(Transform { dense, norm }) => {
                let dense = tape.linear(output, dense, Activation::Gelu);
                tape.norm(dense, norm)
            }
        }
    }

    fn embed(&self, tape: &mut Tape<'_>, batch: &Batch) -> Stream {
        let language = batch.language;
        let mut tables = vec![
            (*self.tokens.get(language), batch.tokens.clone()),
            (*self.positions.get(language), positions(&batch.spans)),
        ];
        if let Some(languages) = self.languages {
            let rows = std::iter::repeat_n(language as u32, batch.tokens.len());
            tables.push((languages, rows.collect()));
        }
        if let Some(segments) = self.segments {
            let none = || std::iter::repeat_n(0, batch.tokens.len()).collect();
            tables.push((segments, batch.segments.clone().unwrap_or_else(none)));
        }
        let norm = self.embedding_norm.as_ref().map(|norm| *norm.get(language));
        let hidden = tape.embed(tables, norm, self.config.dropout); // rows x dim
        self.read(tape, 0, language, hidden)
    }

    /// The LayerNorm between the hidden states after layer `number` and what reads them, where
    /// LayerNorm stands before.
    fn norm_after(&self, number: usize, language: usize) -> Option<LayerNorm> {
        let final_norm = self.final_norm?;
        let next = self.layers.get(number).map(|layer| layer.get(language).attention_norm);
        Some(next.unwrap_or(final_norm))
    }

    /// The stream at the hidden states after layer `number`.
    fn read(&self, tape: &mut Tape<'_>, number: usize, language: usize, hidden: Var) -> Stream {
        let norm = self.norm_after(number, language);
        Stream { hidden, read: norm.map_or(hidden, |norm| tape.norm(hidden, norm)) }
    }

    fn shift(
        &self,
        tape: &mut Tape<'_>,
        number: usize,
        batch: &Batch,
        stream: Stream,
        vector: &Tensor,
    ) -> Stream {
        let hidden = tape.add_row(stream.hidden, vector);
        self.read(tape, number, batch.language, hidden)
    }

    /// One layer, counted from 1; of its outputs only `rows`, if they are named.
    fn layer(
        &self,
        tape: &mut Tape<'_>,
        number: usize,
        batch: &Batch,
        stream: Stream,
        rows: Option<&Indices>,
    ) -> Stream {
        let layer = *self.layers[number - 1].get(batch.language);
        let (config, rate) = (&self.config, self.config.dropout);
        let key_value = tape.linear(stream.read, layer.key_value, Activation::None); // n x 2·dim
        let (stream, queries) = match rows {
            None => (stream, batch.spans.clone()),
            Some(rows) => (stream.select(tape, rows), batch.spans.choose(rows)),
        };
        let query = tape.linear(stream.read, layer.query, Activation::None); // rows x dim
        let heads = config.heads;
        let attended = tape.attention(
            query,
            key_value,
            heads,
            &queries,
            &batch.spans,
            config.attention_dropout,
        );
        let update = tape.linear(attended, layer.output, Activation::None); // rows x dim

        let after = self.norm_after(number, batch.language);
        let (middle, norm) = match after {
            None => (layer.attention_norm, layer.hidden_norm),
            Some(after) => (layer.hidden_norm, after),
        };
        let (sum, read) = tape.residual_norm(stream.hidden, update, rate, middle);
        let stream = Stream::new(config.norm, sum, read);
        let wide = tape.linear(stream.read, layer.up, Activation::Gelu); // rows x hidden
        let update = tape.linear(wide, layer.down, Activation::None); // rows x dim
        let (sum, read) = tape.residual_norm(stream.hidden, update, rate, norm);
        Stream::new(config.norm, sum, read)
    }
}

/// The place of every row in its sequence.
fn positions(spans: &Spans) -> Indices {
    spans.iter().flat_map(|span| 0..span.len() as u32).collect()
}

impl Stream {
    /// From a sum and its LayerNorm.
    fn new(norm: NormPlace, sum: Var, normed: Var) -> Self {
        match norm {
            NormPlace::Post => Self { hidden: normed, read: normed },
            NormPlace::Pre => Self { hidden: sum, read: normed },
        }
    }

    fn select(self, tape: &mut Tape<'_>, rows: &Indices) -> Self {
        let read = tape.select(self.read, rows);
        let hidden = if self.hidden == self.read { read } else { tape.select(self.hidden, rows) };
        Self { hidden, read }
    }
}

/// Makes weights and notes what they belong to.
struct Maker<'a> {
    builder: Builder<'a>,
    parts: Vec<(ParamId, Part)>,
}

impl Maker<'_> {
    /// One for all languages, or one for each.
    fn each<T>(
        &mut self,
        separate: bool,
        place: Place,
        mut make: impl FnMut(&mut Self, Part) -> T,
    ) -> PerLanguage<T> {
        let languages = self.builder.config.languages.len();
        PerLanguage::make(languages, separate, |language| make(self, Part { place, language }))
    }

    /// The full name of a weight: what is separate begins with its language.
    fn name(&self, part: Part, name: &str) -> String {
        match part.language {
            None => name.to_owned(),
            Some(language) => format!("{}.{name}", self.builder.config.languages[language]),
        }
    }

    fn note(&mut self, part: Part, id: ParamId) -> ParamId {
        self.parts.push((id, part));
        id
    }

    fn normal(&mut self, part: Part, name: &str, rows: usize, cols: usize, shrink: f32) -> ParamId {
        let name = self.name(part, name);
        let id = self.builder.normal(name, rows, cols, shrink);
        self.note(part, id)
    }

    fn constant(&mut self, part: Part, name: &str, cols: usize, number: f32) -> ParamId {
        let name = self.name(part, name);
        let id = self.builder.constant(name, cols, number);
        self.note(part, id)
    }

    fn positions(&mut self, part: Part) -> ParamId {
        let name = self.name(part, "embeddings.positions");
        let id = self.builder.positions(name);
        self.note(part, id)
    }

    fn norm(&mut self, part: Part, name: &str) -> LayerNorm {
        let (dim, epsilon) = (self.builder.config.dim, self.builder.config.epsilon);
        let gamma = self.constant(part, &format!("{name}.gamma"), dim, 1.0);
        let beta = self.constant(part, &format!("{name}.beta"), dim, 0.0);
        LayerNorm { gamma, beta, epsilon }
    }

    fn affine(
        &mut self,
        part: Part,
        name: &str,
        inputs: usize,
        outputs: usize,
        shrink: f32,
    ) -> Affine {
        let weight = self.normal(part, &format!("{name}.weight"), inputs, outputs, shrink);
        let bias = self.constant(part, &format!("{name}.bias"), outputs, 0.0);
        Affine { weight, bias }
    }

    fn layer(&mut self, part: Part, number: usize) -> Layer {
        let EncoderConfig { dim, hidden, layers, scale_outputs, .. } = *self.builder.config;
        let shrink = if scale_outputs { ((2 * layers) as f32).sqrt() } else { 1.0 };
        let name = |part: &str| format!("layers.{number}.{part}");
        Layer {
            query: self.affine(part, &name("query"), dim, dim, 1.0),
            key_value: self.affine(part, &name("key_value"), dim, 2 * dim, 1.0),
            output: self.affine(part, &name("output"), dim, dim, shrink),
            attention_norm: self.norm(part, &name("attention_norm")),
            up: self.affine(part, &name("up"), dim, hidden, 1.0),
            down: self.affine(part, &name("down"), hidden, dim, shrink),
            hidden_norm: self.norm(part, &name("hidden_norm")),
        }
    }
}
