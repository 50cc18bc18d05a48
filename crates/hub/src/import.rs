//! From a Hugging Face folder to an encoder.

use std::ops::Range;
use std::path::{Path, PathBuf};

use encoder::{
    AffinePart, Encoder, EncoderConfig, LayerRole, NormPart, NormPlace, ParamRole, Positions,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::{Device, Params, Tensor};
use text::{Error, Result, Vocabulary};

use crate::config::{CONFIG, Family, ModelConfig};
use crate::layout::TensorNames;
use crate::read::{Outputs, Reading, sinusoid};
use crate::sentence::sentence_modules;
use crate::tokenizer;
use crate::weights::{CheckpointWeights, NumberType, StoredTensor};

const FITTING: &str = "give the configuration and the weights that belong together";

/// A Hugging Face checkpoint as an encoder.
pub struct Checkpoint {
    /// The encoder.
    pub model: Encoder,
    /// Its weights.
    pub params: Params,
    /// Its vocabulary.
    pub vocabulary: Vocabulary,
    /// What tells these weights from any other.
    pub fingerprint: String,
    /// What the folder holds.
    pub summary: CheckpointSummary,
}

/// A checkpoint that was written as the folder of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportResult {
    /// What was read.
    #[serde(flatten)]
    pub summary: CheckpointSummary,
    /// The digest of the weights.
    pub fingerprint: String,
    /// How long reading took.
    pub seconds: f64,
    /// The folder that was written.
    pub out: PathBuf,
}

/// What a Hugging Face folder holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointSummary {
    /// The folder.
    pub folder: PathBuf,
    /// The family.
    pub family: Family,
    /// The architecture.
    pub encoder: EncoderConfig,
    /// Parameters in all.
    pub parameters: usize,
    /// Where the weights are.
    pub files: Vec<String>,
    /// The precision of the numbers there.
    pub stored_as: String,
    /// The file that holds the subwords.
    pub tokenizer: String,
    /// Whether it has an MLM head.
    pub has_mlm_head: bool,
    /// Tensors that the family has and the files have not.
    pub missing: Vec<String>,
    /// Tensors that are in the files and not used.
    pub left_over: Vec<String>,
    /// How sentence-transformers makes a sentence's vector of them, where it says so, or why that is not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence_vectors: Option<String>,
}

/// Opens a Hugging Face folder.
pub fn open(folder: &Path, device: &Device) -> Result<Checkpoint> {
    let config = ModelConfig::read(folder)?;
    let weights = CheckpointWeights::open(folder)?;
    let plan = ImportPlan::new(folder, &config, &weights)?;
    let (vocabulary, loaded) = device
        .run(|| rayon::join(|| tokenizer::read(folder, &config), || load(&plan, device, folder)));
    let (vocabulary, tokenizer) = vocabulary?;
    let (model, params, fingerprint) = loaded?;
    let summary = CheckpointSummary {
        folder: folder.to_owned(),
        family: config.family,
        encoder: plan.encoder.clone(),
        parameters: params.count(),
        files: weights.files.clone(),
        stored_as: plan.stored_as(),
        tokenizer: tokenizer.to_owned(),
        has_mlm_head: plan.has_mlm_head,
        left_over: plan.left_over(&weights),
        missing: plan.missing,
        sentence_vectors: sentence_modules(folder)
            .map_or_else(|error| Some(error.to_string()), |found| Some(found?.to_string())),
    };
    Ok(Checkpoint { model, params, vocabulary, fingerprint, summary })
}

/// The vocabulary of a Hugging Face folder, without its weights.
///
/// # Errors
/// Where the configuration or the tokenizer cannot be read.
pub fn vocabulary(folder: &Path) -> Result<Vocabulary> {
    Ok(tokenizer::read(folder, &ModelConfig::read(folder)?)?.0)
}

