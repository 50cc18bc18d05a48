//! The steps of one or several plans, each once, and the order in which they are run side by side.
//!
//! A step that several studies need is one step of the pool. Of the steps that could begin, those of the first seed come
//! first, so that a run that ends early leaves whole seeds. Of one seed, the step with the longest remaining path (its own
//! expected time and that of the longest chain of steps that wait for it) begins first (critical path scheduling, Graham
//! 1969), so that the last jobs do not wait for one long chain.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use super::plan::StudyPlan;
use super::step::{StepId, StudyStep};

/// Seconds that count for a step of unknown cost, so that longer chains still come first.
const UNKNOWN: f64 = 1.0;

pub struct PooledStep<'a> {
    pub step: &'a StudyStep,
    /// Each plan that has it, with its number there.
    pub places: Vec<(&'a StudyPlan, StepId)>,
    /// The steps of the pool that must be complete before.
    pub needs: Vec<usize>,
}

/// The steps of one or several plans, each once, in topological order.
pub struct StepPool<'a> {
    pub steps: Vec<PooledStep<'a>>,
    /// For each step, how many seeds come after the first that needs it.
    later_seeds: Vec<usize>,
}

impl<'a> StepPool<'a> {
    pub fn of(plans: &'a [StudyPlan]) -> Self {
        let mut steps: Vec<PooledStep<'a>> = Vec::new();
        let mut by_key: HashMap<&str, usize> = HashMap::new();
        for plan in plans {
            for (number, step) in plan.steps.iter().enumerate() {
                let new = steps.len();
                let index = *by_key.entry(&step.key).or_insert(new);
                if index == new {
                    let needs = step.needs.iter().map(|need| &*plan.steps[need.0].key);
                    let needs = needs.map(|key| by_key[key]).collect();
                    steps.push(PooledStep { step, places: Vec::new(), needs });
                }
                steps[index].places.push((plan, StepId(number)));
            }
        }
        let later_seeds = later_seeds(plans, &steps, &by_key);
        Self { steps, later_seeds }
    }

    /// For each step whether it is [to be run](open), by whether its result and its files are there.
    pub(super) fn open(
        &self,
        has_result: impl Fn(usize) -> bool,
        has_files: impl Fn(usize) -> bool,
    ) -> Vec<bool> {
        let is_read = |number: usize| {
            self.steps[number].places.iter().any(|(plan, step)| {
                plan.extractions.iter().any(|extraction| extraction.step == *step)
            })
        };
        let is_done = |number: usize| has_result(number) || !is_read(number);
        let has_files = |number: usize| has_result(number) && has_files(number);
        open(self.steps.iter().map(|step| step.needs.iter().copied()), is_done, has_files)
    }

    /// For each step, the expected seconds of the longest chain of open steps that begins with it.
    fn remaining_paths(&self, costs: &[(bool, Option<f64>)]) -> Vec<f64> {
        let own = |(complete, seconds): (bool, Option<f64>)| match complete {
            true => 0.0,
            false => seconds.unwrap_or(UNKNOWN),
        };
        let mut paths: Vec<f64> = costs.iter().map(|&cost| own(cost)).collect();
        for (number, step) in self.steps.iter().enumerate().rev() {
            for &need in &step.needs {
                paths[need] = paths[need].max(own(costs[need]) + paths[number]);
            }
        }
        paths
    }

    /// For each step how early it is to begin, the greatest first: by the first seed that needs it, then by its remaining path.
    pub(super) fn priorities(&self, costs: &[(bool, Option<f64>)]) -> Vec<f64> {
        let mut paths = self.remaining_paths(costs);
        let longer_than_any = 1.0 + paths.iter().copied().fold(0.0, f64::max);
        for (path, &later) in paths.iter_mut().zip(&self.later_seeds) {
            *path += longer_than_any * later as f64;
        }
        paths
    }

