//! Lists of row numbers in the GPU's memory, and how rows are scattered back by them.
//!
//! Scattering adds up all rows that go to one place. So that no sum depends on which thread comes first,
//! the list is inverted on the host: for every place, its sources in order.

use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::CUdeviceptr;

use super::context::Context;
use super::transfer::SentList;
use crate::value::Indices;

/// Sources that one warp adds up.
const GROUP: usize = 32;

/// What a GPU keeps of a list.
pub(super) struct IndexCopy {
    rows: SentList,
    inverse: OnceLock<InverseList>,
}

pub(super) struct InverseList {
    /// All sources, by the row that they go to.
    pub(super) order: SentList,
    pub(super) groups: SentList,
    pub(super) group_count: usize,
    /// Rows with several groups.
    pub(super) joints: SentList,
    pub(super) joint_count: usize,
    /// How many groups must put their sum aside.
    pub(super) slots: usize,
}

/// As the kernels have it: a row, its sources `begin..end`, where its sum goes (-1: the table).
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct ScatterGroup {
    row: u32,
    begin: u32,
    end: u32,
    slot: i32,
}

/// As the kernels have it: a row, its slots `begin..end`.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct ScatterJoint {
    row: u32,
    begin: u32,
    end: u32,
}

/// Sends plain data ahead.
pub(super) fn put<T: bytemuck::NoUninit>(context: &Arc<Context>, list: &[T]) -> SentList {
    context.send(bytemuck::cast_slice(list))
}

impl IndexCopy {
    /// What the GPU keeps of this list, copied there the first time.
    pub(super) fn of<'a>(context: &Arc<Context>, list: &'a Indices) -> &'a Self {
        let copy: &Self =
            list.device_copy(|| Self { rows: put(context, list), inverse: OnceLock::new() });
        assert!(Arc::ptr_eq(&copy.rows.context, context), "a list is used on one GPU");
        copy
    }

    pub(super) fn pointer(&self) -> CUdeviceptr {
        self.rows.pointer
    }

    pub(super) fn inverse(&self, list: &[u32]) -> &InverseList {
        self.inverse.get_or_init(|| InverseList::of(&self.rows.context, list))
    }
}

impl InverseList {
    fn of(context: &Arc<Context>, list: &[u32]) -> Self {
        let keyed = list.iter().zip(0_u64..).map(|(&row, source)| u64::from(row) << 32 | source);
        let mut keyed: Vec<u64> = keyed.collect();
        keyed.sort_unstable();
        let order: Vec<u32> = keyed.iter().map(|&key| key as u32).collect();
        let (mut groups, mut joints, mut slots) = (Vec::new(), Vec::new(), 0_u32);
        let mut begin = 0;
        for same in keyed.chunk_by(|a, b| a >> 32 == b >> 32) {
            let row = (same[0] >> 32) as u32;
            let first = slots;
            for part in same.chunks(GROUP) {
                let end = begin + part.len() as u32;
                let alone = same.len() <= GROUP;
                let slot = if alone { -1 } else { slots as i32 };
                slots += u32::from(!alone);
                groups.push(ScatterGroup { row, begin, end, slot });
                begin = end;
            }
            if slots > first {
                joints.push(ScatterJoint { row, begin: first, end: slots });
            }
        }
        Self {
            order: put(context, &order),
            group_count: groups.len(),
            groups: put(context, &groups),
            joint_count: joints.len(),
            joints: put(context, &joints),
            slots: slots as usize,
        }
    }
}
