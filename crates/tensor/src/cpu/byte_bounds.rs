//! The most likely tokens by upper bounds in bytes.
//!
//! States and entries of the vocabulary are rounded to 8 bits, whose products the processor adds up four times as fast as `f32`
//! (AVX-512 VNNI). With ŵ and ĥ the rounded vectors, `w · h` differs from `ŵ · ĥ` by at most
//! `|w - ŵ| |h| + |ŵ| |h - ĥ|` (Cauchy and Schwarz); so each score has an upper bound, and only where
//! that is not below the best score so far is the score itself computed, in `f32`. The outcome is that of
//! comparing all scores. Threads share the best scores so far; which scores are left out depends on
//! their timing, the outcome does not.
//!
//! Rows that are alike, such as one position under shifts of several weights, share products: with `h ≈ Σ c_j b_j`, a
//! combination of two or three of them by least squares, the score of `h` differs from `Σ c_j (w · b_j)` by at most
//! `|w| |h - Σ c_j b_j|`, which the bound includes. Then only the `b_j` are multiplied by the table.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use super::Cpu;
use super::best_tokens::TokenSearch;

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_: &Cpu, _: &TokenSearch<'_>) -> Option<Vec<u32>> {
    None
}

/// The best entry of each row; none where the processor cannot do it.
#[cfg(target_arch = "x86_64")]
pub(super) fn run(cpu: &Cpu, search: &TokenSearch<'_>) -> Option<Vec<u32>> {
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni");
    // Sums of bytes stay within 32 bits.
    let fits = search.dim <= i32::MAX as usize / (255 * 128);
    (able && fits).then(|| vnni::run(cpu, search))
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    use std::arch::x86_64::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rayon::prelude::*;

    use super::{Cpu, TokenSearch};

    /// Rows whose sums are in registers at once.
    const ROWS: usize = 12;
    /// Entries whose sums are: two registers of sixteen.
    const ENTRIES: usize = 32;
    /// Entries of a task.
    const TASK: usize = 16 * ENTRIES;
    /// What rounding in `f32` may add to a score, relative to the norms of its vectors, and to its bias.
    const ROUNDING: f32 = 1e-5;
    const ROUNDING_OF_BIAS: f32 = 1e-6;

    /// A vector of bytes: what they are multiplied by, and the norms of the vector and of the error.
    #[derive(Clone, Copy, Default)]
    struct Rounded {
        scale: f32,
        norm: f32,
        error: f32,
    }

    /// The best score of a row so far and whose it is, in one word: the larger word is the better score, or the
    /// lower id of equals.
    struct SharedBest(AtomicU64);

    impl SharedBest {
        fn new() -> Self {
            Self(AtomicU64::new(Self::word(f32::NEG_INFINITY, 0)))
        }

        fn word(score: f32, id: u32) -> u64 {
            // Adding 0 makes the two zeros one.
            let bits = (score + 0.0).to_bits();
            let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
            u64::from(ordered) << 32 | u64::from(!id)
        }

        fn score(&self) -> f32 {
            let ordered = (self.0.load(Ordering::Relaxed) >> 32) as u32;
            f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
        }

        fn offer(&self, score: f32, id: u32) {
            if !score.is_nan() {
                self.0.fetch_max(Self::word(score, id), Ordering::Relaxed);
            }
        }

        fn id(&self) -> u32 {
            !(self.0.load(Ordering::Relaxed) as u32)
        }
    }

    /// Rows that a combination is made of, at most.
    const MOST_PARTS: usize = 3;
    /// How far a row may be from a combination, in units of its norm over the root of the dimension: that is the standard
    /// deviation of its scores with unrelated entries, and a bound looser by less excludes nearly all of them.
    const LIKENESS: f64 = 0.8;

    /// A row as a combination of the multiplied rows of its family; with one of these it is that row itself.
    #[derive(Clone, Copy)]
    struct Member {
        row: usize,
        /// What the sums of bytes of each part are multiplied by.
        weights: [f32; MOST_PARTS],
        /// What an entry's error is multiplied by in the bound, and what its norm is.
        norm: f32,
        error: f32,
    }

    /// Rows that share products: the rows that are multiplied, and all of them.
    struct Family {
        parts: Vec<usize>,
        members: Vec<Member>,
    }

    /// What there is to [`ROWS`] multiplied rows beside their bytes.
    struct Tile {
        /// For each row, 128 times the sum of its bytes: entries are stored with 128 added.
        offsets: [i32; ROWS],
        /// Parts and members of each family of this tile.
        parts: usize,
        size: usize,
        /// The members of one family after another, in the order of their parts.
        members: Vec<Member>,
    }

    /// All rows, and the best entry of each so far.
    struct RoundedRows<'a> {
        search: &'a TokenSearch<'a>,
        tiles: Vec<Tile>,
        /// Tiles x steps x [`ROWS`], four signed bytes to a word: what is multiplied next lies beside what was.
        words: Vec<i32>,
        best: Vec<SharedBest>,
    }

    pub(super) fn run(cpu: &Cpu, search: &TokenSearch<'_>) -> Vec<u32> {
        let rows = search.rows();
        let places = rows / search.copies;
        let mut families: Vec<Family> = (0..places)
            .into_par_iter()
            .flat_map_iter(|place| families_of_place(search, place))
            .collect();
        // Families of a tile have as many parts.
        families.sort_by_key(|family| family.parts.len());
        let tiles = families
            .chunk_by(|a, b| a.parts.len() == b.parts.len())
            .flat_map(|alike| alike.chunks(ROWS / alike[0].parts.len()))
            .collect::<Vec<_>>();
        let (steps, tasks) = (search.dim.div_ceil(4), search.bias.len().div_ceil(TASK));
        let mut words = vec![0; tiles.len() * steps * ROWS];
        let tiles = tiles.into_par_iter().zip(words.par_chunks_mut((steps * ROWS).max(1)));
        // SAFETY: `super::run` has asked for these instructions.
        let tiles = tiles.map(|(families, words)| unsafe { tile(search, families, words) });
        let all = RoundedRows {
            search,
            tiles: tiles.collect(),
            words,
            best: (0..rows).map(|_| SharedBest::new()).collect(),
        };
        (0..tasks).into_par_iter().with_max_len(1).for_each(|task| {
            let mut panel = cpu.scratch(steps * ENTRIES);
            let end = search.bias.len().min((task + 1) * TASK);
            for first in (task * TASK..end).step_by(ENTRIES) {
                // SAFETY: as above.
                unsafe { all.compare(first, bytemuck::cast_slice_mut(panel.as_mut_slice())) };
            }
        });
        all.best.iter().map(SharedBest::id).collect()
    }

    /// The rows at one place of every copy: one family of two parts or three where these are enough, or each by itself.
    fn families_of_place(search: &TokenSearch<'_>, place: usize) -> Vec<Family> {
        let places = search.rows() / search.copies;
        let rows: Vec<usize> = (0..search.copies).map(|copy| copy * places + place).collect();
        let (first, middle, last) = (rows[0], rows[rows.len() / 2], rows[rows.len() - 1]);
        let shared = [vec![first, last], vec![first, middle, last]].into_iter();
        let shared = shared.filter(|parts| parts.len() < rows.len());
        let family = shared.filter_map(|parts| combined(search, parts, &rows)).next();
        let alone = |&row: &usize| {
            let weights = std::array::from_fn(|part| f32::from(u8::from(part == 0)));
            let member = Member { row, weights, norm: 0.0, error: 0.0 };
            Family { parts: vec![row], members: vec![member] }
        };
        family.map_or_else(|| rows.iter().map(alone).collect(), |family| vec![family])
    }

    /// Rows as combinations of some of them; none where a row is too far from its combination. Each member's `norm` is 0 and its
    /// `error` the distance; [`tile`] adds what the rounding of its parts adds.
    fn combined(search: &TokenSearch<'_>, parts: Vec<usize>, rows: &[usize]) -> Option<Family> {
        let of = |row: usize| &search.hidden[row * search.dim..][..search.dim];
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        let mut products = [[0.0; MOST_PARTS]; MOST_PARTS];
        for (products, &a) in products.iter_mut().zip(&parts) {
            for (product, &b) in products.iter_mut().zip(&parts) {
                *product = dot(of(a), of(b));
            }
        }
        let tolerance = LIKENESS / (search.dim as f64).sqrt();
        let member = |&row: &usize| {
            let mut right = [0.0; MOST_PARTS];
            right.iter_mut().zip(&parts).for_each(|(right, &part)| *right = dot(of(part), of(row)));
            let weights = solve(products, right, parts.len()).map(|weight| weight as f32);
            let mut square = 0.0;
            for (at, &x) in of(row).iter().enumerate() {
                let sum: f64 = parts
                    .iter()
                    .zip(weights)
                    .map(|(&part, w)| f64::from(w) * f64::from(of(part)[at]))
                    .sum();
                square += (f64::from(x) - sum).powi(2);
            }
            let distance = square.sqrt();
            // Not so where anything is NaN.
            let like = distance <= tolerance * dot(of(row), of(row)).sqrt();
            like.then_some(Member {
                row,
                weights,
                norm: 0.0,
                error: (distance * (1.0 + 1e-4)) as f32,
            })
        };
        let members = rows.iter().map(member).collect::<Option<_>>()?;
        Some(Family { parts, members })
    }

    /// The solution of the first `size` linear equations, by elimination; NaN or infinite where there is none.
    fn solve(
        mut matrix: [[f64; MOST_PARTS]; MOST_PARTS],
        mut right: [f64; MOST_PARTS],
        size: usize,
    ) -> [f64; MOST_PARTS] {
        for pivot in 0..size {
            for row in pivot + 1..size {
                let factor = matrix[row][pivot] / matrix[pivot][pivot];
                let above = matrix[pivot];
                matrix[row].iter_mut().zip(above).for_each(|(x, above)| *x -= factor * above);
                right[row] -= factor * right[pivot];
            }
        }
        let mut solution = [0.0; MOST_PARTS];
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size).map(|col| matrix[row][col] * solution[col]).sum();
            solution[row] = (right[row] - known) / matrix[row][row];
        }
        solution
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn tile(search: &TokenSearch<'_>, families: &[Family], words: &mut [i32]) -> Tile {
        let dim = search.dim;
        let mut tile = Tile {
            offsets: [0; ROWS],
            parts: families[0].parts.len(),
            size: families[0].members.len(),
            members: families.iter().flat_map(|family| &family.members).copied().collect(),
        };
        let mut place = 0;
        for (family, members) in families.iter().zip(tile.members.chunks_mut(tile.size)) {
            for (number, &row) in family.parts.iter().enumerate() {
                let mut sum = 0;
                let put = |step: usize, word: u32| {
                    words[step * ROWS + place] = word.cast_signed();
                    sum += word.to_le_bytes().map(|byte| i32::from(byte as i8)).iter().sum::<i32>();
                };
                let Rounded { scale, norm, error } =
                    round(&search.hidden[row * dim..][..dim], 0, put);
                tile.offsets[place] = 128 * sum;
                place += 1;
                for member in &mut *members {
                    let weight = member.weights[number];
                    member.norm += weight.abs() * norm;
                    member.error += weight.abs() * error;
                    member.weights[number] = weight * scale;
                }
            }
        }
        tile
    }

    /// Rounds a vector to bytes, to each of which `added` is added, and hands out words of four.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn round(vector: &[f32], added: i32, mut put: impl FnMut(usize, u32)) -> Rounded {
        let mut tops = [0.0_f32; 16];
        for sixteen in vector.chunks(16) {
            tops.iter_mut().zip(sixteen).for_each(|(top, x)| *top = top.max(x.abs()));
        }
        let most = tops.iter().copied().fold(0.0, f32::max);
        let scale = most / 127.0;
        let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
        let (sixteens, rest) = vector.as_chunks::<16>();
        let [mut norms, mut errors] = [_mm512_setzero_ps(); 2];
        for (number, sixteen) in sixteens.iter().enumerate() {
            // SAFETY: a chunk of sixteen.
            let x = unsafe { _mm512_loadu_ps(sixteen.as_ptr()) };
            let whole = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse)));
            let rounded = _mm512_mul_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(scale));
            let off = _mm512_sub_ps(x, rounded);
            norms = _mm512_fmadd_ps(x, x, norms);
            errors = _mm512_fmadd_ps(off, off, errors);
            let bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(whole, _mm512_set1_epi32(added)));
            let mut words = [0_u32; 4];
            // SAFETY: sixteen bytes.
            unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), bytes) };
            words.into_iter().zip(4 * number..).for_each(|(word, step)| put(step, word));
        }
        let mut norm = f64::from(_mm512_reduce_add_ps(norms));
        let mut error = f64::from(_mm512_reduce_add_ps(errors));
        for (four, step) in rest.chunks(4).zip(4 * sixteens.len()..) {
            let mut word = [added as u8; 4];
            for (byte, &x) in word.iter_mut().zip(four) {
                let whole = (x * inverse).round_ties_even();
                let (x, rounded) = (f64::from(x), f64::from(whole) * f64::from(scale));
                norm += x * x;
                error += (x - rounded) * (x - rounded);
                *byte = (whole as i32 + added) as u8;
            }
            put(step, u32::from_le_bytes(word));
        }
        let up = |square: f64| (square.sqrt() * (1.0 + 1e-4)) as f32;
        Rounded { scale, norm: up(norm), error: up(error) }
    }

    /// Some entries, as the instruction takes them: four bytes of sixteen entries in a register.
    struct EntryPanel<'a> {
        /// Steps x [`ENTRIES`].
        words: &'a [u32],
        first: usize,
        scales: [f32; ENTRIES],
        /// The norms of the rounded vectors, and of their errors with what rounding in `f32` may add.
        norms: [f32; ENTRIES],
        errors: [f32; ENTRIES],
        bias: [f32; ENTRIES],
    }

    /// Sixteen entries of a panel, in registers.
    struct Sixteen {
        first: usize,
        scales: __m512,
        norms: __m512,
        errors: __m512,
        bias: __m512,
    }

    impl EntryPanel<'_> {
        /// The first sixteen entries, or the last.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        #[inline]
        fn sixteen(&self, half: usize) -> Sixteen {
            let load = |of: &[f32; ENTRIES]| {
                // SAFETY: thirty-two numbers are two halves.
                unsafe { _mm512_loadu_ps(of.as_chunks::<16>().0[half].as_ptr()) }
            };
            Sixteen {
                first: self.first + 16 * half,
                scales: load(&self.scales),
                norms: load(&self.norms),
                errors: load(&self.errors),
                bias: load(&self.bias),
            }
        }
    }

    impl RoundedRows<'_> {
        /// Compares some entries, from this one on, with all rows.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn compare(&self, first: usize, words: &mut [u32]) {
            let TokenSearch { table, bias, dim, .. } = *self.search;
            let count = ENTRIES.min(bias.len() - first);
            let (scales, norms, errors) = ([0.0; ENTRIES], [0.0; ENTRIES], [0.0; ENTRIES]);
            // Entries beyond the last are never better.
            let bias_of_none = [f32::NEG_INFINITY; ENTRIES];
            let mut panel =
                EntryPanel { words: &[], first, scales, norms, errors, bias: bias_of_none };
            words.fill(0);
            for at in 0..count {
                let entry = &table[(first + at) * dim..(first + at + 1) * dim];
                let rounded = round(entry, 128, |step, word| words[step * ENTRIES + at] = word);
                panel.scales[at] = rounded.scale;
                panel.norms[at] = rounded.norm + rounded.error;
                panel.errors[at] = rounded.error + ROUNDING * panel.norms[at];
                let bias = bias[first + at];
                panel.bias[at] = bias + ROUNDING_OF_BIAS * bias.abs();
            }
            panel.words = words;
            let size = dim.div_ceil(4) * ROWS;
            for (tile, rows) in self.tiles.iter().zip(self.words.chunks(size)) {
                match tile.parts {
                    1 => self.compare_rows::<1>(tile, rows, &panel),
                    2 => self.compare_rows::<2>(tile, rows, &panel),
                    _ => self.compare_rows::<MOST_PARTS>(tile, rows, &panel),
                }
            }
        }

        /// Compares them with the rows of a tile.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn compare_rows<const PARTS: usize>(
            &self,
            tile: &Tile,
            rows: &[i32],
            panel: &EntryPanel<'_>,
        ) {
            let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
            for (sums, offset) in sums.iter_mut().zip(tile.offsets) {
                *sums = [_mm512_set1_epi32(-offset); 2];
            }
            let steps = panel.words.chunks_exact(ENTRIES).zip(rows.chunks_exact(ROWS));
            for (words, rows) in steps {
                // SAFETY: thirty-two words are two registers.
                let [low, high] = unsafe {
                    let words = words.as_ptr().cast::<__m512i>();
                    [_mm512_loadu_si512(words), _mm512_loadu_si512(words.add(1))]
                };
                for (&word, [low_sums, high_sums]) in rows.iter().zip(&mut sums) {
                    let word = _mm512_set1_epi32(word);
                    *low_sums = _mm512_dpbusd_epi32(*low_sums, low, word);
                    *high_sums = _mm512_dpbusd_epi32(*high_sums, high, word);
                }
            }
            for half in 0..2 {
                let entries = panel.sixteen(half);
                let families =
                    tile.members.chunks_exact(tile.size).zip(sums.as_chunks::<PARTS>().0);
                for (members, sums) in families {
                    let sums = std::array::from_fn(|part| _mm512_cvtepi32_ps(sums[part][half]));
                    for member in members {
                        self.sift::<PARTS>(member, &entries, &sums);
                    }
                }
            }
        }

        /// Computes the scores that may be the best of a row: `sums` are those of sixteen entries with the parts of its family.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        #[inline]
        fn sift<const PARTS: usize>(&self, member: &Member, of: &Sixteen, sums: &[__m512; PARTS]) {
            let Member { row, weights, norm, error } = member;
            let slack = _mm512_mul_ps(_mm512_set1_ps(*error), of.norms);
            let slack = _mm512_fmadd_ps(_mm512_set1_ps(*norm), of.errors, slack);
            let mut products = _mm512_mul_ps(sums[0], _mm512_set1_ps(weights[0]));
            for part in 1..PARTS {
                products = _mm512_fmadd_ps(sums[part], _mm512_set1_ps(weights[part]), products);
            }
            let bounds = _mm512_fmadd_ps(products, of.scales, of.bias);
            let bounds = _mm512_add_ps(bounds, slack);
            let best = &self.best[*row];
            // A bound that is NaN is not below: what it is of is computed.
            let mut open = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(bounds, _mm512_set1_ps(best.score()));
            if open == 0 {
                return;
            }
            let mut each = [0.0; 16];
            // SAFETY: sixteen numbers are one register.
            unsafe { _mm512_storeu_ps(each.as_mut_ptr(), bounds) };
            while open != 0 {
                let at = open.trailing_zeros() as usize;
                open &= open - 1;
                let id = of.first + at;
                if each[at] < best.score() || id >= self.search.bias.len() {
                    continue;
                }
                best.offer(self.score(*row, id), id as u32);
            }
        }

        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn score(&self, row: usize, id: usize) -> f32 {
            let TokenSearch { hidden, table, bias, dim, .. } = *self.search;
            let (hidden, entry) = (&hidden[row * dim..][..dim], &table[id * dim..][..dim]);
            let ((hidden, rest), (entry, rest_of_entry)) =
                (hidden.as_chunks::<16>(), entry.as_chunks::<16>());
            let mut sums = _mm512_setzero_ps();
            for (hidden, entry) in hidden.iter().zip(entry) {
                // SAFETY: chunks of sixteen.
                let (hidden, entry) =
                    unsafe { (_mm512_loadu_ps(hidden.as_ptr()), _mm512_loadu_ps(entry.as_ptr())) };
                sums = _mm512_fmadd_ps(hidden, entry, sums);
            }
            let rest: f32 = rest.iter().zip(rest_of_entry).map(|(h, w)| h * w).sum();
            _mm512_reduce_add_ps(sums) + rest + bias[id]
        }
    }
}
