//! The device contract: what a device must be able to do.
//!
//! The tape speaks to a device only through [`Kernels`]; `cpu/` and `cuda/` implement it. Shapes are
//! checked before a kernel is called. `accumulate` says whether to add to what the output holds or to
//! overwrite it. Arguments that belong together travel as one struct, which both devices read.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::device::DeviceError;
use crate::random::Dropout;
use crate::search::{BestScores, NearestSearch};
use crate::spans::Spans;
use crate::value::{DeferredRead, Indices, Tensor};

/// How exactly a device keeps the numbers of a matrix. The CPU has `f32` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixPrecision {
    /// `f32`: weights, their gradients, statistics, losses.
    Full,
    /// What the device computes in (bf16 on a GPU): what flows from one operation to the next.
    Working,
}

/// The activation after an affine map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// GELU by the error function, `x · Φ(x)` (Hendrycks and Gimpel 2016): `gelu` in `transformers`.
    Gelu,
    /// GELU by the hyperbolic tangent, `x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`: `gelu_new`,
    /// `gelu_fast` and `gelu_pytorch_tanh` in `transformers`.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
    /// SiLU or swish, `x · σ(x)` (Elfwing et al. 2017).
    Silu,
    /// ELU, `x` above 0 and `eˣ - 1` below (Clevert et al. 2015).
    Elu,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Gelu, Self::GeluTanh, Self::Relu, Self::Silu, Self::Elu];

    /// Whether the backward pass needs more than the result: [`LinearKernels::linear`] is then given a
    /// matrix to save it in. The derivatives of ReLU and ELU are functions of the result.
    pub fn needs_saved(self) -> bool {
        matches!(self, Self::Gelu | Self::GeluTanh | Self::Silu)
    }
}

/// What the forward pass of an affine map leaves for [`LinearKernels::bias_grad`].
#[derive(Clone, Copy)]
pub struct LinearForward<'a> {
    /// What followed the map.
    pub activation: Activation,
    /// The result: rows x outputs.
    pub y: &'a Tensor,
    /// What [`LinearKernels::linear`] saved, where [`Activation::needs_saved`]: rows x outputs. Which numbers
    /// these are is the device's own affair: the CPU saves the activation's derivative, which costs
    /// little beside the value; a GPU saves the pre-activation, of which rounding to bf16 loses less.
    pub saved: Option<&'a Tensor>,
}

/// A gradient to write, and whether something is there to be added to.
pub struct Grad<'a> {
    /// Where the gradient goes.
    pub tensor: &'a mut Tensor,
    /// Add to the content, or overwrite it.
    pub accumulate: bool,
}

/// What a norm does to a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// LayerNorm (Ba et al. 2016): the mean becomes 0 and the variance 1.
    #[default]
    Layer,
    /// RMSNorm (Zhang and Sennrich 2019): the mean square becomes 1.
    Rms,
}

/// The scale and offset of a norm, each of one row. A row that is several times as wide is normalised in groups of that
/// width.
#[derive(Clone, Copy)]
pub struct NormWeights<'a> {
    /// What it does.
    pub kind: NormKind,
    /// What the normalised values are multiplied by.
    pub gamma: &'a Tensor,
    /// What is then added, if anything is.
    pub beta: Option<&'a Tensor>,
    /// Added to the variance or the mean square, so that the division stays finite.
    pub epsilon: f32,
}

/// What the forward pass of a norm leaves for the backward pass.
#[derive(Clone, Copy)]
pub struct NormForward<'a> {
    /// The input: rows x dim.
    pub x: &'a Tensor,
    /// Mean (0 for RMSNorm) and inverse standard deviation of each row: rows x 2.
    pub stats: &'a Tensor,
    /// The weights.
    pub weights: NormWeights<'a>,
}

/// The gradients of a norm's weights, where they are trainable.
pub struct NormGrads<'a> {
    /// Of the scale.
    pub gamma: Option<Grad<'a>>,
    /// Of the offset.
    pub beta: Option<Grad<'a>>,
}