/// Makes the model and reads every weight into its place.
fn load(
    plan: &ImportPlan<'_>,
    device: &Device,
    folder: &Path,
) -> Result<(Encoder, Params, String)> {
    let mut params = Params::new(device);
    let refuse =
        |error: encoder::ConfigError| Error::file(folder.join(CONFIG), error.to_string(), FITTING);
    let model = Encoder::empty(plan.encoder.clone(), &mut params).map_err(refuse)?;
    let roles = model.params().iter().map(|param| param.role);
    let targets: Vec<(ParamRole, &mut Tensor)> =
        roles.zip(params.iter_mut().map(|(_, value, _)| value)).collect();
    // Gives the name of a weight matrix that is not finite.
    let fill = |(role, target): (ParamRole, &mut Tensor)| {
        let reading = plan.reading(role).expect("every weight has its reading");
        let (mut read, mut sound) = (Ok(()), true);
        target.write_with(|out| {
            read = reading.write(out);
            sound = out.iter().all(|x| x.is_finite());
        });
        read.map(|()| (!sound).then(|| role.to_string()))
    };
    let fill_all = || targets.into_par_iter().map(fill).collect::<Result<Vec<Option<String>>>>();
    let (digest, broken) = rayon::join(|| plan.digest(), fill_all);
    let (digest, broken) = (digest?, broken?);
    if let Some(name) = broken.into_iter().flatten().min() {
        let reason = format!("has a weight that is NaN or infinite, where `{name}` is read from");
        return Err(Error::file(folder, reason, "fetch or save the model again"));
    }
    Ok((model, params, digest))
}

