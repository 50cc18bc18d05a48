//! The encoder: which weights it has, and its forward pass.
//!
//! A Transformer (Vaswani et al. 2017) as BERT (Devlin et al. 2019) and XLM (Conneau and Lample 2019) have it, or of the
//! parts that models since 2021 are made of ([`crate::Parts`]). A batch holds text of one language, and sequences follow
//! one another without padding. Where only some positions are wanted (the masked ones, the first of each
//! sequence), the last layer computes only those: everything in it but keys and values is saved for the
//! rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use tensor::kernels::ExpectedShape;
use tensor::{Activation, Affine, Indices, Norm, ParamId, Params, Spans, Tape, Tensor, Turn, Var};

use crate::config::{ConfigError, EncoderConfig, NormPlace, VocabularySize};
use crate::init::Builder;
use crate::params::{
    AffinePart, EncoderParam, LayerRole, NormPart, ParamGroup, ParamRole, PerLanguage,
};
use crate::parts::{AttentionParts, Parts, Positions};

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

/// MaskedTokens positions and what is to be predicted there.
#[derive(Clone, Debug)]
pub struct MaskedTokens {
    /// Rows of the batch, in ascending order.
    pub rows: Indices,
    /// The token that stood in each.
    pub targets: Indices,
}

/// What is wanted of the encoder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Only these rows of the last layer, in ascending order; all of them if none are named.
    pub rows: Option<&'a Indices>,
    /// The last layer to run, where those above it are not wanted; [`EncoderOutput::output`] then is what
    /// the next layer would read.
    pub until: Option<usize>,
    /// Whether [`EncoderOutput::feed_forward`] is wanted; else its memory is used again in evaluation.
    pub neurons: bool,
}

/// What comes out of the encoder.
#[derive(Clone, Debug)]
pub struct EncoderOutput {
    /// What heads are put on: the wanted rows x dim.
    pub output: Var,
    /// The hidden states after the embeddings and after each layer that was run: layers + 1 of
    /// rows x dim. Where only some rows were wanted, those of the encoder's last layer are only
    /// these.
    pub hidden: Vec<Var>,
    /// Where [`Request::neurons`]: the neurons of the feed-forward part of each layer that was run, after the
    /// activation, one of rows x hidden for each, from the lowest up; the rows are those of `hidden`.
    pub feed_forward: Vec<Var>,
}

#[derive(Clone, Copy, Debug)]
struct LayerWeights {
    query: Affine,
    /// Keys, then values.
    key_value: Affine,
    /// The norms of each head of queries and of keys.
    head_norms: Option<[Norm; 2]>,
    output: Affine,
    /// None in the first layer of some models alone.
    attention_norm: Option<Norm>,
    up: Affine,
    down: Affine,
    hidden_norm: Norm,
    /// The norms of what attention and the feed-forward part give.
    after: Option<[Norm; 2]>,
}

/// The angles by which queries and keys are turned, in layers that see everything and in those that see a window; none
/// where nothing is turned.
type Angles = [Option<Arc<Tensor>>; 2];

/// A dense layer before the softmax.
#[derive(Clone, Copy, Debug)]
struct Transform {
    dense: Affine,
    norm: Norm,
}

/// The residual stream: the hidden states, and what the next layer reads. Where LayerNorm stands
/// after, the two are the same.
#[derive(Clone, Copy)]
struct Stream {
    hidden: Var,
    read: Var,
}

/// A Transformer encoder with an MLM head.
#[derive(Debug)]
pub struct Encoder {
    config: EncoderConfig,
    tokens: PerLanguage<ParamId>,
    /// Where positions are learned.
    positions: Option<PerLanguage<ParamId>>,
    languages: Option<ParamId>,
    segments: Option<ParamId>,
    /// On the embeddings, where norms stand after and in some other models.
    embedding_norm: Option<PerLanguage<Norm>>,
    layers: Vec<PerLanguage<LayerWeights>>,
    /// Where norms stand before: on the last hidden states.
    final_norm: Option<Norm>,
    transform: Option<Transform>,
    /// The softmax's table, where it is not that of the tokens.
    decoder: Option<PerLanguage<ParamId>>,
    bias: PerLanguage<ParamId>,
    params: Vec<EncoderParam>,
}

impl Encoder {
    /// Makes the weights of a new encoder and adds them to `params`.
    pub fn new(config: EncoderConfig, params: &mut Params, seed: u64) -> Result<Self, ConfigError> {
        Self::build(config, params, Some(seed))
    }

