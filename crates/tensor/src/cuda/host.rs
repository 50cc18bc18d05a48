//! Operations of task heads, which the CPU carries out: matrices go there and come back.
//!
//! Heads are small beside the encoder (a few classes, a few hundred words), so what this costs is the
//! wait for the device. The day it matters, each becomes a kernel.

use super::Cuda;
use crate::cpu::Cpu;
use crate::kernels::{Kernels, Precision};
use crate::value::Tensor;

/// Runs `work` on the CPU with copies of the inputs, and copies back what it wrote.
pub(super) fn run<const I: usize, const O: usize>(
    cuda: &Cuda,
    inputs: [&Tensor; I],
    outputs: [&mut Tensor; O],
    work: impl FnOnce(&Cpu, [&Tensor; I], [&mut Tensor; O]),
) {
    let cpu = cuda.host.get_or_init(|| Cpu::new(0).expect("a CPU with every core"));
    let here = |x: &Tensor| {
        let mut copy = cpu.empty(x.rows(), x.cols(), Precision::Full);
        copy.write(&x.elements());
        copy
    };
    let inputs = inputs.map(here);
    let mut results = outputs.each_ref().map(|y| cpu.empty(y.rows(), y.cols(), Precision::Full));
    work(cpu, inputs.each_ref(), results.each_mut());
    for (y, result) in outputs.into_iter().zip(&results) {
        y.write(result.as_slice());
    }
}