/// Which tensors become which weights, found and checked before anything is allocated.
struct ImportPlan<'a> {
    encoder: EncoderConfig,
    /// How each weight matrix is read.
    readings: Vec<(ParamRole, Reading<'a>)>,
    /// The tensors that are read.
    used: Vec<(String, StoredTensor<'a>)>,
    missing: Vec<String>,
    has_mlm_head: bool,
    weights: &'a CheckpointWeights,
    layout: &'static TensorNames,
    /// What names of the body begin with.
    prefix: &'static str,
    folder: &'a Path,
}

impl<'a> ImportPlan<'a> {
    fn new(folder: &'a Path, config: &ModelConfig, weights: &'a CheckpointWeights) -> Result<Self> {
        let layout = TensorNames::of(config.family);
        let with_head = weights.get(&format!("{}{}", layout.body, layout.tokens)).is_some();
        let mut plan = Self {
            encoder: config.encoder.clone(),
            readings: Vec::new(),
            used: Vec::new(),
            missing: Vec::new(),
            has_mlm_head: true,
            weights,
            layout,
            prefix: if with_head { layout.body } else { "" },
            folder,
        };
        plan.embeddings(config)?;
        for number in 0..config.encoder.layers {
            plan.layer(number)?;
        }
        if let Some(norm) = layout.final_norm {
            plan.norm(ParamRole::FinalNorm, &plan.body(norm), plan.encoder.dim)?;
        }
        plan.head(config)?;
        Ok(plan)
    }

    fn reading(&self, role: ParamRole) -> Option<&Reading<'a>> {
        self.readings.iter().find(|(known, _)| *known == role).map(|(_, reading)| reading)
    }

    fn refuse(&self, reason: String) -> Error {
        Error::file(self.folder, reason, FITTING)
    }

    /// The full name of a tensor of the body.
    fn body(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A tensor that must be there, of a shape that must be right.
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<StoredTensor<'a>> {
        let view = self.weights.get(name);
        let view = view.ok_or_else(|| self.refuse(format!("has no tensor {name}")))?;
        if view.shape != shape {
            let reason = format!("has {name} of shape {:?}, not {shape:?}", view.shape);
            return Err(self.refuse(reason));
        }
        let known = [NumberType::F32, NumberType::F16, NumberType::Bf16].contains(&view.element);
        if !known && !matches!(view.element, NumberType::Quantised(_)) {
            let reason = format!("has {name} in {:?}, not f32, f16 or bf16", view.element);
            return Err(self.refuse(reason));
        }
        self.used.push((name.to_owned(), view));
        Ok(view)
    }

    fn add(&mut self, role: ParamRole, reading: Reading<'a>) {
        self.readings.push((role, reading));
    }

    fn embeddings(&mut self, config: &ModelConfig) -> Result<()> {
        let layout = self.layout;
        let (dim, rows) = (self.encoder.dim, self.encoder.entries(0));
        let tokens = self.tensor(&self.body(layout.tokens), &[rows, dim])?;
        self.add(ParamRole::TokenEmbedding, Reading::Rows { table: tokens, skip: 0, add: None });
        let segments = match layout.segments.filter(|_| config.segments > 0) {
            Some(name) => Some(self.tensor(&self.body(name), &[config.segments, dim])?),
            None => None,
        };
        // A table of one row is the same for every token, so positions carry it along.
        let single = segments.filter(|_| config.segments == 1);
        if let Some(table) = segments.filter(|_| config.segments > 1) {
            self.encoder.segments = config.segments;
            self.add(ParamRole::SegmentEmbedding, Reading::Rows { table, skip: 0, add: None });
        }
        let name = self.body(layout.positions);
        if self.encoder.parts.positions != Positions::Learned {
            // Nothing is read for them.
        } else if let Some(waves) = config.sinusoids
            && self.weights.get(&name).is_none()
        {
            let values = sinusoid(self.encoder.positions, dim, waves);
            self.add(ParamRole::PositionEmbedding, Reading::Given(values));
        } else {
            let skip = config.unused_positions;
            let table = self.tensor(&name, &[self.encoder.positions + skip, dim])?;
            self.add(ParamRole::PositionEmbedding, Reading::Rows { table, skip, add: single });
        }
        if let Some(name) = layout.languages.filter(|_| self.encoder.language_embeddings) {
            let languages = self.encoder.languages.len();
            let table = self.tensor(&self.body(name), &[languages, dim])?;
            self.add(ParamRole::LanguageEmbedding, Reading::Rows { table, skip: 0, add: None });
        }
        match layout.embedding_norm {
            Some(norm) => self.norm(ParamRole::EmbeddingNorm, &self.body(norm), dim),
            None => Ok(()),
        }
    }

    fn layer(&mut self, number: usize) -> Result<()> {
        let config = self.encoder.clone();
        let (layout, dim, hidden) = (self.layout, config.dim, config.hidden);
        let [queries, keys] = [config.heads, config.sources()].map(|heads| heads * config.width());
        let (biases, prefix) = (&config.parts.biases, self.body(""));
        let theirs =
            |pattern: &str| format!("{prefix}{}", pattern.replace("{}", &number.to_string()));
        let affine = |role: fn(AffinePart) -> LayerRole| {
            move |part| ParamRole::Layer(number + 1, role(part))
        };
        let norm =
            |role: fn(NormPart) -> LayerRole| move |part| ParamRole::Layer(number + 1, role(part));
        let part = |number: usize| -> Vec<(String, Range<usize>, usize)> {
            let size = [queries, keys, keys][number];
            let first = [0, queries, queries + keys][number];
            let (name, all) = (theirs(layout.query), queries + 2 * keys);
            match (layout.query == layout.key, layout.head_by_head) {
                (false, _) => {
                    let name = [layout.query, layout.key, layout.value][number];
                    vec![(theirs(name), 0..size, size)]
                }
                (true, false) => vec![(name, first..first + size, all)],
                (true, true) => {
                    let width = config.width();
                    let first = |head: usize| (3 * head + number) * width;
                    let of_head = |head| (name.clone(), first(head)..first(head) + width, all);
                    (0..config.heads).map(of_head).collect()
                }
            }
        };
        let key_value = [part(1), part(2)].concat();
        self.affine(affine(LayerRole::Query), &part(0), dim, biases.attention)?;
        self.affine(affine(LayerRole::KeyValue), &key_value, dim, biases.attention)?;
        if config.parts.attention.head_norm {
            let width = config.width();
            self.norm(norm(LayerRole::QueryNorm), &theirs(layout.head_norms[0]), width)?;
            self.norm(norm(LayerRole::KeyNorm), &theirs(layout.head_norms[1]), width)?;
        }
        let output = [(theirs(layout.output), 0..dim, dim)];
        self.affine(affine(LayerRole::Output), &output, queries, biases.output)?;
        if config.parts.first_norm || number > 0 {
            self.norm(norm(LayerRole::AttentionNorm), &theirs(layout.attention_norm), dim)?;
        }
        let up = theirs(layout.up);
        let up = match layout.gate {
            Some(gate) if gate == layout.up => {
                vec![(up.clone(), 0..hidden, 2 * hidden), (up, hidden..2 * hidden, 2 * hidden)]
            }
            Some(gate) => vec![(theirs(gate), 0..hidden, hidden), (up, 0..hidden, hidden)],
            None => vec![(up, 0..hidden, hidden)],
        };
        self.affine(affine(LayerRole::Up), &up, dim, biases.hidden)?;
        let down = [(theirs(layout.down), 0..dim, dim)];
        self.affine(affine(LayerRole::Down), &down, hidden, biases.hidden)?;
        self.norm(norm(LayerRole::HiddenNorm), &theirs(layout.hidden_norm), dim)?;
        if config.norm == NormPlace::Both {
            self.norm(norm(LayerRole::AttentionAfter), &theirs(layout.after[0]), dim)?;
            self.norm(norm(LayerRole::HiddenAfter), &theirs(layout.after[1]), dim)?;
        }
        Ok(())
    }

    /// One affine map, or several side by side: for each its tensor, which of its outputs are meant, and of how many.
    fn affine(
        &mut self,
        role: impl Fn(AffinePart) -> ParamRole,
        theirs: &[(String, Range<usize>, usize)],
        inputs: usize,
        biased: bool,
    ) -> Result<()> {
        let in_layer = matches!(role(AffinePart::Weight), ParamRole::Layer(..));
        let sideways = self.layout.sideways && in_layer;
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for (name, range, all) in theirs {
            let shape = if sideways { [inputs, *all] } else { [*all, inputs] };
            let tensor = self.tensor(&format!("{name}.weight"), &shape)?;
            weights.push(Outputs { tensor, range: range.clone(), sideways });
            if biased {
                let tensor = self.tensor(&format!("{name}.bias"), &[*all])?;
                biases.push(Outputs { tensor, range: range.clone(), sideways });
            }
        }
        self.add(role(AffinePart::Weight), Reading::Beside(weights));
        if biased {
            self.add(role(AffinePart::Bias), Reading::Joined(biases, 0.0));
        }
        Ok(())
    }

    fn norm(
        &mut self,
        role: impl Fn(NormPart) -> ParamRole,
        theirs: &str,
        cols: usize,
    ) -> Result<()> {
        self.row(
            role(NormPart::Gamma),
            &format!("{theirs}.weight"),
            cols,
            if self.weights.whole_scales { 0.0 } else { self.layout.scale_offset },
        )?;
        match self.encoder.parts.norm_bias {
            true => self.row(role(NormPart::Beta), &format!("{theirs}.bias"), cols, 0.0),
            false => Ok(()),
        }
    }

    /// One row, with a number added to each element.
    fn row(&mut self, role: ParamRole, theirs: &str, cols: usize, add: f32) -> Result<()> {
        let tensor = self.tensor(theirs, &[cols])?;
        self.add(
            role,
            Reading::Joined(vec![Outputs { tensor, range: 0..cols, sideways: false }], add),
        );
        Ok(())
    }

    /// The head. A model without it can do everything but predict tokens, and one that predicts the next token is no
    /// masked language model.
    fn head(&mut self, config: &ModelConfig) -> Result<()> {
        let (layout, dim, rows) = (self.layout, self.encoder.dim, self.encoder.entries(0));
        let (parts, weights) = (self.encoder.parts.clone(), self.weights);
        let has = |name: &str| weights.get(name).is_some();
        let part_of = |name: &str, biased: bool| {
            let parts = if biased { &["weight", "bias"][..] } else { &["weight"] };
            parts.iter().map(|part| format!("{name}.{part}")).collect::<Vec<_>>()
        };
        let needed = layout.transform.iter().flat_map(|(dense, norm)| {
            [part_of(dense, parts.biases.head), part_of(norm, parts.norm_bias)].concat()
        });
        let bias = layout.bias.map(|names| names.into_iter().rev().find(|name| has(name)));
        let needed = needed.chain((!config.tied).then(|| layout.decoder.to_owned()));
        let absent = needed.filter(|name| !has(name));
        let no_bias = bias.is_some_and(|bias| bias.is_none());
        let no_bias = layout.bias.filter(|_| no_bias).map(|names| names[0].to_owned());
        self.missing = absent.chain(no_bias).collect();
        self.has_mlm_head = self.missing.is_empty() && config.masked;
        if !self.missing.is_empty() {
            self.encoder.transform = false;
            self.encoder.head_activation = None;
            self.add(ParamRole::MlmBias, Reading::Given(vec![0.0; rows]));
            return Ok(());
        }
        if let Some((dense, norm)) = layout.transform {
            let theirs = [(dense.to_owned(), 0..dim, dim)];
            self.affine(ParamRole::MlmDense, &theirs, dim, parts.biases.head)?;
            self.norm(ParamRole::MlmNorm, norm, dim)?;
        }
        match bias.flatten() {
            Some(bias) => {
                self.row(ParamRole::MlmBias, bias, rows, 0.0)?;
                if let Some([kept, _]) = layout.bias.filter(|names| has(names[0])) {
                    self.tensor(kept, &[rows])?;
                }
            }
            None => self.add(ParamRole::MlmBias, Reading::Given(vec![0.0; rows])),
        }
        self.decoder()
    }

    /// The softmax's table, where it is not that of the tokens.
    fn decoder(&mut self) -> Result<()> {
        let layout = self.layout;
        let (dim, rows) = (self.encoder.dim, self.encoder.entries(0));
        if self.weights.get(layout.decoder).is_none() {
            return Ok(());
        }
        let table = self.tensor(layout.decoder, &[rows, dim])?;
        let tokens = self.weights.get(&self.body(layout.tokens));
        let same = tokens.map(|tokens| tokens.equals(&table)).transpose()?.unwrap_or(false);
        if !same {
            self.encoder.untied = true;
            self.add(ParamRole::MlmDecoder, Reading::Rows { table, skip: 0, add: None });
        }
        Ok(())
    }

    fn left_over(&self, weights: &CheckpointWeights) -> Vec<String> {
        let used = |name: &str| self.used.iter().any(|(known, _)| known == name);
        weights.names().filter(|name| !used(name)).map(str::to_owned).collect()
    }

    fn stored_as(&self) -> String {
        let mut kinds: Vec<String> = Vec::new();
        for (_, view) in &self.used {
            let kind = match view.element {
                NumberType::Quantised(kind) => format!("{kind:?}"),
                element => format!("{element:?}").to_lowercase(),
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.join(", ")
    }

    /// A digest of every tensor that is read, its name and its shape.
    fn digest(&self) -> Result<String> {
        let one = |(name, view): &(String, StoredTensor<'_>)| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(format!("{name} {:?} {:?}\n", view.element, view.shape).as_bytes());
            view.for_each_chunk(|bytes| _ = hasher.update(bytes))?;
            Ok(hasher.finalize())
        };
        let all: Vec<blake3::Hash> = self.used.par_iter().map(one).collect::<Result<_>>()?;
        let mut hasher = blake3::Hasher::new();
        let shape = serde_json::to_vec(&self.encoder).expect("plain data");
        hasher.update(&shape);
        all.iter().for_each(|hash| _ = hasher.update(hash.as_bytes()));
        Ok(hasher.finalize().to_hex().to_string())
    }
}
