//! Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), all matrices in
//! one pass.

use pulp::Arch;
use rayon::prelude::*;

use super::TASK;
use super::math::sum_squares;
use crate::dispatch;
use crate::kernels::{AdamSlot, AdamStep};
use crate::value::Tensor;

pub(super) fn update(arch: Arch, slots: &mut [AdamSlot<'_>], step: AdamStep, norm: &mut Tensor) {
    let before = norm.as_slice()[0];
    let total = if before.is_finite() { global_norm(arch, slots) } else { before };
    norm.as_mut_slice()[0] = total;
    if !total.is_finite() {
        return;
    }
    let clip = if total > step.clip { step.clip / total } else { 1.0 };
    slots.par_iter_mut().for_each(|slot| {
        // The corrections are taken in double precision: late in training they are nearly 1.
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(slot.number as f64);
        let mean_correction = correction(step.beta1) as f32;
        let square_correction = correction(step.beta2).sqrt() as f32;
        let lr = slot.lr / mean_correction;
        let keep = 1.0 - slot.lr * slot.decay;
        let chunks = slot
            .value
            .as_mut_slice()
            .par_chunks_mut(TASK)
            .zip(slot.grad.as_slice().par_chunks(TASK))
            .zip(slot.mean.as_mut_slice().par_chunks_mut(TASK))
            .zip(slot.square.as_mut_slice().par_chunks_mut(TASK));
        chunks.for_each(|(((value, grad), mean), square)| {
            dispatch!(arch, || {
                let elements = value.iter_mut().zip(grad).zip(mean).zip(square);
                for (((value, &grad), mean), square) in elements {
                    let grad = grad * clip;
                    *mean += (1.0 - step.beta1) * (grad - *mean);
                    *square = step.beta2 * *square + (1.0 - step.beta2) * grad * grad;
                    let deviation = square.sqrt() / square_correction + step.epsilon;
                    *value = *value * keep - lr * *mean / deviation;
                }
            });
        });
    });
}

/// The norm of all gradients taken as one vector.
fn global_norm(arch: Arch, slots: &[AdamSlot<'_>]) -> f32 {
    let squares: Vec<f64> = slots
        .par_iter()
        .map(|slot| {
            // Chunks are summed in their order, whichever thread computed them.
            let chunks: Vec<f32> = slot
                .grad
                .as_slice()
                .par_chunks(TASK)
                .map(|grad| dispatch!(arch, || sum_squares(grad, 0.0)))
                .collect();
            chunks.iter().map(|&chunk| f64::from(chunk)).sum()
        })
        .collect();
    squares.iter().sum::<f64>().sqrt() as f32
}
