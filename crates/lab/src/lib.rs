//! The laboratory's own room: studies are planned and run, their numbers kept, tabulated and drawn.
//!
//! - [`record`] is what a study leaves behind: numbers with everything that tells where they come from.

pub mod record;