    /// An encoder whose weights are yet to be written: for callers that read them from a file.
    pub fn empty(config: EncoderConfig, params: &mut Params) -> Result<Self, ConfigError> {
        Self::build(config, params, None)
    }

    /// What stands for states that were computed elsewhere: of so many layers above the embeddings, dimensions and
    /// positions, with next to no weights, and never run.
    pub fn nominal(
        languages: Vec<String>,
        [layers, dim, positions]: [usize; 3],
        params: &mut Params,
    ) -> Self {
        let attention = AttentionParts { width: Some(1), ..AttentionParts::default() };
        let parts = Parts { positions: Positions::Slopes, attention, ..Parts::default() };
        let vocabulary = VocabularySize::Size(1);
        let (heads, hidden) = (1, 1);
        let config = EncoderConfig {
            languages,
            vocabulary,
            layers,
            heads,
            dim,
            hidden,
            positions,
            parts,
            ..EncoderConfig::default()
        };
        Self::assemble(config, params, None)
    }

    fn build(
        config: EncoderConfig,
        params: &mut Params,
        seed: Option<u64>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        if params.device().is_gpu() && config.parts != Parts::default() {
            let reason = "the GPU has no kernels for these parts yet: use --device cpu";
            return Err(ConfigError::new("parts", reason));
        }
        params.device().kernels().expect(ExpectedShape {
            dim: config.dim,
            heads: config.heads,
            length: config.positions,
            activation: config.activation.into(),
        });
        Ok(Self::assemble(config, params, seed))
    }

    fn assemble(config: EncoderConfig, params: &mut Params, seed: Option<u64>) -> Self {
        let builder = Builder { config: &config, params, seed };
        let mut maker = ParamMaker { builder, made: Vec::new() };
        let (plan, dim, biases) = (&config.separate, config.dim, &config.parts.biases);
        let entries = |language: Option<usize>| config.entries(language.unwrap_or(0));
        let tokens = maker.each(plan.tokens, |maker, language| {
            maker.normal(ParamRole::TokenEmbedding, language, entries(language), dim, 1.0)
        });
        let positions = (config.parts.positions == Positions::Learned)
            .then(|| maker.each(plan.positions, |maker, language| maker.positions(language)));
        let languages = config.language_embeddings.then(|| {
            let count = config.languages.len();
            maker.normal(ParamRole::LanguageEmbedding, None, count, dim, 1.0)
        });
        let segments = (config.segments > 0)
            .then(|| maker.normal(ParamRole::SegmentEmbedding, None, config.segments, dim, 1.0));
        let post = config.norm == NormPlace::Post;
        let embedding_norm = config.parts.embedding_norm.unwrap_or(post).then(|| {
            maker
                .each(plan.tokens, |maker, language| maker.norm(ParamRole::EmbeddingNorm, language))
        });
        let layers = (1..=config.layers)
            .map(|number| {
                let separate = plan.layers.contains(&number);
                maker.each(separate, |maker, language| maker.layer(number, language))
            })
            .collect();
        let final_norm = (!post).then(|| maker.norm(ParamRole::FinalNorm, None));
        let transform = config.transform.then(|| Transform {
            dense: maker.affine(ParamRole::MlmDense, None, [dim, dim], 1.0, biases.head),
            norm: maker.norm(ParamRole::MlmNorm, None),
        });
        let decoder = config.untied.then(|| {
            maker.each(plan.tokens, |maker, language| {
                maker.normal(ParamRole::MlmDecoder, language, entries(language), dim, 1.0)
            })
        });
        let bias = maker.each(plan.tokens, |maker, language| {
            maker.constant(ParamRole::MlmBias, language, entries(language), 0.0)
        });
        let params = maker.made;
        Self {
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
            params,
        }
    }

    /// What it looks like.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Every weight matrix by role, in the order in which they were added.
    pub fn params(&self) -> &[EncoderParam] {
        &self.params
    }

    /// The weight matrix of a role that a language uses: its own, or the shared one. None where the
    /// encoder has none, or where each language has its own and none is named.
    pub fn param(&self, role: ParamRole, language: Option<usize>) -> Option<ParamId> {
        let mut of_role = self.params.iter().filter(|param| param.role == role);
        let used = of_role.find(|param| param.language.is_none() || param.language == language);
        used.map(|param| param.id)
    }

