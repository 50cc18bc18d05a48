//! Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), all matrices in
//! three launches: squares, norm, update.

#![allow(unsafe_code, reason = "slots are laid out as the kernels have them")]

use std::sync::{Arc, Mutex};

use super::lists::put;
use super::transfer::SentList;
use super::{Cuda, Program, THREADS, at, block, launch, lock, to};
use crate::kernels::{AdamSlot, AdamStep, RowKernels as _};
use crate::value::Tensor;

/// Elements that one block updates, as the kernels have it.
const CHUNK: usize = 16384;

/// As the kernels have it.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct AdamSlotLayout {
    value: u64,
    grad: u64,
    mean: u64,
    square: u64,
    rounded: u64,
    count: u64,
    lr: f32,
    keep: f32,
    square_correction: f32,
    padding: u32,
}

/// As the kernels have it: the number of a slot, and of a chunk of it.
#[derive(Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct AdamChunk {
    slot: u32,
    number: u32,
}

/// The chunks of the last update, which are the same in every step where all matrices learn.
#[derive(Default)]
pub(super) struct AdamChunks(Mutex<Option<ChunkList>>);

struct ChunkList {
    /// The sizes of the matrices that it is of.
    sizes: Vec<usize>,
    list: Arc<SentList>,
    count: usize,
}

impl AdamChunks {
    /// The chunks of matrices of these sizes, and how many there are.
    fn of(&self, cuda: &Cuda, laid_out: &[AdamSlotLayout]) -> (Arc<SentList>, usize) {
        let sizes: Vec<usize> = laid_out.iter().map(|slot| slot.count as usize).collect();
        let mut last = lock(&self.0);
        if last.as_ref().is_none_or(|known| known.sizes != sizes) {
            let chunks = chunks(&sizes);
            let (list, count) = (Arc::new(put(&cuda.context, &chunks)), chunks.len());
            *last = Some(ChunkList { sizes, list, count });
        }
        let last = last.as_ref().expect("it was filled above");
        (Arc::clone(&last.list), last.count)
    }
}

/// How the matrices are cut, for matrices of these sizes.
fn chunks(sizes: &[usize]) -> Vec<AdamChunk> {
    let of_slot = |(slot, &size): (usize, &usize)| {
        (0..size.div_ceil(CHUNK))
            .map(move |number| AdamChunk { slot: slot as u32, number: number as u32 })
    };
    sizes.iter().enumerate().flat_map(of_slot).collect()
}

pub(super) fn update(cuda: &Cuda, slots: &mut [AdamSlot<'_>], step: AdamStep, norm: &mut Tensor) {
    if slots.is_empty() {
        return cuda.fill(norm, 0.0);
    }
    let all: Vec<AdamSlotLayout> = slots.iter_mut().map(|slot| lay_out(slot, step)).collect();
    let (chunks, count) = cuda.adam.of(cuda, &all);
    let on_device = put(&cuda.context, &all);
    let squares = cuda.scratch(count * 4);
    launch!(
        cuda, Program::Adam, "squares", [count, 1, 1], [THREADS, 1, 1], 0;
        on_device.pointer, chunks.pointer, squares.pointer,
    );
    launch!(
        cuda, Program::Adam, "norm_of_squares", [1, 1, 1], [1024, 1, 1], 0;
        squares.pointer, count as i32, to(norm),
    );
    launch!(
        cuda, Program::Adam, "adam", [count, 1, 1], [THREADS, 1, 1], 0;
        on_device.pointer, chunks.pointer, at(norm), step.beta1, step.beta2, step.epsilon, step.clip,
    );
}

fn lay_out(slot: &mut AdamSlot<'_>, step: AdamStep) -> AdamSlotLayout {
    // The corrections are taken in double precision: late in training they are nearly 1.
    let correction = |beta: f32| 1.0 - f64::from(beta).powf(slot.number as f64);
    AdamSlotLayout {
        // The rounded copy is written along, and stays true.
        value: at(slot.value),
        rounded: block(slot.value).kept_rounded().unwrap_or(0),
        grad: at(slot.grad),
        mean: to(slot.mean),
        square: to(slot.square),
        count: slot.value.len() as u64,
        lr: slot.lr / correction(step.beta1) as f32,
        keep: 1.0 - slot.lr * slot.decay,
        square_correction: correction(step.beta2).sqrt() as f32,
        padding: 0,
    }
}
