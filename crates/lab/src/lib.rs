//! The laboratory's own room: studies are planned and run, their numbers kept, tabulated and drawn.
//!
//! - [`record`] is what a study leaves behind: numbers with everything that tells where they come from.
//! - [`store`] keeps them, in one file that several studies may write to at once.
//! - [`study`] says what is asked, works out the steps, and runs what is missing.

pub mod record;
pub mod store;
pub mod study;