/// A residual connection, `x + dropout(update)`.
#[derive(Clone, Copy)]
pub struct ResidualSum<'a> {
    /// The residual stream: rows x dim.
    pub x: &'a Tensor,
    /// What is added to it: rows x dim.
    pub update: &'a Tensor,
    /// Dropout of the update.
    pub dropout: Dropout,
}

/// How far a query sees to each side, in positions of its sequence; to its end where no number is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Before it.
    pub before: Option<usize>,
    /// After it; 0 in a decoder.
    pub after: Option<usize>,
}

impl Reach {
    /// The keys that are seen from a place in a sequence of so many.
    pub(crate) fn of(self, place: usize, keys: usize) -> Range<usize> {
        let first = self.before.map_or(0, |before| place.saturating_sub(before));
        let end = self
            .after
            .map_or(keys, |after| keys.min(place.saturating_add(after).saturating_add(1)));
        first..end
    }
}

/// The heads of an attention. A number of them stands for heads without anything special.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heads {
    /// Heads of queries.
    pub count: usize,
    /// Heads of keys and values, each of which serves as many heads of queries in turn (Ainslie et al. 2023).
    pub sources: usize,
    /// What each query sees.
    pub reach: Reach,
    /// What scores are multiplied by, where it is not the inverse root of the width of a head.
    pub scale: Option<f32>,
    /// A score `s` becomes `cap · tanh(s / cap)`.
    pub cap: Option<f32>,
    /// Whether scores fall with the distance, by a slope of each head's own (ALiBi, Press et al. 2022).
    pub sloped: bool,
}

impl Heads {
    /// By how much the scores of a head fall with each position: half as much from head to head, so that eight heads come to
    /// 1/256; where their number is no power of 2, the others stand between the first.
    pub(crate) fn slope(&self, head: usize) -> f32 {
        if !self.sloped {
            return 0.0;
        }
        let whole = 1 << self.count.ilog2();
        let (steps, heads) =
            if head < whole { (head + 1, whole) } else { (2 * (head - whole) + 1, 2 * whole) };
        (-8.0 * steps as f32 / heads as f32).exp2()
    }

    /// Whether there is nothing special.
    pub(crate) fn are_plain(&self) -> bool {
        *self == Self::from(self.count)
    }
}

impl From<usize> for Heads {
    fn from(count: usize) -> Self {
        Self {
            count,
            sources: count,
            reach: Reach::default(),
            scale: None,
            cap: None,
            sloped: false,
        }
    }
}

/// The sizes of an attention.
#[derive(Clone, Debug)]
pub struct AttentionShape {
    /// The heads.
    pub heads: Heads,
    /// Which query rows belong to which sequence.
    pub queries: Spans,
    /// Which key and value rows belong to which sequence.
    pub keys: Spans,
    /// Dropout of the attention weights.
    pub dropout: Dropout,
}

/// What the forward pass of attention leaves for the backward pass.
#[derive(Clone, Copy)]
pub struct AttentionForward<'a> {
    /// Queries x heads·width.
    pub q: &'a Tensor,
    /// Keys, then values: keys x 2·sources·width.
    pub kv: &'a Tensor,
    /// The result: queries x heads·width.
    pub y: &'a Tensor,
    /// The saved statistics: queries x [`AttentionKernels::attention_stats`].
    pub stats: &'a Tensor,
}

/// The gradients of attention's inputs, both overwritten.
pub struct AttentionGrads<'a> {
    /// Queries x heads·width.
    pub q: &'a mut Tensor,
    /// Keys x 2·sources·width.
    pub kv: &'a mut Tensor,
}

