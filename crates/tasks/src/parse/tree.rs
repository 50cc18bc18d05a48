//! The best tree over a sentence: the maximum spanning arborescence with one root, by the algorithm of Chu
//! and Liu (1965) and Edmonds (1967).
//!
//! That only one word depends on the root is achieved by making every edge from the root cost more than any
//! tree could win back: the best tree then has as few of them as can be, which is one.

/// The scores of every word's possible heads.
#[derive(Clone, Debug)]
pub struct ArcScores<'a> {
    /// Row after row, a row for each word: its score with head 0 (the root), 1, 2, …
    scores: &'a [f32],
    /// From one row to the next.
    stride: usize,
    words: usize,
}

impl<'a> ArcScores<'a> {
    /// Scores of so many words, whose rows begin `stride` elements apart.
    ///
    /// # Panics
    /// Where a row is too short for its words and the root.
    pub fn new(scores: &'a [f32], words: usize, stride: usize) -> Self {
        assert!(words == 0 || stride > words && scores.len() > (words - 1) * stride + words);
        Self { scores, stride, words }
    }

    /// The score of a head for a word, both counted from 1; head 0 is the root.
    fn get(&self, word: usize, head: usize) -> f64 {
        f64::from(self.scores[(word - 1) * self.stride + head])
    }

    /// The head of each word in the best tree with one root. Scores must be finite.
    pub fn best_tree(&self) -> Vec<u32> {
        let greedy: Vec<u32> = (1..=self.words).map(|word| self.best_head(word)).collect();
        if is_tree(&greedy) {
            return greedy;
        }
        let nodes = self.words + 1;
        let penalty = self.penalty();
        let mut graph = vec![f64::NEG_INFINITY; nodes * nodes];
        for word in 1..nodes {
            for head in (0..nodes).filter(|&head| head != word) {
                let toll = if head == 0 { penalty } else { 0.0 };
                graph[word * nodes + head] = self.get(word, head) - toll;
            }
        }
        let heads = arborescence(&graph, nodes);
        heads[1..].iter().map(|&head| head as u32).collect()
    }

    fn best_head(&self, word: usize) -> u32 {
        let heads = (0..=self.words).filter(|&head| head != word);
        let better = |best: usize, head: usize| {
            if self.get(word, head) > self.get(word, best) { head } else { best }
        };
        heads.reduce(better).unwrap_or(0) as u32
    }

    /// More than any two trees can differ by.
    fn penalty(&self) -> f64 {
        let largest = (1..=self.words)
            .flat_map(|word| (0..=self.words).map(move |head| (word, head)))
            .map(|(word, head)| self.get(word, head).abs())
            .fold(0.0, f64::max);
        1.0 + 2.0 * largest * (self.words + 1) as f64
    }
}

/// Whether heads are a tree with one root.
pub fn is_tree(heads: &[u32]) -> bool {
    if heads.iter().filter(|&&head| head == 0).count() != 1 {
        return false;
    }
    // What is known to be connected to the root, marked along the way.
    let mut sound = vec![false; heads.len()];
    for start in 0..heads.len() {
        let (mut here, mut path) = (start, Vec::new());
        while !sound[here] && heads[here] != 0 {
            path.push(here);
            if path.len() > heads.len() {
                return false;
            }
            here = heads[here] as usize - 1;
        }
        sound[here] = true;
        path.into_iter().for_each(|word| sound[word] = true);
    }
    true
}

/// The best head of every node but 0: row `node` of `graph` (nodes x nodes) scores its heads.
fn arborescence(graph: &[f64], nodes: usize) -> Vec<usize> {
    let score = |node: usize, head: usize| graph[node * nodes + head];
    let best_head = |node: usize| {
        let candidates = (0..nodes).filter(|&head| head != node);
        let best = candidates.reduce(|a, b| if score(node, b) > score(node, a) { b } else { a });
        best.filter(|_| node != 0).unwrap_or(0)
    };
    let mut heads: Vec<usize> = (0..nodes).map(best_head).collect();
    let Some(cycle) = find_cycle(&heads) else { return heads };

    // The cycle becomes one node, the last; the others keep their order.
    let outside: Vec<usize> = (0..nodes).filter(|node| !cycle.contains(node)).collect();
    let count = outside.len() + 1;
    let merged = count - 1;
    let mut smaller = vec![f64::NEG_INFINITY; count * count];
    // For each outside node, the node of the cycle by which an edge enters or leaves best.
    let (mut entry, mut exit) = (vec![cycle[0]; count], vec![cycle[0]; count]);
    for (a, &node) in outside.iter().enumerate() {
        for (b, &head) in outside.iter().enumerate().filter(|&(b, _)| b != a) {
            smaller[a * count + b] = score(node, head);
        }
        for &inside in &cycle {
            if score(node, inside) > smaller[a * count + merged] {
                smaller[a * count + merged] = score(node, inside);
                exit[a] = inside;
            }
            let gain = score(inside, node) - score(inside, heads[inside]);
            if gain > smaller[merged * count + a] {
                smaller[merged * count + a] = gain;
                entry[a] = inside;
            }
        }
    }
    let chosen = arborescence(&smaller, count);
    for (a, &node) in outside.iter().enumerate().skip(1) {
        heads[node] = if chosen[a] == merged { exit[a] } else { outside[chosen[a]] };
    }
    heads[entry[chosen[merged]]] = outside[chosen[merged]];
    heads
}