    /// Gives some layers, counted from 1, the weights that they would have in a new encoder of this seed; a layer that is
    /// separate is new for every language.
    pub fn reinitialize(&self, params: &mut Params, layers: &BTreeSet<usize>, seed: u64) {
        // Weights are drawn by their names, so that a small vocabulary gives layers the same ones.
        let vocabulary = VocabularySize::Size(1);
        let config = EncoderConfig { vocabulary, ..self.config.clone() };
        let mut fresh = Params::new(params.device());
        let new =
            Self::new(config, &mut fresh, seed).expect("the same shape but for its vocabulary");
        for (own, new) in self.params.iter().zip(&new.params) {
            if matches!(own.group(), ParamGroup::Layer(number) if layers.contains(&number)) {
                params.value_mut(own.id).write(&fresh.value(new.id).to_vec());
            }
        }
    }

    /// Trains the weights that `trains` names, and freezes the rest.
    pub fn set_trainable(&self, params: &mut Params, trains: impl Fn(&EncoderParam) -> bool) {
        for param in &self.params {
            params.set_trainable(param.id, trains(param));
        }
    }

    /// Runs the encoder.
    ///
    /// # Panics
    /// Where a sequence is longer than the encoder's positions, or a token or language is unknown to
    /// it: callers know the configuration.
    pub fn encode(
        &self,
        tape: &mut Tape<'_>,
        batch: &Batch,
        request: Request<'_>,
    ) -> EncoderOutput {
        assert!(batch.spans.longest() <= self.config.positions, "a sequence is too long");
        let stream = self.embed(tape, batch);
        self.run(tape, batch, 0, stream, request)
    }

