//! What is done to the vectors of several languages before they are drawn.

use arrays::Matrix;
use geometry::{Map, Step, normalize};

/// What is done to vectors before they are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceView {
    Raw,
    Centered,
    /// And each language is mapped onto the first by Procrustes, learned from the very pairs that are drawn.
    Aligned,
}

impl SpaceView {
    /// All of them, as flags and addresses name them.
    pub const ALL: [(&str, Self); 3] =
        [("raw", Self::Raw), ("centered", Self::Centered), ("aligned", Self::Aligned)];

    /// Brings the vectors of all languages into this view; to be aligned, row i of each belongs to row i of the first.
    pub fn apply(self, groups: &mut [Matrix]) {
        if self == SpaceView::Raw {
            return;
        }
        groups.iter_mut().for_each(|group| normalize(group, &[Step::Center]));
        if self == SpaceView::Aligned
            && let Some((first, others)) = groups.split_first_mut()
        {
            for group in others {
                *group = Map::procrustes(group, first).apply(group);
            }
        }
    }

    /// For a caption.
    pub fn in_words(self) -> &'static str {
        match self {
            SpaceView::Raw => "raw vectors",
            SpaceView::Centered => "vectors less the mean of their language",
            SpaceView::Aligned => {
                "vectors less the mean of their language, mapped onto the first language by Procrustes, \
                 learned from these very pairs"
            }
        }
    }
}
