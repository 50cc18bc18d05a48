//! What a device must be able to do.
//!
//! The tape speaks to a device only through [`Kernels`]. Shapes were checked before a kernel is
//! called; `accumulate` says whether to add to what the output holds or to overwrite it.

use crate::exact::Exact;
use crate::random::Dropout;
use crate::spans::Spans;
use crate::value::{Indices, Later, Tensor};

/// How exactly a device keeps the numbers of a matrix. The CPU knows `f32` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `f32`: weights, their gradients, statistics, losses.
    Full,
    /// As the device computes: what flows from one operation to the next.
    Working,
}

/// The scale and offset of a LayerNorm, each of one row.
#[derive(Clone, Copy)]
pub struct NormWeights<'a> {
    /// What the normalised values are multiplied by.
    pub gamma: &'a Tensor,
    /// What is then added.
    pub beta: &'a Tensor,
    /// What keeps the division finite.
    pub epsilon: f32,
}

/// A gradient to write, and whether something is there to be added to.
pub struct Grad<'a> {
    /// Where the gradient goes.
    pub tensor: &'a mut Tensor,
    /// Add to the content, or overwrite it.
    pub accumulate: bool,
}

/// The gradients of a LayerNorm's weights, where they learn.
pub struct NormGrads<'a> {
    /// Of the scale.
    pub gamma: Option<Grad<'a>>,
    /// Of the offset.
    pub beta: Option<Grad<'a>>,
}

/// The sizes of an attention.
#[derive(Clone, Debug)]
pub struct AttentionShape {
    /// Number of heads; divides the model's dimension.
    pub heads: usize,
    /// Which query rows belong to which sequence.
    pub queries: Spans,
    /// Which key and value rows belong to which sequence.
    pub keys: Spans,
    /// Dropout of the attention weights.
    pub dropout: Dropout,
}

/// The gradients that a softmax tied to an embedding table gives.
pub struct TiedGrads<'a> {
    /// Of the hidden states; always overwritten.
    pub hidden: &'a mut Tensor,
    /// Of the table, where it learns.
    pub table: Option<Grad<'a>>,
    /// Of the bias, where it learns.
    pub bias: Option<Grad<'a>>,
}

/// One weight matrix in an update by Adam.
pub struct AdamSlot<'a> {
    /// The weights.
    pub value: &'a mut Tensor,
    /// Their gradient.
    pub grad: &'a Tensor,
    /// The running mean of the gradient.
    pub mean: &'a mut Tensor,
    /// The running mean of its square.
    pub square: &'a mut Tensor,
    /// The rate of learning of this matrix at this step.
    pub rate: f32,
    /// Decoupled weight decay of this matrix.
    pub decay: f32,
    /// The number of this update of this matrix, counted from 1: corrects the bias of the running
    /// means. Matrices of different languages are not updated equally often.
    pub number: u64,
}

/// What all slots of an update share.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Decay of the running mean.
    pub beta1: f32,
    /// Decay of the running square.
    pub beta2: f32,
    /// What keeps the division finite.
    pub epsilon: f32,
    /// The largest global norm that gradients may have; infinite for no clipping.
    pub clip: f32,
}

/// The operations of a device, forward and backward.
pub trait Kernels: Send + Sync {
    /// The device in words.
    fn description(&self) -> String;

    /// Runs work on the device's threads.
    fn run(&self, work: &mut (dyn FnMut() + Send));