    /// Runs the encoder over given vectors (rows x dim) in place of token embeddings.
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
    ) -> EncoderOutput {
        assert!(spans.longest() <= self.config.positions, "a sequence is too long");
        let batch =
            Batch { language, tokens: Vec::new().into(), spans: spans.clone(), segments: None };
        let scaled = self.scaled(tape, vectors);
        let sum = match &self.positions {
            None => scaled,
            Some(table) => {
                let positions = tape.embed(vec![(*table.get(language), spans.places())], None, 0.0);
                tape.residual(scaled, positions, 0.0)
            }
        };
        let norm = self.embedding_norm.as_ref().map(|norm| *norm.get(language));
        let hidden = norm.map_or(sum, |norm| tape.norm(sum, norm));
        let hidden = tape.drop(hidden, self.config.dropout);
        let stream = self.read(tape, 0, language, hidden);
        self.run(tape, &batch, 0, stream, request)
    }

    /// Runs only the layers above `layer`, on the hidden states after it: rows x dim. The hidden
    /// states that come out begin with those. States that were taken off another tape stay on the
    /// device, and [`tensor::Device::add_rows`] shifts them there.
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
    ) -> EncoderOutput {
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
    ) -> EncoderOutput {
        let last = request.until.unwrap_or(self.config.layers).min(self.config.layers);
        let layers = last.saturating_sub(first);
        let angles = self.angles(tape, &batch.spans);
        let mut hidden = Vec::with_capacity(layers + 1);
        let mut feed_forward = Vec::with_capacity(layers);
        for number in first..=last {
            if number > first {
                let rows = request.rows.filter(|_| number == self.config.layers);
                let (above, neurons) = self.layer(tape, number, batch, (stream, &angles), rows);
                stream = above;
                if request.neurons {
                    feed_forward.push(neurons);
                } else {
                    tape.release(neurons);
                }
            }
            hidden.push(stream.hidden);
        }
        EncoderOutput { output: stream.read, hidden, feed_forward }
    }

    /// The logits of hidden states over the vocabulary of a language: rows x vocabulary.
    pub fn logits(&self, tape: &mut Tape<'_>, language: usize, output: Var) -> Tensor {
        let output = self.transformed(tape, output);
        let mut logits = tape.logits(output, self.table(language), *self.bias.get(language));
        if let Some(cap) = self.config.parts.logit_cap {
            let capped: Vec<f32> =
                logits.elements().iter().map(|logit| cap * (logit / cap).tanh()).collect();
            logits.write(&capped);
        }
        logits
    }

    /// The most likely token of each row of [`EncoderOutput::output`], the first of equals. The rows may be several `copies` of a
    /// batch's that resemble each other (1 if they do not), which saves time and changes nothing.
    pub fn best_tokens(
        &self,
        tape: &mut Tape<'_>,
        language: usize,
        output: Var,
        copies: usize,
    ) -> Vec<u32> {
        let output = self.transformed(tape, output);
        tape.best_tokens(output, self.table(language), *self.bias.get(language), copies)
    }

    /// The MLM loss of the masked tokens. The result is 1 x 2: the sum of the losses, and how many
    /// predictions were correct. When training, gradients of `weight` times that sum go onto the tape.
    pub fn mlm_loss(
        &self,
        tape: &mut Tape<'_>,
        batch: &Batch,
        masked: &MaskedTokens,
        weight: f32,
    ) -> Tensor {
        assert!(self.config.parts.logit_cap.is_none(), "the loss is of logits without a cap");
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
                let dense = tape.linear(output, dense, self.config.head_activation());
                tape.norm(dense, norm)
            }
        }
    }

    fn embed(&self, tape: &mut Tape<'_>, batch: &Batch) -> Stream {
        let language = batch.language;
        let mut tables = vec![(*self.tokens.get(language), batch.tokens.clone())];
        tables.extend(
            self.positions.iter().map(|table| (*table.get(language), batch.spans.places())),
        );
        if let Some(languages) = self.languages {
            let rows = std::iter::repeat_n(language as u32, batch.tokens.len());
            tables.push((languages, rows.collect()));
        }
        if let Some(segments) = self.segments {
            let none = || std::iter::repeat_n(0, batch.tokens.len()).collect();
            tables.push((segments, batch.segments.clone().unwrap_or_else(none)));
        }
        let norm = self.embedding_norm.as_ref().map(|norm| *norm.get(language));
        if self.config.parts.embedding_scale != 1.0 {
            let tokens = tape.embed(tables.drain(..1).collect(), None, 0.0);
            let scaled = self.scaled(tape, tokens);
            let others = (!tables.is_empty()).then(|| tape.embed(tables, None, 0.0));
            let sum = others.map_or(scaled, |others| tape.residual(scaled, others, 0.0));
            let normed = norm.map_or(sum, |norm| tape.norm(sum, norm));
            let hidden = tape.drop(normed, self.config.dropout);
            return self.read(tape, 0, language, hidden);
        }
        let hidden = tape.embed(tables, norm, self.config.dropout); // rows x dim
        self.read(tape, 0, language, hidden)
    }

    /// Token embeddings as the model scales them.
    fn scaled(&self, tape: &mut Tape<'_>, tokens: Var) -> Var {
        match self.config.parts.embedding_scale {
            1.0 => tokens,
            scale => tape.scale(tokens, scale),
        }
    }

    /// The angles of every position of some sequences.
    fn angles(&self, tape: &Tape<'_>, spans: &Spans) -> Angles {
        let Positions::Rotary(rotary) = &self.config.parts.positions else { return [None, None] };
        let device = tape.device();
        [false, true].map(|local| {
            let used = (1..=self.config.layers).any(|l| self.config.parts.is_local(l) == local);
            used.then(|| {
                let positions = spans.longest();
                let (columns, angles) = rotary.angles(self.config.width(), positions, local);
                Arc::new(device.tensor(positions, columns, &angles))
            })
        })
    }

    /// The norm between the hidden states after layer `number` and what reads them, where norms stand before.
    fn norm_after(&self, number: usize, language: usize) -> Option<Norm> {
        let final_norm = self.final_norm?;
        match self.layers.get(number) {
            Some(layer) => layer.get(language).attention_norm,
            None => Some(final_norm),
        }
    }

    /// The stream at the hidden states after layer `number`.
    fn read(&self, tape: &mut Tape<'_>, number: usize, language: usize, hidden: Var) -> Stream {
        let norm = self.norm_after(number, language);
        Stream { hidden, read: norm.map_or(hidden, |norm| tape.norm(hidden, norm)) }
    }

    /// One layer, counted from 1; of its outputs only `rows`, if they are named. Its feed-forward
    /// activations come with it.
    fn layer(
        &self,
        tape: &mut Tape<'_>,
        number: usize,
        batch: &Batch,
        (stream, angles): (Stream, &Angles),
        rows: Option<&Indices>,
    ) -> (Stream, Var) {
        let layer = *self.layers[number - 1].get(batch.language);
        let config = &self.config;
        let turned = |tape: &mut Tape<'_>, x: Var, heads: usize, norm: usize, spans: &Spans| {
            let (norm, angles) = (
                layer.head_norms.map(|norms| norms[norm]),
                angles[usize::from(config.parts.is_local(number))].clone(),
            );
            if norm.is_none() && angles.is_none() {
                return x;
            }
            let turn = Turn { width: config.width(), heads, norm, angles, places: spans.places() };
            let turned = tape.turn(x, turn);
            tape.release(x);
            turned
        };
        let key_value = tape.linear(stream.read, layer.key_value, Activation::None); // n x 2·sources·width
        let key_value = turned(tape, key_value, config.sources(), 1, &batch.spans);
        let (below, queries) = match rows {
            None => (stream, batch.spans.clone()),
            Some(rows) => (stream.select(tape, rows), batch.spans.choose(rows)),
        };
        let query = tape.linear(below.read, layer.query, Activation::None); // rows x heads·width
        below.release_read(tape);
        let query = turned(tape, query, config.heads, 0, &queries);
        let heads = config.heads_of(number);
        let attended = tape.attention(
            query,
            key_value,
            heads,
            &queries,
            &batch.spans,
            config.attention_dropout,
        );
        tape.release(query);
        tape.release(key_value);
        let update = tape.linear(attended, layer.output, Activation::None); // rows x dim
        tape.release(attended);

        let update = self.normed(tape, update, layer.after.map(|[norm, _]| norm));
        let first = layer.attention_norm.unwrap_or(layer.hidden_norm);
        let (middle, norm) = match self.norm_after(number, batch.language) {
            None => (first, layer.hidden_norm),
            Some(after) => (layer.hidden_norm, after),
        };
        let middle = self.residual(tape, below.hidden, update, middle);
        let wide = self.wide(tape, middle.read, layer.up); // rows x hidden
        middle.release_read(tape);
        let update = tape.linear(wide, layer.down, Activation::None); // rows x dim
        let update = self.normed(tape, update, layer.after.map(|[_, norm]| norm));
        let above = self.residual(tape, middle.hidden, update, norm);
        tape.release(middle.hidden);
        (above, wide)
    }

    /// The neurons of the feed-forward part.
    fn wide(&self, tape: &mut Tape<'_>, read: Var, up: Affine) -> Var {
        let activation = self.config.activation.into();
        if !self.config.parts.gated {
            return tape.linear(read, up, activation);
        }
        let both = tape.linear(read, up, Activation::None); // rows x 2·hidden
        let wide = tape.gate(both, activation);
        tape.release(both);
        wide
    }

    /// An update after its norm, where it has one.
    fn normed(&self, tape: &mut Tape<'_>, update: Var, norm: Option<Norm>) -> Var {
        let Some(norm) = norm else { return update };
        let normed = tape.norm(update, norm);
        tape.release(update);
        normed
    }

    /// The stream after an update has been added to it.
    fn residual(&self, tape: &mut Tape<'_>, hidden: Var, update: Var, norm: Norm) -> Stream {
        let (sum, normed) = tape.residual_norm(hidden, update, self.config.dropout, norm);
        tape.release(update);
        match self.config.norm {
            NormPlace::Post => {
                tape.release(sum);
                Stream { hidden: normed, read: normed }
            }
            NormPlace::Pre | NormPlace::Both => Stream { hidden: sum, read: normed },
        }
    }
}

