//! A steady training step allocates next to nothing: its buffers come from the pool.

use std::alloc::System;

use encoder::{Batch, Encoder, EncoderConfig, MaskedTokens, VocabularySize};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tensor::{Device, Params, Spans};
use train::{AdamConfig, AdamGroup, Trainer};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_steady_step_allocates_next_to_nothing() {
    let config = EncoderConfig {
        vocabulary: VocabularySize::Size(8000),
        layers: 4,
        heads: 4,
        dim: 128,
        hidden: 512,
        positions: 64,
        ..EncoderConfig::default()
    };
    let mut params = Params::new(&Device::cpu(2).unwrap());
    let model = Encoder::new(config, &mut params, 1).unwrap();
    let mut trainer =
        Trainer::new(model.config(), params, AdamConfig::default(), 1, |_| AdamGroup::default())
            .unwrap();
    let rows: Vec<u32> = (0..1024).step_by(7).collect();
    let batch = Batch {
        language: 0,
        tokens: (0..1024).map(|at| at * 31 % 8000).collect(),
        spans: Spans::uniform(16, 64),
        segments: None,
    };
    let targets = rows.iter().map(|&row| batch.tokens[row as usize]).collect();
    let micro_batch = [(batch, MaskedTokens { rows: rows.into(), targets })];
    let mut step = || {
        let loss = |tape: &mut tensor::Tape<'_>, (batch, masked): &(Batch, MaskedTokens)| {
            model.mlm_loss(tape, batch, masked, 1.0 / 147.0)
        };
        trainer.step(&micro_batch, 147, loss).unwrap();
    };
    (0..3).for_each(|_| step());
    let region = Region::new(ALLOCATOR);
    const STEPS: usize = 10;
    (0..STEPS).for_each(|_| step());
    let change = region.change();
    let bytes = change.bytes_allocated / STEPS;
    let kept = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    let allocations = change.allocations / STEPS;
    println!("a steady step allocates {bytes} bytes in {allocations} allocations and keeps {kept}");
    // One activation of this model alone, 1,024 x 512, is 2 MB, and a step makes some sixty. What is
    // left are lists of a few bytes: the tape's nodes, the slots of Adam, flags inside `gemm`.
    assert!(bytes < 512 << 10, "{bytes} bytes a step");
    assert!(kept.abs() < 64 << 10, "{kept} bytes are kept after ten steps");
}
