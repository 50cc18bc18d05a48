//! The command line that prints or draws what a view shows.

use commands::cka::Cka;
use commands::map::{MapCommand, NamedFigure, View};
use commands::models::Layers;
use commands::neighbours::Neighbours;
use commands::request::Request;
use commands::retrieve::Retrieve;
use commands::shift::{MeansOf, Translate};
use commands::texts::RowFlags;
use models::parallel::RowSelection;
use shift::shifter::ShiftKind;
use text::{Selection, Subset};

use crate::engine::{WeightsChoice, means_selection};
use crate::space::{PointKind, Space, WORDS};

pub(crate) struct CommandPlace<'a> {
    pub(crate) run: String,
    pub(crate) space: &'a Space,
    pub(crate) weights: &'a WeightsChoice,
}

fn line(request: &impl Request) -> String {
    lab::study::shell_line(&request.words())
}

impl CommandPlace<'_> {
    /// Which lines of a file are shown, and the seed of a sample.
    fn rows(&self) -> (RowFlags, u64) {
        match self.space.selection {
            RowSelection::Sample { size, seed } if self.space.is_partial() => {
                (RowFlags { sample_size: Some(size), ..RowFlags::default() }, seed)
            }
            RowSelection::First(limit) => {
                (RowFlags { limit: Some(limit), ..RowFlags::default() }, 1)
            }
            _ => (RowFlags::default(), 1),
        }
    }

    /// The picture of the points: of a run at all its steps, of a model at one layer.
    pub(crate) fn space(&self, layer: usize, mode: &str, difference: bool) -> String {
        let space = self.space;
        let model = |model: &str| Some(model.into());
        let mut map = MapCommand::unset();
        map.model = model(&self.weights.model);
        let (RowFlags { limit, sample_size }, seed) = self.rows();
        if difference && space.kind == PointKind::Sentences {
            map.figure = Some(NamedFigure::Layers);
            if space.is_given() {
                (map.limit, map.sample_size, map.seed) = (limit, sample_size, seed);
                map.parallel.clone_from(&space.files);
            }
            map.out = "layers.svg".into();
            return line(&map);
        }
        map.layers = Layers::one(layer);
        map.view = View::named(mode).unwrap_or(View::Raw);
        if space.kind == PointKind::Words {
            (map.vocab, map.limit) = (space.languages.clone(), Some(WORDS));
            map.out = "words.svg".into();
        } else if !space.is_given() {
            (map.figure, map.model) = (Some(NamedFigure::Emergence), model(&self.run));
            map.pair = Some(space.pair.clone());
            map.out = "emergence.svg".into();
        } else {
            let files = if space.paired { &mut map.parallel } else { &mut map.texts };
            files.clone_from(&space.files);
            (map.limit, map.sample_size, map.seed) = (limit, sample_size, seed);
            if limit.or(sample_size).is_none() {
                // A map draws fewer points unless --limit gives their number.
                map.limit = Some(space.rows.iter().max().copied().unwrap_or(0));
            }
            map.out = "map.svg".into();
        }
        line(&map)
    }

    /// The curves over training, as numbers; of a model, retrieval layer by layer.
    pub(crate) fn emergence(&self, layer: usize) -> String {
        if !self.space.is_given() {
            let mut map = MapCommand::unset();
            (map.figure, map.model) =
                (Some(NamedFigure::Emergence), Some(self.run.as_str().into()));
            (map.pair, map.layers) = (Some(self.space.pair.clone()), Layers::one(layer));
            map.out = "emergence.csv".into();
            return line(&map);
        }
        let mut retrieve = Retrieve::unset();
        retrieve.text.models = vec![self.weights.model.as_str().into()];
        retrieve.text.parallel.clone_from(&self.space.files);
        (retrieve.text.rows, retrieve.seed) = self.rows();
        line(&retrieve)
    }

    pub(crate) fn neighbours(&self, (lang, text): (&str, &str), k: usize, center: bool) -> String {
        let mut request = Neighbours::unset();
        (request.queries, request.lang) = (vec![text.to_owned()], lang.to_owned());
        request.model = Some(self.weights.model.as_str().into());
        (request.center, request.top) = (center, k);
        match self.space.kind {
            PointKind::Sentences => {
                request.texts.clone_from(&self.space.files);
                (request.rows, request.seed) = self.rows();
            }
            PointKind::Words => {
                request.vocab.clone_from(&self.space.languages);
                request.max_vocab = WORDS;
            }
        }
        line(&request)
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
        let mut translate = Translate {
            from: from.to_owned(),
            to: to.to_owned(),
            layer,
            shift_kind: ShiftKind::parse(kind).unwrap_or(ShiftKind::Mean),
            alpha: alphas.split(',').filter_map(|alpha| alpha.parse().ok()).collect(),
            sentence: vec![text.to_owned()],
            ..Translate::unset()
        };
        translate.measured.model.model = self.weights.model.as_str().into();
        translate.measured.means = Some(file.into());
        let translate = line(&translate);
        if means.is_some() {
            return translate;
        }
        let mut means = MeansOf { out: file.into(), ..MeansOf::unset() };
        means.model.model = self.weights.model.as_str().into();
        means.text.texts.clone_from(&self.space.files);
        let sentences = &mut means.text.sentences;
        sentences.lines = true;
        let Selection { take, seed, .. } = means_selection(self.space);
        match take {
            Subset::All => {}
            Subset::First(size) => sentences.rows.limit = Some(size as usize),
            Subset::Sample(size) => {
                sentences.rows.sample_size = Some(size as usize);
                means.text.seed = seed;
            }
        }
        format!("{} && {translate}", line(&means))
    }

    pub(crate) fn cka(&self, other: &WeightsChoice) -> String {
        let mut request = Cka::unset();
        let text = &mut request.sides.text;
        text.models = vec![self.weights.model.as_str().into()];
        if other != self.weights {
            text.models.push(other.model.as_str().into());
        }
        text.parallel.clone_from(&self.space.files);
        if self.space.is_given() {
            (text.rows, request.seed) = self.rows();
        }
        line(&request)
    }
}
