//! From a Hugging Face folder to an encoder.

use std::path::{Path, PathBuf};

use encoder::{AffinePart, Encoder, EncoderConfig, LayerRole, NormPart, ParamRole};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::{Device, Params, Tensor};
use text::{Error, Result, Vocabulary};

use crate::config::{CONFIG, Family, ModelConfig};
use crate::layout::TensorNames;
use crate::read::{Reading, sinusoid};
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
        |error: encoder::ConfigError| Error::file(&folder.join(CONFIG), error.to_string(), FITTING);
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
            prefix: if with_head { layout.body } else { "" },
            folder,
        };
        plan.embeddings(config, layout)?;
        for number in 0..config.encoder.layers {
            plan.layer(layout, number)?;
        }
        if let Some(norm) = layout.final_norm {
            plan.norm(ParamRole::FinalNorm, &plan.body(norm))?;
        }
        plan.head(layout, config.tied)?;
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
        if !matches!(view.element, NumberType::F32 | NumberType::F16 | NumberType::Bf16) {
            let reason = format!("has {name} in {:?}, not f32, f16 or bf16", view.element);
            return Err(self.refuse(reason));
        }
        self.used.push((name.to_owned(), view));
        Ok(view)
    }

    fn add(&mut self, role: ParamRole, reading: Reading<'a>) {
        self.readings.push((role, reading));
    }

    fn embeddings(&mut self, config: &ModelConfig, layout: &TensorNames) -> Result<()> {
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
        if config.sinusoids && self.weights.get(&name).is_none() {
            let values = sinusoid(self.encoder.positions, dim);
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
            Some(norm) => self.norm(ParamRole::EmbeddingNorm, &self.body(norm)),
            None => Ok(()),
        }
    }

    fn layer(&mut self, layout: &TensorNames, number: usize) -> Result<()> {
        let EncoderConfig { dim, hidden, .. } = self.encoder;
        let prefix = self.body("");
        let theirs =
            |pattern: &str| format!("{prefix}{}", pattern.replace("{}", &number.to_string()));
        let affine = |role: fn(AffinePart) -> LayerRole| {
            move |part| ParamRole::Layer(number + 1, role(part))
        };
        let norm =
            |role: fn(NormPart) -> LayerRole| move |part| ParamRole::Layer(number + 1, role(part));
        let key_value = [theirs(layout.key), theirs(layout.value)];
        self.affine(affine(LayerRole::Query), &[theirs(layout.query)], [dim, dim])?;
        self.affine(affine(LayerRole::KeyValue), &key_value, [dim, dim])?;
        self.affine(affine(LayerRole::Output), &[theirs(layout.output)], [dim, dim])?;
        self.norm(norm(LayerRole::AttentionNorm), &theirs(layout.attention_norm))?;
        self.affine(affine(LayerRole::Up), &[theirs(layout.up)], [dim, hidden])?;
        self.affine(affine(LayerRole::Down), &[theirs(layout.down)], [hidden, dim])?;
        self.norm(norm(LayerRole::HiddenNorm), &theirs(layout.hidden_norm))
    }

    /// One affine map, or several side by side.
    fn affine(
        &mut self,
        role: impl Fn(AffinePart) -> ParamRole,
        theirs: &[String],
        [inputs, outputs]: [usize; 2],
    ) -> Result<()> {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for name in theirs {
            weights.push(self.tensor(&format!("{name}.weight"), &[outputs, inputs])?);
            biases.push(self.tensor(&format!("{name}.bias"), &[outputs])?);
        }
        self.add(role(AffinePart::Weight), Reading::Transposed(weights));
        self.add(role(AffinePart::Bias), Reading::Joined(biases));
        Ok(())
    }

    fn norm(&mut self, role: impl Fn(NormPart) -> ParamRole, theirs: &str) -> Result<()> {
        let dim = self.encoder.dim;
        for (part, tensor) in [(NormPart::Gamma, "weight"), (NormPart::Beta, "bias")] {
            let view = self.tensor(&format!("{theirs}.{tensor}"), &[dim])?;
            self.add(role(part), Reading::Joined(vec![view]));
        }
        Ok(())
    }

    /// The MLM head. A model without it can do everything else.
    fn head(&mut self, layout: &TensorNames, tied: bool) -> Result<()> {
        let (dim, rows) = (self.encoder.dim, self.encoder.entries(0));
        let needed = layout.transform.iter().flat_map(|(dense, norm)| {
            [dense, norm]
                .into_iter()
                .flat_map(|name| ["weight", "bias"].map(|part| format!("{name}.{part}")))
        });
        let needed: Vec<String> = needed.collect();
        let bias = layout.bias.into_iter().rev().find(|name| self.weights.get(name).is_some());
        let needed = needed.into_iter().chain((!tied).then(|| layout.decoder.to_owned()));
        let absent = needed.filter(|name| self.weights.get(name).is_none());
        self.missing = absent.chain(bias.is_none().then(|| layout.bias[0].to_owned())).collect();
        let Some(bias) = bias.filter(|_| self.missing.is_empty()) else {
            self.has_mlm_head = false;
            self.encoder.transform = false;
            self.encoder.head_activation = None;
            self.add(ParamRole::MlmBias, Reading::Given(vec![0.0; rows]));
            return Ok(());
        };
        if let Some((dense, norm)) = layout.transform {
            self.affine(ParamRole::MlmDense, &[dense.to_owned()], [dim, dim])?;
            self.norm(ParamRole::MlmNorm, norm)?;
        }
        let bias = self.tensor(bias, &[rows])?;
        if self.weights.get(layout.bias[0]).is_some() {
            self.tensor(layout.bias[0], &[rows])?;
        }
        self.add(ParamRole::MlmBias, Reading::Joined(vec![bias]));
        self.decoder(layout)
    }

    /// The softmax's table, where it is not that of the tokens.
    fn decoder(&mut self, layout: &TensorNames) -> Result<()> {
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
            let kind = format!("{:?}", view.element).to_lowercase();
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