    /// The expected seconds until all steps are complete with so many jobs, by simulation; `running` holds the
    /// numbers of the running steps and their elapsed seconds. Steps of unknown cost count nothing.
    pub(super) fn time_left(
        &self,
        costs: &[(bool, Option<f64>)],
        running: &[(usize, f64)],
        jobs: usize,
    ) -> f64 {
        let priorities = self.priorities(costs);
        let mut waits_for: Vec<usize> = self
            .steps
            .iter()
            .map(|step| step.needs.iter().filter(|&&need| !costs[need].0).count())
            .collect();
        let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for (number, step) in self.steps.iter().enumerate() {
            step.needs.iter().for_each(|&need| dependents[need].push(number));
        }
        let seconds = |number: usize| costs[number].1.unwrap_or(0.0);
        // The earliest end comes first out of `busy`, the highest priority out of `ready`.
        let mut busy: BinaryHeap<Timed> = running
            .iter()
            .map(|&(number, elapsed)| Timed(-(seconds(number) - elapsed).max(0.0), number))
            .collect();
        let under_way = |number: usize| running.iter().any(|&(other, _)| other == number);
        let mut ready: BinaryHeap<Timed> = (0..self.steps.len())
            .filter(|&number| !costs[number].0 && waits_for[number] == 0 && !under_way(number))
            .map(|number| Timed(priorities[number], number))
            .collect();
        let mut now = 0.0;
        loop {
            while busy.len() < jobs
                && let Some(Timed(_, number)) = ready.pop()
            {
                busy.push(Timed(-(now + seconds(number)), number));
            }
            let Some(Timed(end, number)) = busy.pop() else { return now };
            now = -end;
            for &dependent in &dependents[number] {
                waits_for[dependent] = waits_for[dependent].saturating_sub(1);
                if waits_for[dependent] == 0 && !costs[dependent].0 {
                    ready.push(Timed(priorities[dependent], dependent));
                }
            }
        }
    }
}

