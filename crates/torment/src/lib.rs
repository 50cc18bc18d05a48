//! What Isogloss must survive, as a programme that does it: kills, full disks, races of two writers,
//! flipped bits, files that change while they are read, and mutated files.
//!
//! - [`readers`]: every reader of the project, with a sample of what it reads; the fuzz target of `fuzz/run`
//!   goes through the same list.
//! - [`mutation`]: a sample, changed at random in ways that hurt readers.
//!
//! The binary `torment` makes the samples with `isogloss` itself and then goes through all of it.

pub mod mutation;
pub mod readers;
