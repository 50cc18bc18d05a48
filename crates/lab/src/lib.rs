//! The laboratory's own room: studies are planned and run, their numbers kept, tabulated and drawn.
//!
//! - [`record`] is what a study leaves behind: numbers with everything that tells where they come from.
//! - [`store`] keeps them, in one file that several studies may write to at once.
//! - [`study`] says what is asked, works out the steps, and runs what is missing.
//! - [`statistics`] makes means and intervals of them, and [`draw`] figures.
//! - [`papers`] has the numbers to stand beside ours, and [`report`] puts all of it on one page.
//! - [`export`] hands numbers to other programs.

pub mod draw;
pub mod export;
pub mod papers;
pub mod record;
pub mod report;
pub mod statistics;
pub mod store;
pub mod study;