/// What becomes of each head of queries or of keys before they meet: a norm, a turn of its pairs of columns by angles
/// that grow with the position (RoPE, Su et al. 2021), or both in this order.
#[derive(Clone, Copy)]
pub struct HeadTurn<'a> {
    /// Columns of a head.
    pub width: usize,
    /// How many heads a row begins with; what stands behind them, the values, stays as it is.
    pub heads: usize,
    /// The norm of each head.
    pub norm: Option<NormWeights<'a>>,
    /// Positions x turned columns, of which there are `width` at most: the cosines of the angles of the first half, then
    /// the sines. Column `i` is turned with column `i` + half.
    pub angles: Option<&'a Tensor>,
    /// The position of each row.
    pub places: &'a Indices,
}

/// The softmax over a vocabulary whose output weights are an embedding table (Press and Wolf 2017).
#[derive(Clone, Copy)]
pub struct TiedSoftmax<'a> {
    /// Rows x dim.
    pub hidden: &'a Tensor,
    /// Vocabulary x dim.
    pub table: &'a Tensor,
    /// 1 x vocabulary.
    pub bias: &'a Tensor,
    /// The token that should have been predicted in each row.
    pub targets: &'a Indices,
    /// What the gradients are multiplied by.
    pub weight: f32,
}

/// The gradients of a [`TiedSoftmax`].
pub struct TiedGrads<'a> {
    /// Of the hidden states; always overwritten.
    pub hidden: &'a mut Tensor,
    /// Of the table, where it is trainable.
    pub table: Option<Grad<'a>>,
    /// Of the bias, where it is trainable.
    pub bias: Option<Grad<'a>>,
}

/// The softmax over a few classes, whose logits are in memory.
#[derive(Clone, Copy)]
pub struct ClassSoftmax<'a> {
    /// The logits: rows x classes.
    pub scores: &'a Tensor,
    /// How many of a row's columns count.
    pub widths: &'a Indices,
    /// The class that should have been predicted in each row.
    pub targets: &'a Indices,
    /// What the gradient is multiplied by.
    pub weight: f32,
}

/// Which rows of two matrices belong to which sequence.
#[derive(Clone, Copy)]
pub struct PairSpans<'a> {
    /// Of the queries.
    pub queries: &'a Spans,
    /// Of the keys.
    pub keys: &'a Spans,
}

/// The gradients of two inputs of one operation, both overwritten.
pub struct PairGrads<'a> {
    /// Of the first.
    pub left: &'a mut Tensor,
    /// Of the second.
    pub right: &'a mut Tensor,
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
    /// The learning rate of this matrix at this step.
    pub lr: f32,
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
    /// Added to the root of the running square, so that the division stays finite.
    pub epsilon: f32,
    /// The largest global norm that gradients may have; infinite for no clipping.
    pub clip: f32,
}

/// Which encoder a device is to prepare for.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedShape {
    /// Columns of the hidden states.
    pub dim: usize,
    /// Attention heads.
    pub heads: usize,
    /// Tokens of the longest sequence.
    pub length: usize,
    /// The activation of the feed-forward part.
    pub activation: Activation,
}

/// A sum of `aᵀ · b` over batches, in double precision ([`LinearKernels::add_gram`]).
pub struct GramSum {
    /// Two `f32` of memory for each `f64`: rows x 2·cols.
    pub(crate) wide: Tensor,
    /// Whether there is something to add to.
    pub(crate) begun: bool,
}

impl GramSum {
    /// The sum, row after row.
    pub fn to_vec(&self) -> Vec<f64> {
        if self.begun {
            bytemuck::pod_collect_to_vec(&self.wide.to_vec())
        } else {
            vec![0.0; self.wide.len() / 2]
        }
    }
}

/// Devices of several processes (ranks) that add up matrices among themselves.
pub trait DeviceGroup: Send + Sync {
    /// What joins them, in words.
    fn description(&self) -> String;

    /// Replaces every matrix by its sum over all ranks, which call this with matrices of the same shapes in the same
    /// order. The device goes on with other work meanwhile: nothing may be done with the matrices before
    /// [`DeviceGroup::settle`].
    fn sum(&self, matrices: &mut [&mut Tensor]);

    /// What is asked of the device from now on comes after all sums.
    fn settle(&self);
}