/// For each step, how many seeds come after the first that reads its result or that of a step that needs it.
fn later_seeds(
    plans: &[StudyPlan],
    steps: &[PooledStep<'_>],
    by_key: &HashMap<&str, usize>,
) -> Vec<usize> {
    let mut first = vec![u64::MAX; steps.len()];
    for plan in plans {
        for one in &plan.extractions {
            let number = by_key[&*plan.steps[one.step.0].key];
            first[number] = first[number].min(one.seed);
        }
    }
    for (number, step) in steps.iter().enumerate().rev() {
        for &need in &step.needs {
            first[need] = first[need].min(first[number]);
        }
    }
    let seeds: BTreeSet<u64> = first.iter().copied().collect();
    first.iter().map(|&seed| seeds.range((Excluded(seed), Unbounded)).count()).collect()
}

/// For each of some steps, by the steps that it needs, whether it is to be run: it is not done, or a step that is to be run needs
/// its files and they are not there. So an encoder is not trained for results that are there.
pub(super) fn open<N: Iterator<Item = usize>>(
    steps: impl DoubleEndedIterator<Item = N> + ExactSizeIterator,
    is_done: impl Fn(usize) -> bool,
    has_files: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let mut needed = vec![false; steps.len()];
    let mut open = needed.clone();
    for (number, needs) in steps.enumerate().rev() {
        open[number] = !is_done(number) || (needed[number] && !has_files(number));
        if open[number] {
            needs.for_each(|need| needed[need] = true);
        }
    }
    open
}

/// A step's number by a time: the greatest first, of equal ones the first step.
struct Timed(f64, usize);

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timed {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::file::Study;
    use crate::study::step::CPU;
    use terms::Scale;

    fn plan(name: &str) -> StudyPlan {
        let study = Study::find(name).unwrap();
        StudyPlan::of(&study, Scale::Tiny, CPU, &mut |_, _, most| Ok(most)).unwrap()
    }

    #[test]
    fn a_step_of_two_studies_is_pooled_once() {
        let plans = [plan("anchors"), plan("sharing")];
        let pool = StepPool::of(&plans);
        let all: usize = plans.iter().map(|plan| plan.steps.len()).sum();
        assert!(pool.steps.len() < all);
        assert_eq!(pool.steps.iter().map(|step| step.places.len()).sum::<usize>(), all);
        for (number, pooled) in pool.steps.iter().enumerate() {
            assert!(pooled.needs.iter().all(|&need| need < number));
            for &(plan, place) in &pooled.places {
                let theirs = &plan.steps[place.0];
                assert_eq!(theirs.key, pooled.step.key);
                let needs: Vec<&str> =
                    theirs.needs.iter().map(|need| &*plan.steps[need.0].key).collect();
                let ours: Vec<&str> =
                    pooled.needs.iter().map(|&need| &*pool.steps[need].step.key).collect();
                assert_eq!(needs, ours);
            }
        }
    }

    #[test]
    fn a_step_is_run_for_its_result_or_for_the_files_that_an_open_one_reads() {
        let plans = [plan("anchors")];
        let pool = StepPool::of(&plans);
        let of = |kind: &str| {
            let of_kind = |pooled: &PooledStep<'_>| pooled.step.kind.starts_with(kind);
            pool.steps.iter().position(of_kind).unwrap()
        };
        let (world, encoder, transfer) = (of("world"), of("pretrain"), of("transfer"));
        let open = |without_result: &[usize], files: bool| {
            let open = pool.open(|number| !without_result.contains(&number), |_| files);
            (0..open.len()).filter(|&number| open[number]).collect::<Vec<_>>()
        };
        assert_eq!(open(&[], false), [0; 0], "every result is there");
        assert_eq!(open(&[world, encoder], true), [0; 0], "nothing needs them");
        assert_eq!(open(&[transfer], true), [transfer]);
        let needed = &pool.steps[transfer].needs;
        assert!(needed.contains(&encoder), "{needed:?}");
        assert_eq!(open(&[transfer], false), [world, encoder, transfer]);
        assert_eq!(open(&[transfer, encoder], true), [encoder, transfer]);
    }

    /// A run that ends early leaves whole seeds, not all encoders and no score.
    #[test]
    fn a_seed_is_done_before_the_next_begins() {
        let plans = [plan("anchors")];
        let pool = StepPool::of(&plans);
        let priorities = pool.priorities(&vec![(false, None); pool.steps.len()]);
        let of_seed = |seed: &str| {
            let end = format!("seed {seed}");
            let of = pool.steps.iter().zip(&priorities);
            of.filter(move |(pooled, _)| pooled.step.name.ends_with(&end)).map(|(_, &one)| one)
        };
        assert!(of_seed("1").count() > 9 && of_seed("2").count() > 9);
        let last = of_seed("1").fold(f64::INFINITY, f64::min);
        assert!(last > of_seed("2").fold(0.0, f64::max));
    }

    /// Worked by hand: a (2) and b (3) are free; c (4) waits for a, d (1) for b.
    #[test]
    fn time_left_is_that_of_the_longest_path_first() {
        let plans = [plan("anchors")];
        let step = &plans[0].steps[0];
        let pooled = |needs: &[usize]| PooledStep { step, places: Vec::new(), needs: needs.into() };
        let steps = vec![pooled(&[]), pooled(&[]), pooled(&[0]), pooled(&[1])];
        let pool = StepPool { steps, later_seeds: vec![0; 4] };
        let costs = [2.0, 3.0, 4.0, 1.0].map(|seconds| (false, Some(seconds)));
        assert_eq!(pool.remaining_paths(&costs), [6.0, 4.0, 4.0, 1.0]);
        assert_eq!(pool.time_left(&costs, &[], 1), 10.0);
        assert_eq!(pool.time_left(&costs, &[], 2), 6.0);
        assert_eq!(pool.time_left(&costs, &[], 9), 6.0);
        assert_eq!(pool.time_left(&costs, &[(1, 2.5)], 1), 7.5, "b is nearly done");
        let mut some = costs;
        some[0].0 = true;
        assert_eq!(pool.time_left(&some, &[], 1), 8.0);
        some[2].1 = None;
        assert_eq!(pool.time_left(&some, &[], 1), 4.0, "a step of unknown cost counts nothing");
        assert_eq!(pool.remaining_paths(&some)[2], UNKNOWN);
    }
}