    /// Runs the work of a whole step, for whoever asks for steps of the same shape again and again: a
    /// device may take all of it before it begins. Nothing in it may need a result.
    fn as_one(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Says that an encoder of this many columns and heads will be run, over sequences of up to so many
    /// tokens: a device may begin to prepare for it.
    fn expect(&self, _dim: usize, _heads: usize, _length: usize) {}

    /// Takes memory for a matrix from the device's pool; its content is yet to be written.
    fn empty(&self, rows: usize, cols: usize, precision: Precision) -> Tensor;

    /// A matrix in the precision that the device computes in.
    fn working(&self, x: Tensor) -> Tensor {
        x
    }

    /// Waits until everything that was asked for is done: a device may run behind.
    fn wait(&self) {}

    /// The elements of some matrices, one after the other, for whoever can wait for them: a device may
    /// run behind, and goes on with what is asked of it meanwhile. What is written to the matrices
    /// later is not seen.
    fn later(&self, matrices: &[&Tensor]) -> Later {
        Later::here(matrices)
    }

    /// How many bytes of its own memory the device holds, where it has any.
    fn held_memory(&self) -> Option<usize> {
        None
    }

    /// Large products in full precision, where the device makes them faster than the CPU.
    fn exact(&self) -> Option<&dyn Exact> {
        None
    }

    /// Sets every element.
    fn fill(&self, y: &mut Tensor, value: f32);

    /// `y += x`.
    fn add(&self, y: &mut Tensor, x: &Tensor);

    /// `y = dropout(x)`: every element times its factor.
    fn dropout(&self, x: &Tensor, dropout: Dropout, y: &mut Tensor);

    /// `sum[i] = Σ tables[t][rows[t][i]]`: rows of several tables, added up.
    fn gather_sum(&self, tables: &[(&Tensor, &Indices)], sum: &mut Tensor);

    /// `table[rows[i]] += x[i]`.
    fn scatter_add(&self, x: &Tensor, rows: &Indices, table: &mut Tensor);

    /// `y = x · w + bias`, and where `slope` is given, GELU after it: then `y` is the activation and
    /// `slope` keeps what [`Kernels::bias_grad`] needs to know its derivative.
    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        y: &mut Tensor,
        slope: Option<&mut Tensor>,
    );