impl Stream {
    /// Releases what the next layer has read, unless it is the hidden states.
    fn release_read(self, tape: &mut Tape<'_>) {
        if self.read != self.hidden {
            tape.release(self.read);
        }
    }

    fn select(self, tape: &mut Tape<'_>, rows: &Indices) -> Self {
        let read = tape.select(self.read, rows);
        let hidden = if self.hidden == self.read { read } else { tape.select(self.hidden, rows) };
        Self { hidden, read }
    }
}

/// Makes weights and records their roles.
struct ParamMaker<'a> {
    builder: Builder<'a>,
    made: Vec<EncoderParam>,
}

impl ParamMaker<'_> {
    /// One for all languages, or one for each.
    fn each<T>(
        &mut self,
        separate: bool,
        mut make: impl FnMut(&mut Self, Option<usize>) -> T,
    ) -> PerLanguage<T> {
        let languages = self.builder.config.languages.len();
        PerLanguage::make(languages, separate, |language| make(self, language))
    }

    /// The full name of a weight matrix: what is separate begins with its language.
    fn name(&self, role: ParamRole, language: Option<usize>) -> String {
        match language {
            None => role.to_string(),
            Some(language) => format!("{}.{role}", self.builder.config.languages[language]),
        }
    }

    fn record(&mut self, role: ParamRole, language: Option<usize>, id: ParamId) -> ParamId {
        self.made.push(EncoderParam { id, role, language });
        id
    }

    fn normal(
        &mut self,
        role: ParamRole,
        language: Option<usize>,
        rows: usize,
        cols: usize,
        shrink: f32,
    ) -> ParamId {
        let name = self.name(role, language);
        let id = self.builder.normal(name, rows, cols, shrink);
        self.record(role, language, id)
    }

    fn constant(
        &mut self,
        role: ParamRole,
        language: Option<usize>,
        cols: usize,
        number: f32,
    ) -> ParamId {
        let name = self.name(role, language);
        let id = self.builder.constant(name, cols, number);
        self.record(role, language, id)
    }

    fn positions(&mut self, language: Option<usize>) -> ParamId {
        let role = ParamRole::PositionEmbedding;
        let id = self.builder.positions(self.name(role, language));
        self.record(role, language, id)
    }

    fn norm(&mut self, role: impl Fn(NormPart) -> ParamRole, language: Option<usize>) -> Norm {
        self.norm_of(role, language, self.builder.config.dim)
    }

    /// A norm of so many columns.
    fn norm_of(
        &mut self,
        role: impl Fn(NormPart) -> ParamRole,
        language: Option<usize>,
        cols: usize,
    ) -> Norm {
        let EncoderConfig { epsilon, parts: Parts { norm: kind, norm_bias, .. }, .. } =
            *self.builder.config;
        let gamma = self.constant(role(NormPart::Gamma), language, cols, 1.0);
        let beta = norm_bias.then(|| self.constant(role(NormPart::Beta), language, cols, 0.0));
        Norm { kind, gamma, beta, epsilon }
    }

    fn affine(
        &mut self,
        role: impl Fn(AffinePart) -> ParamRole,
        language: Option<usize>,
        [inputs, outputs]: [usize; 2],
        shrink: f32,
        biased: bool,
    ) -> Affine {
        let weight = self.normal(role(AffinePart::Weight), language, inputs, outputs, shrink);
        let bias = biased.then(|| self.constant(role(AffinePart::Bias), language, outputs, 0.0));
        Affine { weight, bias }
    }

    fn layer(&mut self, number: usize, language: Option<usize>) -> LayerWeights {
        let config = self.builder.config;
        let EncoderConfig { dim, hidden, layers, scale_outputs, .. } = *config;
        let [queries, keys] = [config.heads, config.sources()].map(|heads| heads * config.width());
        let (parts, up) = (&config.parts, if config.parts.gated { 2 * hidden } else { hidden });
        let (biases, width) = (&parts.biases, config.width());
        let shrink = if scale_outputs { ((2 * layers) as f32).sqrt() } else { 1.0 };
        let affine =
            |role: fn(AffinePart) -> LayerRole| move |part| ParamRole::Layer(number, role(part));
        let norm =
            |role: fn(NormPart) -> LayerRole| move |part| ParamRole::Layer(number, role(part));
        LayerWeights {
            query: self.affine(
                affine(LayerRole::Query),
                language,
                [dim, queries],
                1.0,
                biases.attention,
            ),
            key_value: self.affine(
                affine(LayerRole::KeyValue),
                language,
                [dim, 2 * keys],
                1.0,
                biases.attention,
            ),
            head_norms: parts.attention.head_norm.then(|| {
                [LayerRole::QueryNorm, LayerRole::KeyNorm]
                    .map(|role| self.norm_of(norm(role), language, width))
            }),
            output: self.affine(
                affine(LayerRole::Output),
                language,
                [queries, dim],
                shrink,
                biases.output,
            ),
            attention_norm: (parts.first_norm || number > 1)
                .then(|| self.norm(norm(LayerRole::AttentionNorm), language)),
            up: self.affine(affine(LayerRole::Up), language, [dim, up], 1.0, biases.hidden),
            down: self.affine(
                affine(LayerRole::Down),
                language,
                [hidden, dim],
                shrink,
                biases.hidden,
            ),
            hidden_norm: self.norm(norm(LayerRole::HiddenNorm), language),
            after: (config.norm == NormPlace::Both).then(|| {
                [LayerRole::AttentionAfter, LayerRole::HiddenAfter]
                    .map(|role| self.norm(norm(role), language))
            }),
        }
    }
}
