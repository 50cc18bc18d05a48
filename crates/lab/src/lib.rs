//! Studies: experiments that are planned, run, stored, tabulated, drawn and reported.
//!
//! - [`record`] is what a study leaves behind: numbers with everything that they depend on, and [`build`] which program
//!   computed them.
//! - [`store`] holds records in one SQLite file that several studies may write to at once.
//! - [`study`] reads a study's definition, plans its steps, and runs those that are missing.
//! - [`papers`] has the numbers that the replicated papers print; [`statistics`] rank correlations.
//! - [`draw`] makes figures, and [`report`] one page of findings, figures and tables.
//! - [`export`] writes records as CSV, JSON, Parquet or Markdown.
//!
//! ```
//! use lab::study::{CPU, Study, StudyPlan};
//! use terms::Scale;
//!
//! let study = Study::find("anchors")?;
//! // The sentences of real languages would be counted here; invented languages have enough.
//! let plan = StudyPlan::of(&study, Scale::Tiny, CPU, &mut |_, _, most| Ok(most))?;
//! assert_eq!(plan.steps[0].command.verb, "world generate");
//! assert!(plan.extractions.iter().any(|one| one.factors["condition"] == "no-anchors"));
//! # Ok::<(), lab::study::Error>(())
//! ```

#![allow(missing_docs, reason = "only surfaces import it; a name says what it is")]

pub mod build;
pub mod demo;
pub use ::draw;
pub mod export;
pub mod papers;
pub mod record;
pub mod report;
pub mod spaces;
pub mod statistics;
pub mod store;
pub mod study;
