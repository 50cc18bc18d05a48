//! Data-parallel training (Li et al. 2020): every rank has all weights and computes the gradients of its share of an update's
//! micro-batches, which are then added up over all ranks.
//!
//! Rank r of n takes micro-batches r, r + n, r + 2n and so on of those that one process would take one after the other, each with
//! the dropout that it has there; so the update differs by the order of floating-point sums alone. Gradients are added
//! up in buckets of some megabytes, each as soon as the backward pass of this rank's last micro-batch has completed it: a GPU
//! then adds up those of the upper layers while it computes those of the lower ones. All ranks add up the same buckets
//! in the same order, whatever their micro-batches have reached: weights of a language that has none here count as zeros.

use std::ops::Range;
use std::sync::Arc;

use ranks::{RankError, Ranks};
use tensor::{ParamId, Params, Tensor};

/// The smallest bucket, in numbers: 25 MB, where the time of a message is that of its bytes.
pub(crate) const BUCKET: usize = 25 << 18;

/// The ranks that train together, and the buckets that they add up.
pub(crate) struct SharedTraining {
    ranks: Arc<Ranks>,
    /// Numbers of parameters: the last ones first, since the backward pass completes them first.
    buckets: Vec<Range<usize>>,
}

impl SharedTraining {
    /// Buckets hold at least so many numbers.
    pub(crate) fn new(ranks: Arc<Ranks>, params: &Params, smallest: usize) -> Self {
        let (mut buckets, mut end, mut size) = (Vec::new(), params.ids().count(), 0);
        for id in params.ids().collect::<Vec<_>>().into_iter().rev() {
            size += if params.trainable(id) { params.value(id).len() } else { 0 };
            if size >= smallest || id.number() == 0 {
                buckets.push(id.number()..end);
                (end, size) = (id.number(), 0);
            }
        }
        Self { ranks, buckets }
    }

    pub(crate) fn ranks(&self) -> &Arc<Ranks> {
        &self.ranks
    }

    #[cfg(test)]
    pub(crate) fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Before the backward pass of this rank's last micro-batch.
    pub(crate) fn begin(&self) -> BucketSums<'_> {
        let waiting = self.buckets.iter().map(ExactSizeIterator::len).collect();
        BucketSums { shared: self, waiting, next: 0, result: Ok(()) }
    }
}

/// The buckets of one update on their way.
pub(crate) struct BucketSums<'a> {
    shared: &'a SharedTraining,
    /// For each bucket, how many gradients are not complete.
    waiting: Vec<usize>,
    /// The first bucket that is not being added up.
    next: usize,
    result: Result<(), RankError>,
}

impl BucketSums<'_> {
    /// A gradient is complete; so may be its bucket.
    pub(crate) fn complete(&mut self, params: &mut Params, id: ParamId) {
        let of = self.shared.buckets.iter().position(|bucket| bucket.contains(&id.number()));
        self.waiting[of.expect("every parameter is in a bucket")] -= 1;
        while self.waiting.get(self.next) == Some(&0) && self.result.is_ok() {
            let mut grads = params.grads_to_sum(self.shared.buckets[self.next].clone());
            self.result = self.shared.ranks.sum(&mut grads);
            self.next += 1;
        }
    }

    /// After the backward pass: adds up the scores of all micro-batches too, and agrees on which weights gradients have
    /// reached on any rank. `own` are those of this rank's.
    pub(crate) fn finish(
        self,
        params: &mut Params,
        own: Vec<Tensor>,
        micro_batches: usize,
    ) -> Result<Vec<Tensor>, RankError> {
        self.result?;
        let ranks = &self.shared.ranks;
        let device = params.device().clone();
        let mut scores: Vec<Tensor> = (0..micro_batches).map(|_| device.zeros(1, 2)).collect();
        for (number, score) in own.into_iter().enumerate() {
            scores[ranks.rank() + number * ranks.count()] = score;
        }
        ranks.sum(&mut scores.iter_mut().collect::<Vec<_>>())?;
        let reached: Vec<u8> = params.reached().into_iter().map(u8::from).collect();
        let all = ranks.gather(&reached)?;
        let anywhere = |number: usize| all.iter().any(|rank| rank.get(number) == Some(&1));
        params.set_reached(&(0..reached.len()).map(anywhere).collect::<Vec<_>>());
        ranks.settle();
        Ok(scores)
    }
}
