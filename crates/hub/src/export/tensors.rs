//! The weights under the names that `transformers` has for a family.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use encoder::{
    AffinePart, Encoder, EncoderConfig, HiddenActivation, LayerRole, NormPart, ParamRole,
};
use safetensors::tensor::{Dtype, TensorView, serialize};
use tensor::Params;
use text::{Error, Result};

use super::tokenizer::ExportIds;
use crate::config::Family;
use crate::layout::TensorNames;

/// The bias of a row that stands for no subword: it is never predicted.
const NEVER: f32 = -1e4;
/// The smallest scale of a LayerNorm that can be undone.
const SMALLEST_SCALE: f32 = 1e-4;

/// Turns the weights of an encoder, as one language or all use them, into those of a family.
pub(super) struct TensorBuilder<'a> {
    model: &'a Encoder,
    params: &'a Params,
    config: &'a EncoderConfig,
    language: Option<usize>,
    ids: &'a ExportIds,
    pad: u32,
    has_mlm_head: bool,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl<'a> TensorBuilder<'a> {
    pub(super) fn new(
        model: &'a Encoder,
        params: &'a Params,
        language: Option<usize>,
        ids: &'a ExportIds,
        pad: u32,
        has_mlm_head: bool,
    ) -> Self {
        let (config, tensors) = (model.config(), BTreeMap::new());
        Self { model, params, config, language, ids, pad, has_mlm_head, tensors }
    }

    /// The whole file.
    pub(super) fn build(mut self, layout: &TensorNames, family: Family) -> Result<Vec<u8>> {
        self.embeddings(layout, family);
        for number in 0..self.config.layers {
            self.layer(layout, number);
        }
        if let Some(norm) = layout.final_norm {
            self.norm(ParamRole::FinalNorm, &self.body(layout, norm));
        }
        if self.has_mlm_head {
            self.head(layout, family)?;
        }
        let views = self.tensors.iter().map(|(name, (shape, values))| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytemuck::cast_slice(values));
            (name.as_str(), view.expect("bytes of that shape"))
        });
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        serialize(views, Some(metadata)).map_err(|error| {
            Error::file(Path::new("model.safetensors"), error.to_string(), "report this as a fault")
        })
    }

    /// The weights of a role: the language's own where it has some.
    fn find(&self, role: ParamRole) -> Vec<f32> {
        let id = self.model.param(role, self.language);
        self.params.value(id.expect("an encoder has all its weights")).to_vec()
    }

    /// The full name of a tensor of the body, which stands alone where there is no head.
    fn body(&self, layout: &TensorNames, name: &str) -> String {
        format!("{}{name}", if self.has_mlm_head { layout.body } else { "" })
    }

    fn put(&mut self, name: impl Into<String>, shape: &[usize], values: Vec<f32>) {
        self.tensors.insert(name.into(), (shape.to_vec(), values));
    }

    /// A table with a row for each exported subword.
    fn table(&self, role: ParamRole) -> Vec<f32> {
        let (dim, table) = (self.config.dim, self.find(role));
        let row = |row: usize| self.ids.row(row).unwrap_or(self.ids.unknown);
        (0..self.ids.len()).flat_map(|at| &table[row(at) * dim..][..dim]).copied().collect()
    }

    fn embeddings(&mut self, layout: &TensorNames, family: Family) {
        let (dim, config) = (self.config.dim, self.config);
        let tokens = self.table(ParamRole::TokenEmbedding);
        self.put(self.body(layout, layout.tokens), &[self.ids.len(), dim], tokens);
        let mut positions = self.find(ParamRole::PositionEmbedding);
        let folded =
            config.language_embeddings && (self.language.is_some() || config.languages.len() == 1);
        if folded {
            // The embedding of the only language is the same everywhere, so positions carry it.
            let number = self.language.unwrap_or(0);
            let row = self.find(ParamRole::LanguageEmbedding)[number * dim..][..dim].to_vec();
            for position in positions.chunks_mut(dim) {
                position.iter_mut().zip(&row).for_each(|(x, add)| *x += add);
            }
        }
        let unused = if family == Family::XlmRobertaXl { self.pad as usize + 1 } else { 0 };
        let mut rows = vec![0.0; unused * dim];
        rows.append(&mut positions);
        self.put(self.body(layout, layout.positions), &[config.positions + unused, dim], rows);
        if let Some(name) = layout.segments {
            let segments = if config.segments > 0 {
                self.find(ParamRole::SegmentEmbedding)
            } else {
                vec![0.0; dim]
            };
            self.put(self.body(layout, name), &[segments.len() / dim, dim], segments);
        }
        if let Some(name) = layout.languages.filter(|_| config.language_embeddings && !folded) {
            let languages = self.find(ParamRole::LanguageEmbedding);
            self.put(self.body(layout, name), &[languages.len() / dim, dim], languages);
        }
        if let Some(norm) = layout.embedding_norm {
            self.norm(ParamRole::EmbeddingNorm, &self.body(layout, norm));
        }
    }

    fn layer(&mut self, layout: &TensorNames, number: usize) {
        let EncoderConfig { dim, hidden, .. } = *self.config;
        let prefix = self.body(layout, "");
        let theirs =
            |pattern: &str| format!("{prefix}{}", pattern.replace("{}", &number.to_string()));
        let affine = |role: fn(AffinePart) -> LayerRole| {
            move |part| ParamRole::Layer(number + 1, role(part))
        };
        let norm =
            |role: fn(NormPart) -> LayerRole| move |part| ParamRole::Layer(number + 1, role(part));
        let key_value = [theirs(layout.key), theirs(layout.value)];
        self.affine(affine(LayerRole::Query), &[theirs(layout.query)], dim);
        self.affine(affine(LayerRole::KeyValue), &key_value, dim);
        self.affine(affine(LayerRole::Output), &[theirs(layout.output)], dim);
        self.norm(norm(LayerRole::AttentionNorm), &theirs(layout.attention_norm));
        self.affine(affine(LayerRole::Up), &[theirs(layout.up)], hidden);
        self.affine(affine(LayerRole::Down), &[theirs(layout.down)], dim);
        self.norm(norm(LayerRole::HiddenNorm), &theirs(layout.hidden_norm));
    }

    /// An affine map, or several that stand side by side, each of so many outputs; transposed.
    fn affine(
        &mut self,
        role: impl Fn(AffinePart) -> ParamRole,
        theirs: &[String],
        outputs: usize,
    ) {
        let weight = self.find(role(AffinePart::Weight));
        let bias = self.find(role(AffinePart::Bias));
        let width = outputs * theirs.len();
        let inputs = weight.len() / width;
        for (number, name) in theirs.iter().enumerate() {
            let first = number * outputs;
            let element = |at: usize| weight[at % inputs * width + first + at / inputs];
            let transposed = (0..outputs * inputs).map(element).collect();
            self.put(format!("{name}.weight"), &[outputs, inputs], transposed);
            self.put(format!("{name}.bias"), &[outputs], bias[first..first + outputs].to_vec());
        }
    }

    fn norm(&mut self, role: impl Fn(NormPart) -> ParamRole, theirs: &str) {
        for (part, tensor) in [(NormPart::Gamma, "weight"), (NormPart::Beta, "bias")] {
            let values = self.find(role(part));
            self.put(format!("{theirs}.{tensor}"), &[values.len()], values);
        }
    }

    fn head(&mut self, layout: &TensorNames, family: Family) -> Result<()> {
        let dim = self.config.dim;
        match layout.transform {
            Some((dense, norm)) if self.config.transform => {
                self.affine(ParamRole::MlmDense, &[dense.to_owned()], dim);
                self.norm(ParamRole::MlmNorm, norm);
            }
            Some((dense, norm)) => {
                self.identity(dense, norm, super::head_activation(self.config, family))?;
            }
            None => {}
        }
        let [kept, used] = layout.bias.expect("every family that is exported has a bias");
        let own = self.find(ParamRole::MlmBias);
        let bias = (0..self.ids.len()).map(|row| self.ids.row(row).map_or(NEVER, |at| own[at]));
        let bias: Vec<f32> = bias.collect();
        if self.config.untied {
            self.put(used, &[bias.len()], bias.clone());
        }
        self.put(kept, &[bias.len()], bias);
        if self.config.untied {
            let table = self.table(ParamRole::MlmDecoder);
            self.put(layout.decoder, &[self.ids.len(), dim], table);
        }
        Ok(())
    }

    /// A dense layer with an activation and LayerNorm that is the identity, for a family that must have
    /// one.
    ///
    /// What comes in is h = γ·n + β, where n has mean 0 and variance 1, and so no element beyond √dim.
    /// The dense layer makes n + C of it. With C large enough the activation leaves that as it is, the
    /// LayerNorm takes C away again with the mean, and its own γ and β give h back.
    fn identity(&mut self, dense: &str, norm: &str, activation: HiddenActivation) -> Result<()> {
        let dim = self.config.dim;
        let last = |part| match self.model.param(ParamRole::FinalNorm(part), self.language) {
            Some(_) => ParamRole::FinalNorm(part),
            None => ParamRole::Layer(self.config.layers, LayerRole::HiddenNorm(part)),
        };
        let (gamma, beta) = (self.find(last(NormPart::Gamma)), self.find(last(NormPart::Beta)));
        if gamma.iter().any(|scale| scale.abs() < SMALLEST_SCALE) {
            return Err(Error::request(
                "the last LayerNorm scales a dimension by almost nothing, and the family that holds \
                 this encoder needs to undo that",
                "train with encoder.transform = true to export it",
            ));
        }
        // From here on the activation is the identity, as far as f32 can tell.
        let linear = if activation == HiddenActivation::Silu { 20.0 } else { 8.0 };
        let shift = (dim as f32).sqrt() + linear;
        let mut weight = vec![0.0; dim * dim];
        (0..dim).for_each(|at| weight[at * dim + at] = 1.0 / gamma[at]);
        let bias = (0..dim).map(|at| shift - beta[at] / gamma[at]).collect();
        // The second LayerNorm adds its ε to a variance of 1.
        let again = (1.0 + self.config.epsilon).sqrt();
        self.put(format!("{dense}.weight"), &[dim, dim], weight);
        self.put(format!("{dense}.bias"), &[dim], bias);
        self.put(
            format!("{norm}.weight"),
            &[dim],
            gamma.iter().map(|scale| scale * again).collect(),
        );
        self.put(format!("{norm}.bias"), &[dim], beta);
        Ok(())
    }
}