/// Element by element and row by row.
pub trait RowKernels {
    /// Sets every element.
    fn fill(&self, y: &mut Tensor, value: f32);

    /// Sets the first `count` elements to 0.
    fn zero_front(&self, y: &mut Tensor, count: usize);

    /// `y += x`.
    fn add(&self, y: &mut Tensor, x: &Tensor);

    /// `y = factor · x`.
    fn scale(&self, x: &Tensor, factor: f32, y: &mut Tensor);

    /// `y[i] = x[i] + scale · table[rows[i]]` of each scale in turn, the multiplication and the addition each rounded to
    /// `f32`: shifts of hidden states.
    fn add_rows(&self, x: &Tensor, table: &Tensor, rows: &Indices, scales: &[f32], y: &mut Tensor);

    /// `y = dropout(x)`: every element times its factor.
    fn dropout(&self, x: &Tensor, dropout: Dropout, y: &mut Tensor);

    /// `sum[i] = Σ tables[t][rows[t][i]]`: rows of several tables, added up.
    fn gather_sum(&self, tables: &[(&Tensor, &Indices)], sum: &mut Tensor);

    /// `table[rows[i]] += x[i]`.
    fn scatter_add(&self, x: &Tensor, rows: &Indices, table: &mut Tensor);

    /// `y[i] = x[rows[i]]`.
    fn select(&self, x: &Tensor, rows: &Indices, y: &mut Tensor);

    /// `y[i]` = the mean of rows `ranges[2i]..ranges[2i + 1]` of `x`, in full precision; 0 where there
    /// are none.
    fn row_means(&self, x: &Tensor, ranges: &Indices, y: &mut Tensor);
}

/// Affine maps and other matmuls.
pub trait LinearKernels {
    /// `y = a · b`. Two matrices of full precision are multiplied in `f32`, not TF32; where
    /// either is of the working precision, both are rounded to it and sums are `f32`.
    fn matmul(&self, a: &Tensor, b: &Tensor, y: &mut Tensor);

    /// `sum += aᵀ · b`, both of one precision: the matmul in `f32` (of bf16 numbers where the precision
    /// is the working one), the sum over calls in `f64`.
    fn add_gram(&self, a: &Tensor, b: &Tensor, sum: &mut GramSum);