/// A cycle among the heads, if there is one. Node 0 has no head.
fn find_cycle(heads: &[usize]) -> Option<Vec<usize>> {
    let mut seen_from = vec![0; heads.len()];
    for start in 1..heads.len() {
        let mut here = start;
        while here != 0 && seen_from[here] == 0 {
            seen_from[here] = start;
            here = heads[here];
        }
        if here != 0 && seen_from[here] == start {
            let mut cycle = vec![here];
            let mut next = heads[here];
            while next != here {
                cycle.push(next);
                next = heads[next];
            }
            return Some(cycle);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensor::random::{Draws, Key};

    /// The total score of the best tree, by trying all.
    fn brute_force(scores: &ArcScores<'_>) -> f64 {
        let words = scores.words;
        let mut heads = vec![0_u32; words];
        let mut best = f64::NEG_INFINITY;
        loop {
            if is_tree(&heads) {
                best = best.max(total(scores, &heads));
            }
            let Some(next) = heads.iter().position(|&head| head < words as u32) else {
                return best;
            };
            heads[next] += 1;
            heads[..next].fill(0);
        }
    }

    fn total(scores: &ArcScores<'_>, heads: &[u32]) -> f64 {
        (1..).zip(heads).map(|(word, &head)| scores.get(word, head as usize)).sum()
    }

    fn check(numbers: &[f32], words: usize) {
        let scores = ArcScores::new(numbers, words, words + 1);
        let heads = scores.best_tree();
        assert!(is_tree(&heads), "{heads:?} of {numbers:?}");
        let (found, best) = (total(&scores, &heads), brute_force(&scores));
        assert!((found - best).abs() < 1e-6, "{found} but {best} can be had of {numbers:?}");
    }

    /// All graphs over so many words whose edges have weights 0 to `weights` - 1.
    fn all(words: usize, weights: u32) {
        let edges: Vec<usize> = (0..words * (words + 1))
            .filter(|edge| edge / (words + 1) + 1 != edge % (words + 1))
            .collect();
        for graph in 0..weights.pow(edges.len() as u32) {
            let mut numbers = vec![0.0; words * (words + 1)];
            let mut rest = graph;
            for &edge in &edges {
                numbers[edge] = (rest % weights) as f32;
                rest /= weights;
            }
            check(&numbers, words);
        }
    }

    #[test]
    fn equals_brute_force_on_all_small_graphs() {
        all(1, 3);
        all(2, 4);
        all(3, 3);
        all(4, 2);
    }

    #[test]
    fn equals_brute_force_on_random_graphs() {
        let mut draws = Draws::new(Key { seed: 3, step: 0, stream: 0 });
        for round in 0..600 {
            let words = 2 + round % 5;
            let numbers: Vec<f32> =
                (0..words * (words + 1)).map(|_| 10.0 * draws.normal()).collect();
            check(&numbers, words);
        }
    }

    #[test]
    fn rows_may_be_longer_than_they_need_be() {
        let wide = [1.0, 0.0, 5.5, 9.0, 2.0, 6.0, 0.0, 9.0];
        assert_eq!(ArcScores::new(&wide, 2, 4).best_tree(), [2, 0]);
        assert_eq!(ArcScores::new(&[], 0, 4).best_tree(), [0_u32; 0]);
    }

    #[test]
    fn a_long_sentence_full_of_cycles_is_done_in_time() {
        let mut draws = Draws::new(Key { seed: 4, step: 0, stream: 0 });
        let numbers: Vec<f32> = (0..200 * 201).map(|_| draws.normal()).collect();
        assert!(is_tree(&ArcScores::new(&numbers, 200, 201).best_tree()));
    }
}
