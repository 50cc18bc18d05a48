//! Pickles, as far as a state dict needs them.
//!
//! A pickle is a program for a small machine with a stack, and the general machine may call anything.
//! This one knows the instructions that build plain data, and of all names only those that
//! `torch.save` of tensors uses; it refuses every other instruction and every other name. What it
//! builds grows with the pickle alone: an instruction makes one value at most, and a tensor has few
//! dimensions.

use std::collections::HashMap;

use super::NumberType;

/// A value on the stack. What has parts lies among the nodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// A whole number that is too large for that.
    Large,
    Float,
    Text(&'a str),
    Name(Name),
    PickleNode(usize),
}

/// The names that are known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(NumberType),
}

/// A value with parts.
#[derive(Debug)]
pub(super) enum PickleNode<'a> {
    Tuple(Vec<Value<'a>>),
    List(Vec<Value<'a>>),
    Dict(Vec<(Value<'a>, Value<'a>)>),
    Storage(Storage<'a>),
    Tensor(PickledTensor<'a>),
}

/// Numbers that lie elsewhere in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage<'a> {
    pub(super) key: &'a str,
    pub(super) element: NumberType,
    /// How many numbers it is said to have.
    pub(super) numbers: i64,
}

/// A tensor over a storage.
#[derive(Clone, Debug)]
pub(super) struct PickledTensor<'a> {
    pub(super) storage: Storage<'a>,
    /// Numbers of the storage that come before it.
    pub(super) offset: i64,
    pub(super) shape: Vec<i64>,
    pub(super) strides: Vec<i64>,
}

type Result<T> = std::result::Result<T, String>;

/// The machine, and after its run what it made.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    /// The next instruction.
    pub(super) at: usize,
    stack: Vec<Value<'a>>,
    marks: Vec<usize>,
    memo: HashMap<u32, Value<'a>>,
    pub(super) nodes: Vec<PickleNode<'a>>,
}

impl<'a> Machine<'a> {
    /// Runs the pickle that begins at `at`, to its end.
    pub(super) fn run(bytes: &'a [u8], at: usize) -> Result<(Value<'a>, Self)> {
        let (stack, marks, memo, nodes) = (vec![], vec![], HashMap::new(), vec![]);
        let mut machine = Self { bytes, at, stack, marks, memo, nodes };
        loop {
            let code = machine.take(1)?[0];
            if code == b'.' {
                let value = machine.pop()?;
                return Ok((value, machine));
            }
            machine.step(code)?;
        }
    }