    /// Multiplies `dy` by the derivative of the activation that `slope` is of, and sums it up:
    /// `db = Σ_rows dy`.
    fn bias_grad(&self, dy: &mut Tensor, slope: Option<&Tensor>, db: Option<Grad<'_>>);

    /// `dx = dy · wᵀ`.
    fn linear_input_grad(&self, dy: &Tensor, weight: &Tensor, dx: Grad<'_>);

    /// `dw = xᵀ · dy`.
    fn linear_weight_grad(&self, x: &Tensor, dy: &Tensor, dw: Grad<'_>);

    /// How many numbers for each query the way forward of attention notes for the way back.
    fn attention_notes(&self, shape: &AttentionShape) -> usize {
        shape.heads
    }

    /// Attention of `q` (queries x dim) over `kv` (keys x 2·dim: keys, then values), every
    /// sequence on its own; `notes` keeps the logarithm of each softmax's sum, and whatever else the
    /// device would not compute twice.
    fn attention(
        &self,
        q: &Tensor,
        kv: &Tensor,
        shape: &AttentionShape,
        y: &mut Tensor,
        notes: &mut Tensor,
    );

    /// The gradients of [`Kernels::attention`], which recomputes the weights from `notes`.
    #[allow(clippy::too_many_arguments, reason = "what went in, what came out, what comes back")]
    fn attention_grad(
        &self,
        q: &Tensor,
        kv: &Tensor,
        shape: &AttentionShape,
        y: &Tensor,
        notes: &Tensor,
        dy: &Tensor,
        dq: &mut Tensor,
        dkv: &mut Tensor,
    );

    /// `sum = x + dropout(update)`.
    fn residual(&self, x: &Tensor, update: &Tensor, dropout: Dropout, sum: &mut Tensor);

    /// `sum = x + dropout(update)`, `y = LayerNorm(sum)`; `stats` (rows x 2) keeps mean and inverse
    /// deviation.
    #[allow(clippy::too_many_arguments, reason = "one pass instead of three")]
    fn residual_norm(
        &self,
        x: &Tensor,
        update: &Tensor,
        dropout: Dropout,
        weights: NormWeights<'_>,
        sum: &mut Tensor,
        y: &mut Tensor,
        stats: &mut Tensor,
    );

    /// `y = LayerNorm(x)`.
    fn norm(&self, x: &Tensor, weights: NormWeights<'_>, y: &mut Tensor, stats: &mut Tensor);

    /// `dx (+)= ∂LayerNorm(x) · dy`, and the gradients of the weights; where `dropped` is given, the
    /// dropout of `dx` too, which is the gradient of a residual connection's update.
    #[allow(clippy::too_many_arguments, reason = "one pass instead of two")]
    fn norm_grad(
        &self,
        x: &Tensor,
        stats: &Tensor,
        weights: NormWeights<'_>,
        dy: &Tensor,
        dx: Grad<'_>,
        dropped: Option<(Dropout, &mut Tensor)>,
        weight_grads: NormGrads<'_>,
    );

    /// `y[i] = x[rows[i]]`.
    fn select(&self, x: &Tensor, rows: &Indices, y: &mut Tensor);

    /// `y[i]` = the mean of rows `ranges[2i]..ranges[2i + 1]` of `x`, in full precision; 0 where there
    /// are none.
    fn row_means(&self, x: &Tensor, ranges: &Indices, y: &mut Tensor);

    /// `y = x + row`: one row added to every row.
    fn add_row(&self, x: &Tensor, row: &Tensor, y: &mut Tensor);

    /// `y = h · tableᵀ + bias`: the scores of every row over the vocabulary.
    fn logits(&self, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor);

    /// Cross-entropy of `softmax(h · tableᵀ + bias)` against `targets`, some rows at a time so that
    /// the scores never stand in memory whole. `score` receives the sum of the losses and how many
    /// targets had the highest score. With `grads`, their gradients times `weight` are computed in
    /// the same pass.
    #[allow(clippy::too_many_arguments, reason = "fused so that scores are computed once")]
    fn tied_cross_entropy(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: &Tensor,
        targets: &Indices,
        weight: f32,
        score: &mut Tensor,
        grads: Option<TiedGrads<'_>>,
    );

    /// `y = ELU(x)`: `x` above 0, `e^x - 1` below.
    fn elu(&self, x: &Tensor, y: &mut Tensor);

    /// `dx = dy` times the derivative of ELU where it gave `y`.
    fn elu_grad(&self, y: &Tensor, dy: &Tensor, dx: &mut Tensor);

    /// Cross-entropy of the softmax of each row of `scores` over its first `widths[row]` columns
    /// against `targets[row]`. `score` receives the sum of the losses and how many targets had the
    /// highest score. With `dscores` (rows x cols, overwritten), the gradient times `weight` is
    /// computed in the same pass; it is 0 beyond a row's width.
    fn cross_entropy(
        &self,
        scores: &Tensor,
        widths: &Indices,
        targets: &Indices,
        weight: f32,
        score: &mut Tensor,
        dscores: Option<&mut Tensor>,
    );

    /// `y[i][j] = q[i] · k[first + j]`: each query against every key of its sequence, whose first
    /// row is `first`. `y` is queries x most keys of a sequence, and 0 beyond a sequence's keys.
    fn pair_scores(&self, q: &Tensor, k: &Tensor, queries: &Spans, keys: &Spans, y: &mut Tensor);

    /// The gradients of [`Kernels::pair_scores`], both overwritten.
    #[allow(clippy::too_many_arguments, reason = "what went in, and what comes back")]
    fn pair_scores_grad(
        &self,
        q: &Tensor,
        k: &Tensor,
        queries: &Spans,
        keys: &Spans,
        dy: &Tensor,
        dq: &mut Tensor,
        dk: &mut Tensor,
    );

    /// `y[i][c] = x[i][c·dim..] · z[i]`: each row of `x`, cut into blocks as wide as `z`, against
    /// the same row of `z`. Rows x blocks.
    fn block_dots(&self, x: &Tensor, z: &Tensor, y: &mut Tensor);

    /// The gradients of [`Kernels::block_dots`], both overwritten.
    fn block_dots_grad(
        &self,
        x: &Tensor,
        z: &Tensor,
        dy: &Tensor,
        dx: &mut Tensor,
        dz: &mut Tensor,
    );

    /// One update by Adam of all slots, clipped by the norm over all their gradients together.
    /// Writes that norm to `norm`, and changes nothing where it is not finite. Nor does it where
    /// `norm` held no finite number before, which it then keeps: whoever asks for several updates
    /// before reading a norm stands where the first failure left the weights.
    fn adam(&self, slots: &mut [AdamSlot<'_>], step: AdamStep, norm: &mut Tensor);
}
