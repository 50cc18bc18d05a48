//! The command line that prints or draws what a view shows.

use lab::study::shell_line;
use models::parallel::RowSelection;
use text::{Selection, Subset};

use crate::engine::{WeightsChoice, means_selection};
use crate::space::{PointKind, Space, WORDS};

pub(crate) struct CommandPlace<'a> {
    pub(crate) run: String,
    pub(crate) space: &'a Space,
    pub(crate) weights: &'a WeightsChoice,
}

fn line(words: impl IntoIterator<Item = String>) -> String {
    shell_line(&words.into_iter().collect::<Vec<_>>())
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl CommandPlace<'_> {
    fn files(&self, flag: &str) -> Vec<String> {
        let pair =
            |(language, file): &(String, String)| [flag.to_owned(), format!("{language}={file}")];
        self.space.files.iter().flat_map(pair).collect()
    }

    fn text_flag(&self) -> &'static str {
        if self.space.paired { "--parallel" } else { "--text" }
    }

    fn rows(&self) -> Vec<String> {
        match self.space.selection {
            RowSelection::Sample { size, seed } if self.space.is_partial() => {
                owned(&["--sample-size", &size.to_string(), "--seed", &seed.to_string()])
            }
            RowSelection::First(limit) => owned(&["--limit", &limit.to_string()]),
            _ => vec![],
        }
    }

    fn vocab(&self, most: &str) -> Vec<String> {
        let language = |language: &String| ["--vocab".to_owned(), language.clone()];
        let languages = self.space.languages.iter().flat_map(language);
        languages.chain(owned(&[most, &WORDS.to_string()])).collect()
    }

    /// The picture of the points: of a run at all its steps, of a model at one layer.
    pub(crate) fn space(&self, layer: usize, mode: &str, difference: bool) -> String {
        let layers = owned(&["--layers", &layer.to_string()]);
        let view = if mode == "raw" { vec![] } else { owned(&["--view", mode]) };
        if self.space.kind == PointKind::Words {
            let model = owned(&["map", "--model", &self.weights.model]);
            let out = owned(&["--out", "words.svg"]);
            return line([model, self.vocab("--limit"), layers, view, out].concat());
        }
        if difference {
            let files = match self.space.is_given() {
                true => [self.files("--parallel"), self.rows()].concat(),
                false => vec![],
            };
            let model = owned(&["map", "--figure", "layers", "--model", &self.weights.model]);
            let out = owned(&["--out", "layers.svg"]);
            return line([model, files, out].concat());
        }
        if !self.space.is_given() {
            let model = owned(&["map", "--figure", "emergence", "--model", &self.run]);
            let pair = owned(&["--pair", &self.space.pair]);
            let out = owned(&["--out", "emergence.svg"]);
            return line([model, pair, layers, view, out].concat());
        }
        let model = owned(&["map", "--model", &self.weights.model]);
        let out = owned(&["--out", "map.svg"]);
        let files = self.files(self.text_flag());
        let rows = match self.rows() {
            // A map draws fewer points unless --limit gives their number.
            rows if rows.is_empty() => {
                let longest = self.space.rows.iter().max().copied().unwrap_or(0);
                owned(&["--limit", &longest.to_string()])
            }
            rows => rows,
        };
        line([model, files, rows, layers, view, out].concat())
    }

    /// The curves over training, as numbers; of a model, retrieval layer by layer.
    pub(crate) fn emergence(&self, layer: usize) -> String {
        if !self.space.is_given() {
            let pair = owned(&["--pair", &self.space.pair, "--layers", &layer.to_string()]);
            let model = owned(&["map", "--figure", "emergence", "--model", &self.run]);
            return line([model, pair, owned(&["--out", "emergence.csv"])].concat());
        }
        let retrieve = owned(&["retrieve", "--model", &self.weights.model]);
        line([retrieve, self.files("--parallel"), self.rows()].concat())
    }

    pub(crate) fn neighbours(&self, (lang, text): (&str, &str), k: usize, center: bool) -> String {
        let model = owned(&["neighbours", "--model", &self.weights.model, "--lang", lang]);
        let center = if center { owned(&["--center"]) } else { vec![] };
        let top = owned(&["--top", &k.to_string(), text]);
        let among = match self.space.kind {
            PointKind::Sentences => [self.files("--text"), self.rows()].concat(),
            PointKind::Words => self.vocab("--max-vocab"),
        };
        line([model, among, center, top].concat())
    }

    /// With the command that computes the means, where no file has them.
    pub(crate) fn shift(
        &self,
        (from, to): (&str, &str),
        layer: usize,
        kind: &str,
        alphas: &str,
        text: &str,
        means: Option<&str>,
    ) -> String {
        let file = means.unwrap_or("means.safetensors");
        let model = owned(&["shift", "translate", "--model", &self.weights.model, "--means", file]);
        let layer = layer.to_string();
        let direction = owned(&["--from", from, "--to", to, "--layer", &layer]);
        let kind = if kind == "mean" { vec![] } else { owned(&["--shift-kind", kind]) };
        let alphas = owned(&[&format!("--alpha={alphas}"), text]);
        let translate = line([model, direction, kind, alphas].concat());
        if means.is_some() {
            return translate;
        }
        let means = owned(&["shift", "means", "--model", &self.weights.model, "--lines"]);
        let Selection { take, seed, .. } = means_selection(self.space);
        let rows = match take {
            Subset::All => vec![],
            Subset::First(size) => owned(&["--limit", &size.to_string()]),
            Subset::Sample(size) => {
                owned(&["--sample-size", &size.to_string(), "--seed", &seed.to_string()])
            }
        };
        let means = [means, self.files("--text"), rows, owned(&["--out", file])].concat();
        format!("{} && {translate}", line(means))
    }

    pub(crate) fn cka(&self, other: &WeightsChoice) -> String {
        let mut words = owned(&["cka", "--model", &self.weights.model]);
        if other != self.weights {
            words.extend(owned(&["--model", &other.model]));
        }
        let rows = if self.space.is_given() { self.rows() } else { vec![] };
        line([words, self.files("--parallel"), rows].concat())
    }
}
