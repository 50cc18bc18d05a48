//! Named weights and their gradients.

use std::collections::HashMap;
use std::ops::Range;

use crate::device::Device;
use crate::kernels::Grad;
use crate::value::Tensor;

/// Names a weight matrix among the [`Params`] it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(usize);

impl ParamId {
    /// Its place in the order in which matrices were added.
    pub fn number(self) -> usize {
        self.0
    }
}

struct Param {
    name: String,
    value: Tensor,
    /// Taken from the device when the first gradient arrives, so that frozen weights cost nothing.
    grad: Option<Tensor>,
    /// Whether `grad` holds anything since the gradients were last cleared.
    written: bool,
    trainable: bool,
    /// So many elements from the first are frozen.
    frozen_front: usize,
}

/// The weights of a model, in the order in which they were added.
pub struct Params {
    device: Device,
    params: Vec<Param>,
    by_name: HashMap<String, ParamId>,
}

impl Params {
    /// No weights yet, on this device.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), params: Vec::new(), by_name: HashMap::new() }
    }

    /// The device that the weights live on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Adds a trainable matrix.
    ///
    /// # Panics
    /// Where the name is taken.
    pub fn add(&mut self, name: impl Into<String>, value: Tensor) -> ParamId {
        let name = name.into();
        let id = ParamId(self.params.len());
        let taken = self.by_name.insert(name.clone(), id);
        assert!(taken.is_none(), "two weight matrices named {name}");
        self.params.push(Param {
            name,
            value,
            grad: None,
            written: false,
            trainable: true,
            frozen_front: 0,
        });
        id
    }

    /// Every matrix in turn.
    pub fn ids(&self) -> impl Iterator<Item = ParamId> + use<> {
        (0..self.params.len()).map(ParamId)
    }

    /// The matrix of that name.
    pub fn find(&self, name: &str) -> Option<ParamId> {
        self.by_name.get(name).copied()
    }

    /// Its name.
    pub fn name(&self, id: ParamId) -> &str {
        &self.params[id.0].name
    }

    /// Its weights.
    pub fn value(&self, id: ParamId) -> &Tensor {
        &self.params[id.0].value
    }

    /// Its weights, to overwrite.
    pub fn value_mut(&mut self, id: ParamId) -> &mut Tensor {
        &mut self.params[id.0].value
    }

    /// Its gradient, where one has arrived since [`Params::clear_grads`].
    pub fn grad(&self, id: ParamId) -> Option<&Tensor> {
        let param = &self.params[id.0];
        param.grad.as_ref().filter(|_| param.written)
    }

    /// Every matrix to update, with its gradient where one has arrived.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ParamId, &mut Tensor, Option<&Tensor>)> {
        self.params.iter_mut().enumerate().map(|(at, param)| {
            (ParamId(at), &mut param.value, param.grad.as_ref().filter(|_| param.written))
        })
    }

    /// Which matrices a gradient has reached since [`Params::clear_grads`].
    pub fn reached(&self) -> Vec<bool> {
        self.params.iter().map(|param| param.written).collect()
    }

    /// Declares which matrices a gradient has reached, where [`Params::grads_to_sum`] has put those of other processes.
    ///
    /// # Panics
    /// Where the list is not of these matrices.
    pub fn set_reached(&mut self, reached: &[bool]) {
        assert_eq!(reached.len(), self.params.len(), "one for each matrix");
        for (param, &reached) in self.params.iter_mut().zip(reached) {
            param.written = reached && param.trainable;
        }
    }

    /// The gradients of the trained matrices among these numbers, to be summed over processes: zeros where none has
    /// arrived here.
    pub fn grads_to_sum(&mut self, numbers: Range<usize>) -> Vec<&mut Tensor> {
        let device = &self.device;
        let trained = self.params[numbers].iter_mut().filter(|param| param.trainable);
        let grads = trained.map(|param| {
            let (rows, cols) = param.value.shape();
            let grad = param.grad.get_or_insert_with(|| device.empty(rows, cols));
            if !param.written {
                device.kernels().fill(grad, 0.0);
            }
            grad
        });
        grads.collect()
    }

    /// Whether it is trained.
    pub fn trainable(&self, id: ParamId) -> bool {
        self.params[id.0].trainable
    }

    /// Trains or freezes it: a frozen matrix receives no gradient at all.
    pub fn set_trainable(&mut self, id: ParamId, trainable: bool) {
        let param = &mut self.params[id.0];
        param.trainable = trainable;
        if !trainable {
            param.grad = None;
            param.written = false;
        }
    }

    /// Freezes the first rows of a trained matrix: [`Params::clear_frozen_grads`] takes their gradients away.
    ///
    /// # Panics
    /// Where it has not so many elements.
    pub fn freeze_front(&mut self, id: ParamId, elements: usize) {
        let param = &mut self.params[id.0];
        assert!(elements <= param.value.len(), "{} has fewer elements", param.name);
        param.frozen_front = elements;
    }

    /// How many elements from the first are frozen.
    pub fn frozen_front(&self, id: ParamId) -> usize {
        self.params[id.0].frozen_front
    }

    /// Sets the gradients of frozen rows to 0, so that they neither count in the norm nor change anything.
    pub fn clear_frozen_grads(&mut self) {
        let device = &self.device;
        for param in self.params.iter_mut().filter(|param| param.written && param.frozen_front > 0)
        {
            if let Some(grad) = &mut param.grad {
                device.kernels().zero_front(grad, param.frozen_front);
            }
        }
    }

    /// Forgets all gradients; their memory is kept for the next.
    pub fn clear_grads(&mut self) {
        self.params.iter_mut().for_each(|param| param.written = false);
    }

    /// How many numbers there are in all.
    pub fn count(&self) -> usize {
        self.params.iter().map(|param| param.value.len()).sum()
    }

    /// Where a gradient goes; none where the matrix is frozen.
    pub(crate) fn grad_slot(&mut self, id: ParamId) -> Option<Grad<'_>> {
        self.params[id.0].split(&self.device).1
    }

    /// The weights of two matrices that one kernel uses together, and where their gradients go.
    pub(crate) fn split<const N: usize>(
        &mut self,
        ids: [ParamId; N],
    ) -> [(&Tensor, Option<Grad<'_>>); N] {
        let params = self.params.get_disjoint_mut(ids.map(|id| id.0));
        params.expect("different weight matrices").map(|param| param.split(&self.device))
    }
}

impl Param {
    fn split(&mut self, device: &Device) -> (&Tensor, Option<Grad<'_>>) {
        if !self.trainable {
            return (&self.value, None);
        }
        let (rows, cols) = self.value.shape();
        let tensor = self.grad.get_or_insert_with(|| device.empty(rows, cols));
        let accumulate = std::mem::replace(&mut self.written, true);
        (&self.value, Some(Grad { tensor, accumulate }))
    }
}