    /// `y = activation(x · weight + bias)`. Where [`Activation::needs_saved`] and there will be a backward pass, `saved`
    /// (as large as `y`) is given and keeps what [`LinearKernels::bias_grad`] needs ([`LinearForward::saved`]).
    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        y: &mut Tensor,
        saved: Option<&mut Tensor>,
    );

    /// `y = activation(a) · b` of the halves `a` and `b` of each row of `x` (Shazeer 2020): rows x half.
    fn gate(&self, x: &Tensor, activation: Activation, y: &mut Tensor);

    /// The gradient of [`LinearKernels::gate`], which overwrites `dx`.
    fn gate_grad(&self, x: &Tensor, activation: Activation, dy: &Tensor, dx: &mut Tensor);

    /// Multiplies `dy` by the derivative of the activation, and sums it up: `db = Σ_rows dy`.
    fn bias_grad(&self, dy: &mut Tensor, forward: LinearForward<'_>, db: Option<Grad<'_>>);

    /// `dx = dy · weightᵀ`.
    fn linear_input_grad(&self, dy: &Tensor, weight: &Tensor, dx: Grad<'_>);

    /// `dw = xᵀ · dy`.
    fn linear_weight_grad(&self, x: &Tensor, dy: &Tensor, dw: Grad<'_>);

    /// `y = h · tableᵀ + bias`: the logits of every row over the vocabulary.
    fn logits(&self, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor);
}

/// Norms, the residual connections before them, and turns of heads.
pub trait NormKernels {
    /// `sum = x + dropout(update)`.
    fn residual(&self, residual: ResidualSum<'_>, sum: &mut Tensor);

    /// `sum = x + dropout(update)`, `y = norm(sum)`; `stats` (rows x 2) keeps mean and inverse
    /// standard deviation.
    fn residual_norm(
        &self,
        residual: ResidualSum<'_>,
        weights: NormWeights<'_>,
        sum: &mut Tensor,
        y: &mut Tensor,
        stats: &mut Tensor,
    );

    /// `y = norm(x)`.
    fn norm(&self, x: &Tensor, weights: NormWeights<'_>, y: &mut Tensor, stats: &mut Tensor);

    /// `dx (+)= ∂norm(x) · dy`, and the gradients of the weights; where `dropped` is given, the
    /// dropout of `dx` too, which is the gradient of a residual connection's update.
    fn norm_grad(
        &self,
        forward: NormForward<'_>,
        dy: &Tensor,
        dx: Grad<'_>,
        dropped: Option<(Dropout, &mut Tensor)>,
        weight_grads: NormGrads<'_>,
    );

    /// `y` = `x` with its heads turned; `stats`, given where there is a norm, are rows x 2·heads.
    fn turn(&self, x: &Tensor, turn: HeadTurn<'_>, y: &mut Tensor, stats: Option<&mut Tensor>);

    /// The gradients of [`NormKernels::turn`]; `dx` is overwritten.
    fn turn_grad(
        &self,
        x: &Tensor,
        turn: HeadTurn<'_>,
        stats: Option<&Tensor>,
        dy: &Tensor,
        dx: &mut Tensor,
        weight_grads: NormGrads<'_>,
    );
}

/// Attention.
pub trait AttentionKernels {
    /// How many numbers for each query the forward pass of attention saves for the backward pass.
    fn attention_stats(&self, shape: &AttentionShape) -> usize {
        shape.heads.count
    }

    /// Attention of `q` (queries x heads·width) over `kv` (keys x 2·sources·width: keys, then values), every sequence by
    /// itself. `stats` receives the statistics that the backward pass recomputes the weights from: the
    /// logsumexp of each row, and where the device draws it only once, the dropout mask.
    fn attention(
        &self,
        q: &Tensor,
        kv: &Tensor,
        shape: &AttentionShape,
        y: &mut Tensor,
        stats: &mut Tensor,
    );

    /// The gradients of [`AttentionKernels::attention`].
    fn attention_grad(
        &self,
        forward: AttentionForward<'_>,
        shape: &AttentionShape,
        dy: &Tensor,
        grads: AttentionGrads<'_>,
    );
}

/// What task heads need.
pub trait HeadKernels {
    /// Cross-entropy of the softmax of each row of `scores` over its first `widths[row]` columns
    /// against `targets[row]`. `score` receives the sum of the losses and how many targets had the
    /// highest score. With `dscores` (rows x cols, overwritten), the gradient times `weight` is
    /// computed in the same pass; it is 0 beyond a row's width.
    fn cross_entropy(
        &self,
        softmax: ClassSoftmax<'_>,
        score: &mut Tensor,
        dscores: Option<&mut Tensor>,
    );

    /// `y[i][j] = q[i] · k[first + j]`: each query against every key of its sequence, whose first
    /// row is `first`. `y` is queries x most keys of a sequence, and 0 beyond a sequence's keys.
    fn pair_scores(&self, q: &Tensor, k: &Tensor, spans: PairSpans<'_>, y: &mut Tensor);

    /// The gradients of [`HeadKernels::pair_scores`].
    fn pair_scores_grad(
        &self,
        q: &Tensor,
        k: &Tensor,
        spans: PairSpans<'_>,
        dy: &Tensor,
        grads: PairGrads<'_>,
    );

    /// `y[i][c] = x[i][c·dim..] · z[i]`: each row of `x`, cut into blocks as wide as `z`, against
    /// the same row of `z`. Rows x blocks.
    fn block_dots(&self, x: &Tensor, z: &Tensor, y: &mut Tensor);

    /// The gradients of [`HeadKernels::block_dots`].
    fn block_dots_grad(&self, x: &Tensor, z: &Tensor, dy: &Tensor, grads: PairGrads<'_>);
}

/// The operations of a device, forward and backward.
pub trait Kernels:
    Send + Sync + RowKernels + LinearKernels + NormKernels + AttentionKernels + HeadKernels
{
    /// The device in words.
    fn description(&self) -> String;

    /// Whether this is a GPU: large batches then cost little more than small ones, and what is read
    /// travels.
    fn is_gpu(&self) -> bool {
        false
    }

    /// Runs work on the device's threads.
    fn run(&self, work: &mut (dyn FnMut() + Send));

    /// Runs the work of a whole step, for callers that repeat steps of the same shape: a device may
    /// record all of it before it begins. Nothing in it may need a result.
    fn as_one(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Announces an encoder that will be run: a device may begin to prepare for it.
    fn expect(&self, _shape: ExpectedShape) {}

    /// Takes memory for a matrix from the device's pool; its content is yet to be written.
    fn empty(&self, rows: usize, cols: usize, precision: MatrixPrecision) -> Tensor;

    /// A matrix in the precision that the device computes in.
    fn working(&self, x: Tensor) -> Tensor {
        x
    }

    /// Waits until everything that was asked for is done: a device may run behind.
    fn wait(&self) {}

    /// The elements of some matrices, one after the other, for callers that can wait for them: a
    /// device may run behind, and goes on with what is asked of it meanwhile. What is written to the
    /// matrices later is not seen.
    fn read_later(&self, matrices: &[&Tensor]) -> DeferredRead {
        DeferredRead::done(matrices)
    }

    /// What rank 0 hands to the other ranks, so that their devices can be joined; none where sums over ranks go
    /// through this process's memory (the CPU).
    fn group_id(&self) -> Result<Option<Vec<u8>>, DeviceError> {
        Ok(None)
    }

    /// Joins the devices of so many ranks, all of which call this with the id that [`Kernels::group_id`] gave to rank 0.
    /// None where there is no such id.
    fn join(
        &self,
        _id: &[u8],
        _rank: usize,
        _ranks: usize,
    ) -> Result<Option<Box<dyn DeviceGroup>>, DeviceError> {
        Ok(None)
    }

    /// How many bytes of its own memory the device holds, where it has any.
    fn held_memory(&self) -> Option<usize> {
        None
    }

    /// The best scores of each row and of each column of a search, in this order; none where the
    /// device has no kernel for it (the CPU: callers search there by themselves, in the cache).
    /// `watch` is called with how many strips of rows are done, and of how many.
    fn nearest(
        &self,
        _search: &NearestSearch<'_>,
        _watch: &dyn Fn(u64, u64),
    ) -> Option<[BestScores; 2]> {
        None
    }

    /// For each row, the entry of the largest logit, the first of equals; logits are never in memory whole. One that is
    /// NaN does not count, and where none counts it is the first entry. `hidden` may be several `copies` of some rows, one
    /// after another, that resemble each other (1 if they do not): that saves time and changes nothing.
    fn best_tokens(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: &Tensor,
        copies: usize,
    ) -> Vec<u32>;

    /// Cross-entropy of `softmax(h · tableᵀ + bias)` against `targets`, some rows at a time so that
    /// the logits are never in memory whole. `score` receives the sum of the losses and how many
    /// targets had the highest logit. With `grads`, their gradients times `weight` are computed in
    /// the same pass.
    fn tied_cross_entropy(
        &self,
        softmax: TiedSoftmax<'_>,
        score: &mut Tensor,
        grads: Option<TiedGrads<'_>>,
    );

    /// One update by Adam with decoupled weight decay (Kingma and Ba 2015, Loshchilov and Hutter 2019)
    /// of all slots, clipped by the norm over all their gradients together. Writes that norm to
    /// `norm`, and changes nothing where it is not finite. Nor does it where `norm` was not finite
    /// before, which it then keeps: a caller that asks for several updates before reading a norm
    /// finds the weights as the first failure left them.
    fn adam(&self, slots: &mut [AdamSlot<'_>], step: AdamStep, norm: &mut Tensor);
}
