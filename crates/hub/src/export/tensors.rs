//! The weights under the names of another family.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use encoder::EncoderConfig;
use safetensors::tensor::{Dtype, TensorView, serialize};
use tensor::Params;
use text::{Error, Result};

use super::tokenizer::Numbers;
use crate::config::Family;
use crate::layout::Layout;

/// The bias of a row that stands for no piece: nothing ever guesses it.
const NEVER: f32 = -1e4;
/// The smallest scale of a LayerNorm that can be undone.
const SMALLEST_SCALE: f32 = 1e-4;

/// Turns the weights of an encoder, as one language or all see them, into those of a family.
pub(super) struct Builder<'a> {
    params: &'a Params,
    config: &'a EncoderConfig,
    language: Option<usize>,
    numbers: &'a Numbers,
    pad: u32,
    /// Whether there is a head for masked tokens.
    guesses: bool,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        params: &'a Params,
        config: &'a EncoderConfig,
        language: Option<usize>,
        numbers: &'a Numbers,
        pad: u32,
        guesses: bool,
    ) -> Self {
        Self { params, config, language, numbers, pad, guesses, tensors: BTreeMap::new() }
    }

    /// The whole file.
    pub(super) fn build(mut self, layout: &Layout, family: Family) -> Result<Vec<u8>> {
        self.embeddings(layout, family);
        for number in 0..self.config.layers {
            self.layer(layout, number);
        }
        if let Some(norm) = layout.final_norm {
            self.norm("head.final_norm", &self.body(layout, norm));
        }
        if self.guesses {
            self.head(layout)?;
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

    /// The weights of that name, the language's own where it has some.
    fn find(&self, name: &str) -> Vec<f32> {
        let own = self.language.map(|number| format!("{}.{name}", self.config.languages[number]));
        let id = own.and_then(|own| self.params.find(&own)).or_else(|| self.params.find(name));
        self.params.value(id.expect("an encoder has all its weights")).to_vec()
    }

    /// The full name of a tensor of the body, which stands alone where there is no head.
    fn body(&self, layout: &Layout, name: &str) -> String {
        format!("{}{name}", if self.guesses { layout.body } else { "" })
    }

    fn put(&mut self, name: impl Into<String>, shape: &[usize], values: Vec<f32>) {
        self.tensors.insert(name.into(), (shape.to_vec(), values));
    }

    /// A table with a row for each exported piece.
    fn table(&self, name: &str) -> Vec<f32> {
        let (dim, table) = (self.config.dim, self.find(name));
        let row = |row: usize| self.numbers.row(row).unwrap_or(self.numbers.unknown);
        (0..self.numbers.len()).flat_map(|at| &table[row(at) * dim..][..dim]).copied().collect()
    }

    fn embeddings(&mut self, layout: &Layout, family: Family) {
        let (dim, config) = (self.config.dim, self.config);
        let tokens = self.table("embeddings.tokens");
        self.put(self.body(layout, layout.tokens), &[self.numbers.len(), dim], tokens);
        let mut positions = self.find("embeddings.positions");
        let folded =
            config.language_embeddings && (self.language.is_some() || config.languages.len() == 1);
        if folded {
            // The embedding of the only language is the same everywhere, so positions carry it.
            let number = self.language.unwrap_or(0);
            let row = self.find("embeddings.languages")[number * dim..][..dim].to_vec();
            for position in positions.chunks_mut(dim) {
                position.iter_mut().zip(&row).for_each(|(x, add)| *x += add);
            }
        }
        let unused = if family == Family::XlmRobertaXl { self.pad as usize + 1 } else { 0 };
        let mut rows = vec![0.0; unused * dim];
        rows.append(&mut positions);
        self.put(self.body(layout, layout.positions), &[config.positions + unused, dim], rows);
        if let Some(name) = layout.segments {
            let segments =
                if config.segments > 0 { self.find("embeddings.segments") } else { vec![0.0; dim] };
            self.put(self.body(layout, name), &[segments.len() / dim, dim], segments);
        }
        if let Some(name) = layout.languages.filter(|_| config.language_embeddings && !folded) {
            let languages = self.find("embeddings.languages");
            self.put(self.body(layout, name), &[languages.len() / dim, dim], languages);
        }
        if let Some(norm) = layout.embedding_norm {
            self.norm("embeddings.norm", &self.body(layout, norm));
        }
    }

    fn layer(&mut self, layout: &Layout, number: usize) {
        let EncoderConfig { dim, hidden, .. } = *self.config;
        let prefix = self.body(layout, "");
        let theirs =
            |pattern: &str| format!("{prefix}{}", pattern.replace("{}", &number.to_string()));
        let ours = |part: &str| format!("layers.{}.{part}", number + 1);
        self.affine(&ours("query"), &[theirs(layout.query)], dim);
        self.affine(&ours("key_value"), &[theirs(layout.key), theirs(layout.value)], dim);
        self.affine(&ours("output"), &[theirs(layout.output)], dim);
        self.norm(&ours("attention_norm"), &theirs(layout.attention_norm));
        self.affine(&ours("up"), &[theirs(layout.up)], hidden);
        self.affine(&ours("down"), &[theirs(layout.down)], dim);
        self.norm(&ours("hidden_norm"), &theirs(layout.hidden_norm));
    }

    /// An affine map, or several that stand side by side, each of so many outputs; turned.
    fn affine(&mut self, ours: &str, theirs: &[String], outputs: usize) {
        let weight = self.find(&format!("{ours}.weight"));
        let bias = self.find(&format!("{ours}.bias"));
        let width = outputs * theirs.len();
        let inputs = weight.len() / width;
        for (number, name) in theirs.iter().enumerate() {
            let first = number * outputs;
            let element = |at: usize| weight[at % inputs * width + first + at / inputs];
            let turned = (0..outputs * inputs).map(element).collect();
            self.put(format!("{name}.weight"), &[outputs, inputs], turned);
            self.put(format!("{name}.bias"), &[outputs], bias[first..first + outputs].to_vec());
        }
    }

    fn norm(&mut self, ours: &str, theirs: &str) {
        for (part, tensor) in [("gamma", "weight"), ("beta", "bias")] {
            let values = self.find(&format!("{ours}.{part}"));
            self.put(format!("{theirs}.{tensor}"), &[values.len()], values);
        }
    }

    fn head(&mut self, layout: &Layout) -> Result<()> {
        let dim = self.config.dim;
        match layout.transform {
            Some((dense, norm)) if self.config.transform => {
                self.affine("head.dense", &[dense.to_owned()], dim);
                self.norm("head.norm", norm);
            }
            Some((dense, norm)) => self.identity(dense, norm)?,
            None => {}
        }
        let own = self.find("head.bias");
        let bias =
            (0..self.numbers.len()).map(|row| self.numbers.row(row).map_or(NEVER, |at| own[at]));
        let bias: Vec<f32> = bias.collect();
        if self.config.untied {
            self.put(layout.bias[1], &[bias.len()], bias.clone());
        }
        self.put(layout.bias[0], &[bias.len()], bias);
        if self.config.untied {
            let table = self.table("head.decoder");
            self.put(layout.decoder, &[self.numbers.len(), dim], table);
        }
        Ok(())
    }

    /// A dense layer with GELU and LayerNorm that does nothing, for a family that must have one.
    ///
    /// What comes in is h = γ·n + β, where n has mean 0 and variance 1, and so no element beyond √dim.
    /// The dense layer makes n + C of it. With C large enough GELU leaves that as it is, the LayerNorm
    /// takes C away again with the mean, and its own γ and β give h back.
    fn identity(&mut self, dense: &str, norm: &str) -> Result<()> {
        let dim = self.config.dim;
        let last = format!("layers.{}.hidden_norm", self.config.layers);
        let last = if self.params.find("head.final_norm.gamma").is_some() {
            "head.final_norm".to_owned()
        } else {
            last
        };
        let (gamma, beta) =
            (self.find(&format!("{last}.gamma")), self.find(&format!("{last}.beta")));
        if gamma.iter().any(|scale| scale.abs() < SMALLEST_SCALE) {
            return Err(Error::request(
                "the last LayerNorm scales a dimension by almost nothing, and the family that holds \
                 this encoder needs to undo that",
                "train with encoder.transform = true to export it",
            ));
        }
        let shift = (dim as f32).sqrt() + 8.0;
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