    fn step(&mut self, code: u8) -> Result<()> {
        match code {
            0x80 => self.take(1).map(drop), // PROTO
            0x95 => self.take(8).map(drop), // FRAME
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' | b'M' | b'J' | 0x8a => self.whole_number(code),
            b'G' => {
                self.take(8)?;
                self.push(Value::Float)
            }
            b'X' => self.text(4),
            0x8c => self.text(1),
            b'c' => self.name(),
            0x93 => self.stacked_name(),
            b')' => self.node(PickleNode::Tuple(vec![])),
            b']' => self.node(PickleNode::List(vec![])),
            b'}' => self.node(PickleNode::Dict(vec![])),
            b't' => {
                let parts = self.since_mark()?;
                self.node(PickleNode::Tuple(parts))
            }
            0x85..=0x87 => {
                let first = self.stack.len().checked_sub(usize::from(code - 0x84));
                let first = first.filter(|&first| first >= self.floor()).ok_or(UNDERFLOW)?;
                let parts = self.stack.split_off(first);
                self.node(PickleNode::Tuple(parts))
            }
            b'a' | b'e' | b's' | b'u' => self.extend(code),
            b'q' | b'r' | 0x94 => self.memorise(code),
            b'h' | b'j' => {
                let key = self.number(if code == b'h' { 1 } else { 4 })? as u32;
                let value = self.memo.get(&key).copied();
                self.push(value.ok_or("a value is asked for that was never kept")?)
            }
            b'Q' => self.storage(),
            b'R' => self.call(),
            b'b' => self.set_state(),
            code => Err(format!(
                "its pickle has instruction 0x{code:02x} at byte {}, which a state dict does not need",
                self.at - 1
            )),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or("its pickle is cut short")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u64> {
        let low_first = self.take(bytes)?;
        Ok(low_first.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn push(&mut self, value: Value<'a>) -> Result<()> {
        self.stack.push(value);
        Ok(())
    }

    fn node(&mut self, node: PickleNode<'a>) -> Result<()> {
        self.nodes.push(node);
        self.push(Value::PickleNode(self.nodes.len() - 1))
    }

    /// What lies below belongs to somebody else.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Value<'a>> {
        if self.stack.len() <= self.floor() {
            return Err(UNDERFLOW.to_owned());
        }
        self.stack.pop().ok_or_else(|| UNDERFLOW.to_owned())
    }

    fn since_mark(&mut self) -> Result<Vec<Value<'a>>> {
        let mark = self.marks.pop().ok_or(UNDERFLOW)?;
        Ok(self.stack.split_off(mark))
    }

    fn whole_number(&mut self, code: u8) -> Result<()> {
        let value = match code {
            b'K' => Value::Int(self.number(1)? as i64),
            b'M' => Value::Int(self.number(2)? as i64),
            b'J' => Value::Int(i64::from(self.number(4)? as u32 as i32)),
            _ => {
                let length = self.number(1)? as usize;
                let bytes = self.take(length)?;
                if length > 8 {
                    Value::Large
                } else {
                    let negative = bytes.last().is_some_and(|&high| high >= 0x80);
                    let mut whole = if negative { [0xff; 8] } else { [0; 8] };
                    whole[..length].copy_from_slice(bytes);
                    Value::Int(i64::from_le_bytes(whole))
                }
            }
        };
        self.push(value)
    }

    fn text(&mut self, width: usize) -> Result<()> {
        let length = self.number(width)? as usize;
        let text = std::str::from_utf8(self.take(length)?);
        self.push(Value::Text(text.map_err(|_| "its pickle has text that is not UTF-8")?))
    }

    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let length =
            rest.iter().position(|&byte| byte == b'\n').ok_or("its pickle is cut short")?;
        let line = std::str::from_utf8(self.take(length + 1)?);
        line.map(str::trim_end).map_err(|_| "its pickle has text that is not UTF-8".to_owned())
    }

    fn name(&mut self) -> Result<()> {
        let (module, name) = (self.line()?, self.line()?);
        self.push(Value::Name(known(module, name)?))
    }

    fn stacked_name(&mut self) -> Result<()> {
        let (name, module) = (self.pop()?, self.pop()?);
        let (Value::Text(module), Value::Text(name)) = (module, name) else {
            return Err("its pickle has a name that is no text".to_owned());
        };
        self.push(Value::Name(known(module, name)?))
    }

    fn memorise(&mut self, code: u8) -> Result<()> {
        let key = match code {
            b'q' => self.number(1)? as u32,
            b'r' => self.number(4)? as u32,
            _ => self.memo.len() as u32,
        };
        let top = *self.stack.last().ok_or(UNDERFLOW)?;
        self.memo.insert(key, top);
        Ok(())
    }

    /// Adds to the list or dict below.
    fn extend(&mut self, code: u8) -> Result<()> {
        let parts = match code {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        let Some(&Value::PickleNode(target)) = self.stack.last() else {
            return Err("its pickle adds to what is neither list nor dict".to_owned());
        };
        match (&mut self.nodes[target], code) {
            (PickleNode::List(list), b'a' | b'e') => list.extend(parts),
            (PickleNode::Dict(dict), b's' | b'u') if parts.len().is_multiple_of(2) => {
                dict.extend(parts.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            _ => return Err("its pickle adds to what is neither list nor dict".to_owned()),
        }
        Ok(())
    }

    fn tuple(&self, value: Value<'a>) -> Result<&[Value<'a>]> {
        match value {
            Value::PickleNode(node) => match &self.nodes[node] {
                PickleNode::Tuple(parts) => Ok(parts),
                _ => Err("its pickle has no tuple where one belongs".to_owned()),
            },
            _ => Err("its pickle has no tuple where one belongs".to_owned()),
        }
    }

    /// `('storage', type, key, where it was, numbers)`, and in old files what it is a view of.
    fn storage(&mut self) -> Result<()> {
        let id = self.pop()?;
        let storage = match self.tuple(id)? {
            &[
                Value::Text("storage"),
                Value::Name(Name::Storage(element)),
                Value::Text(key),
                Value::Text(_),
                Value::Int(numbers),
                ref view @ ..,
            ] if matches!(view, [] | [Value::None]) => Storage { key, element, numbers },
            _ => return Err("its pickle points at something other than a storage".to_owned()),
        };
        self.node(PickleNode::Storage(storage))
    }

    fn call(&mut self) -> Result<()> {
        let (arguments, called) = (self.pop()?, self.pop()?);
        let arguments = self.tuple(arguments)?;
        match (called, arguments) {
            (Value::Name(Name::OrderedDict), []) => self.node(PickleNode::Dict(vec![])),
            (
                Value::Name(Name::RebuildTensor),
                &[storage, Value::Int(offset), shape, strides, ..],
            ) => {
                let tensor = self.tensor(storage, offset, shape, strides)?;
                self.node(PickleNode::Tensor(tensor))
            }
            (Value::Name(Name::RebuildParameter), &[tensor, ..]) => self.push(tensor),
            _ => Err("its pickle calls something with what it does not take".to_owned()),
        }
    }

    fn tensor(
        &self,
        storage: Value<'a>,
        offset: i64,
        shape: Value<'a>,
        strides: Value<'a>,
    ) -> Result<PickledTensor<'a>> {
        let numbers = |value: Value<'a>| {
            let number = |part: &Value<'a>| match part {
                Value::Int(number) => Ok(*number),
                _ => Err("its pickle has a tensor whose shape is no list of numbers".to_owned()),
            };
            let parts = self.tuple(value)?;
            // Remembered once, a long one could be copied for every tensor that names it.
            if parts.len() > MOST_DIMENSIONS {
                return Err(format!("its pickle has a tensor of {} dimensions", parts.len()));
            }
            parts.iter().map(number).collect::<Result<Vec<i64>>>()
        };
        let Value::PickleNode(node) = storage else {
            return Err("its pickle has a tensor without a storage".to_owned());
        };
        let PickleNode::Storage(storage) = self.nodes[node] else {
            return Err("its pickle has a tensor without a storage".to_owned());
        };
        Ok(PickledTensor { storage, offset, shape: numbers(shape)?, strides: numbers(strides)? })
    }

    /// A state dict carries the versions of its modules, which nobody here needs.
    fn set_state(&mut self) -> Result<()> {
        self.pop()?;
        match self.stack.last() {
            Some(&Value::PickleNode(node)) if matches!(self.nodes[node], PickleNode::Dict(_)) => {
                Ok(())
            }
            _ => Err("its pickle sets the state of something other than a dict".to_owned()),
        }
    }
}

/// More than any weight has.
const MOST_DIMENSIONS: usize = 8;

const UNDERFLOW: &str = "its pickle takes more from its stack than there is";

fn known(module: &str, name: &str) -> Result<Name> {
    Ok(match (module, name) {
        ("collections", "OrderedDict") => Name::OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2") => Name::RebuildTensor,
        ("torch._utils", "_rebuild_parameter") => Name::RebuildParameter,
        ("torch", "FloatStorage") => Name::Storage(NumberType::F32),
        ("torch", "HalfStorage") => Name::Storage(NumberType::F16),
        ("torch", "BFloat16Storage") => Name::Storage(NumberType::Bf16),
        ("torch", "DoubleStorage") => Name::Storage(NumberType::F64),
        ("torch", "LongStorage") => Name::Storage(NumberType::I64),
        ("torch", "IntStorage") => Name::Storage(NumberType::I32),
        ("torch", "ShortStorage") => Name::Storage(NumberType::I16),
        ("torch", "CharStorage") => Name::Storage(NumberType::I8),
        ("torch", "ByteStorage") => Name::Storage(NumberType::U8),
        ("torch", "BoolStorage") => Name::Storage(NumberType::Bool),
        _ => {
            let shown: String = format!("{module}.{name}").chars().take(100).collect();
            return Err(format!(
                "its pickle asks for `{shown}`, which no list of tensors needs: it was not run"
            ));
        }
    })
}
