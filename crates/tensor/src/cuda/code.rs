//! Kernels: compiled for the card at hand when they are first needed, then kept on the disk.
//!
//! A program is one file of `kernels/` with what all share before it. What depends on a shape (the
//! columns of a row, the width of a head) is fixed when compiling, so only what a model needs is
//! compiled, in half a second each, once for each machine; what is known to be needed is compiled by
//! threads of its own, while weights are drawn.

#![allow(unsafe_code, reason = "the compiler and the driver speak in raw pointers")]

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::{env, fs};

use cudarc::driver::result::{function, module};
use cudarc::driver::sys::{CUfunction, CUfunction_attribute};
use cudarc::nvrtc::{result as nvrtc, sys};

use super::context::{Context, say};
use super::fault::fail;
use super::lock;
use crate::kernels::Activation;

/// A file of kernels, and what is fixed in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Program {
    Elements,
    /// Sums over rows.
    Sums,
    Activation(Activation),
    /// Gathering and scattering.
    Rows,
    Softmax,
    Heads,
    Adam,
    /// The best of many scores.
    Search,
    /// LayerNorm of rows of `slabs` times 32 times `lanes` columns at most.
    Norm {
        lanes: usize,
        slabs: usize,
    },
    /// Attention with heads of that many columns at most; whether heads are multiples of eight.
    Attention {
        head: usize,
        whole: bool,
    },
    /// Attention with heads of 64 on Hopper, with so many warpgroups in the backward pass.
    Hopper {
        groups: usize,
    },
    /// Attention in plain loops, which the other two are compared with.
    #[cfg(test)]
    AttentionReference,
}

impl Program {
    fn source(self) -> String {
        let file = match self {
            Self::Elements => include_str!("kernels/elements.cu"),
            Self::Sums => {
                concat!(include_str!("kernels/sums.cuh"), include_str!("kernels/sums.cu"))
            }
            Self::Activation(_) => {
                concat!(include_str!("kernels/sums.cuh"), include_str!("kernels/activation.cu"))
            }
            Self::Rows => include_str!("kernels/rows.cu"),
            Self::Softmax => include_str!("kernels/softmax.cu"),
            Self::Heads => include_str!("kernels/heads.cu"),
            Self::Adam => include_str!("kernels/adam.cu"),
            Self::Search => include_str!("kernels/search.cu"),
            Self::Norm { .. } => include_str!("kernels/norm.cu"),
            Self::Attention { .. } => {
                concat!(include_str!("kernels/attention.cuh"), include_str!("kernels/attention.cu"))
            }
            Self::Hopper { .. } => {
                concat!(include_str!("kernels/attention.cuh"), include_str!("kernels/hopper.cu"))
            }
            #[cfg(test)]
            Self::AttentionReference => concat!(
                include_str!("kernels/attention.cuh"),
                include_str!("kernels/attention_reference.cu")
            ),
        };
        let fixed = match self {
            Self::Norm { lanes, slabs } => {
                format!("#define LANES {lanes}\n#define SLABS {slabs}\n")
            }
            Self::Attention { head, whole } => {
                format!("#define HEAD {head}\n#define WHOLE {}\n", u8::from(whole))
            }
            Self::Hopper { groups } => format!("#define GROUPS {groups}\n"),
            Self::Activation(activation) => {
                format!("#define ACTIVATION {}\n", activation_name(activation))
            }
            _ => String::new(),
        };
        format!("{fixed}{}{file}", include_str!("kernels/common.cuh"))
    }
}

fn activation_name(activation: Activation) -> &'static str {
    match activation {
        Activation::None => unreachable!("the identity has no kernel"),
        Activation::Gelu => "GELU",
        Activation::GeluTanh => "GELU_TANH",
        Activation::Relu => "RELU",
        Activation::Silu => "SILU",
        Activation::Elu => "ELU",
    }
}

#[derive(Default)]
pub(super) struct Code {
    functions: Mutex<HashMap<(Program, &'static str), Function>>,
    loaded: Mutex<HashMap<Program, CodeModule>>,
    binaries: Mutex<HashMap<Program, Arc<OnceLock<Binary>>>>,
    compiling: Mutex<Vec<JoinHandle<()>>>,
}

/// A program's machine code, or why it does not compile.
type Binary = Result<Vec<u8>, String>;

#[derive(Clone, Copy)]
struct Function(CUfunction);
// SAFETY: a function's handle may be used from any thread.
unsafe impl Send for Function {}

struct CodeModule(cudarc::driver::sys::CUmodule);
// SAFETY: a module's handle may be used from any thread.
unsafe impl Send for CodeModule {}

/// Shared memory that a kernel gets without asking.
const PLAIN_SHARED: usize = 48 << 10;

impl Code {
    /// A kernel; its program is compiled and loaded where it was not yet.
    pub(super) fn get(
        &self,
        context: &Context,
        program: Program,
        name: &'static str,
        shared: usize,
    ) -> CUfunction {
        let mut functions = lock(&self.functions);
        let find = || Function(self.find(context, program, name, shared));
        functions.entry((program, name)).or_insert_with(find).0
    }

    fn find(&self, context: &Context, program: Program, name: &str, shared: usize) -> CUfunction {
        context.prepare();
        let mut loaded = lock(&self.loaded);
        let module = loaded.entry(program).or_insert_with(|| self.load(context, program)).0;
        let symbol = CString::new(name).expect("names of kernels have no zero");
        // SAFETY: the module was loaded and is never unloaded.
        let found = unsafe { module::get_function(module, symbol) };
        let found = found.unwrap_or_else(|error| fail(format!("no kernel {name}: {}", say(error))));
        if shared > PLAIN_SHARED {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function was just found.
            let raised =
                unsafe { function::set_function_attribute(found, attribute, shared as i32) };
            raised.unwrap_or_else(|error| {
                let kib = shared >> 10;
                fail(format!("{name} needs {kib} KiB of shared memory: {}", say(error)))
            });
        }
        found
    }

    /// Loads a program, from the disk where it was compiled before.
    fn load(&self, context: &Context, program: Program) -> CodeModule {
        let order = Compilation::new(context, program);
        // A file that the driver does not take was not written whole, or by another version.
        if let Some(known) = order.known().and_then(|binary| load(&binary).ok()) {
            return known;
        }
        let binary = self.binary(program);
        let binary = binary.get_or_init(|| order.compile()).as_ref().unwrap_or_else(|log| {
            fail(format!("the kernels {program:?} do not compile for {}: {log}", order.arch))
        });
        load(binary).unwrap_or_else(|error| {
            fail(format!("the driver does not take the kernels {program:?}: {error}"))
        })
    }

    /// Begins to compile what will be needed and was not compiled before.
    pub(super) fn expect(&self, context: &Context, programs: &[Program]) {
        for &program in programs {
            let order = Compilation::new(context, program);
            if order.path.as_ref().is_some_and(|path| path.exists()) {
                continue;
            }
            let binary = self.binary(program);
            if binary.get().is_none() {
                let compile = move || _ = binary.get_or_init(|| order.compile());
                lock(&self.compiling).push(thread::spawn(compile));
            }
        }
    }

    fn binary(&self, program: Program) -> Arc<OnceLock<Binary>> {
        Arc::clone(lock(&self.binaries).entry(program).or_default())
    }
}

impl Drop for Code {
    /// Waits for the compiler, which must not be at work while the process ends.
    fn drop(&mut self) {
        for thread in lock(&self.compiling).drain(..) {
            // A failed compilation was reported where its program was needed.
            let _ = thread.join();
        }
    }
}

/// A program to compile: for what, and where it is kept.
struct Compilation {
    source: String,
    arch: String,
    path: Option<PathBuf>,
}

impl Compilation {
    fn new(context: &Context, program: Program) -> Self {
        let (source, arch) = (program.source(), arch(context));
        Self { path: cached(&source, &arch), source, arch }
    }

    /// What was compiled before.
    fn known(&self) -> Option<Vec<u8>> {
        fs::read(self.path.as_ref()?).ok()
    }

    fn compile(&self) -> Binary {
        let binary = compile(&self.source, &self.arch)?;
        if let Some(path) = &self.path {
            keep(path, &binary);
        }
        Ok(binary)
    }
}

/// What to compile for. Hopper's own instructions want its own name.
fn arch(context: &Context) -> String {
    match context.capability {
        (9, 0) => "sm_90a".to_owned(),
        (major, minor) => format!("sm_{major}{minor}"),
    }
}

fn load(binary: &[u8]) -> Result<CodeModule, String> {
    // SAFETY: the driver checks what it is given.
    unsafe { module::load_data(binary.as_ptr().cast::<c_void>()) }.map(CodeModule).map_err(say)
}

/// Compiles a program to machine code; else says why it does not compile.
fn compile(source: &str, arch: &str) -> Binary {
    let text = CString::new(source).expect("our sources have no zero");
    let program = nvrtc::create_program(&text, None).map_err(|error| format!("{error:?}"))?;
    let options = [format!("--gpu-architecture={arch}"), "--std=c++17".to_owned()];
    // SAFETY: the program was just made, and is destroyed once, below.
    unsafe {
        let compiled = nvrtc::compile_program(program, &options);
        let result = compiled.map_err(|error| log(program).unwrap_or(format!("{error:?}")));
        let result = result.and_then(|()| binary(program).map_err(|error| format!("{error:?}")));
        // That a program cannot be destroyed costs a little memory and nothing else.
        let _ = nvrtc::destroy_program(program);
        result
    }
}

/// # Safety
/// The program was compiled.
unsafe fn binary(program: sys::nvrtcProgram) -> Result<Vec<u8>, nvrtc::NvrtcError> {
    let mut size = 0;
    // SAFETY: the compiler writes as many bytes as it said.
    unsafe {
        sys::nvrtcGetCUBINSize(program, &raw mut size).result()?;
        let mut bytes = vec![0_u8; size];
        sys::nvrtcGetCUBIN(program, bytes.as_mut_ptr().cast()).result()?;
        Ok(bytes)
    }
}

/// The first errors that the compiler found.
///
/// # Safety
/// The program exists.
unsafe fn log(program: sys::nvrtcProgram) -> Option<String> {
    // SAFETY: promised by the caller.
    let log = unsafe { nvrtc::get_program_log(program) }.ok()?;
    let text: String =
        log.iter().map(|&byte| byte as u8 as char).take_while(|&c| c != '\0').collect();
    Some(text.lines().take(12).collect::<Vec<_>>().join("\n"))
}

/// Where a compiled program is kept: named by everything that it depends on.
fn cached(source: &str, arch: &str) -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let caches = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the compiler writes two numbers.
    unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) }.result().ok()?;
    let digest = blake3::hash(format!("{arch} {major}.{minor}\n{source}").as_bytes());
    Some(caches.join("isogloss").join(format!("{}.cubin", digest.to_hex())))
}

/// Writes a compiled program, whole or not at all. Where it cannot be kept, it is compiled again
/// next time.
fn keep(path: &Path, binary: &[u8]) {
    if fs::create_dir_all(path.parent().unwrap_or(path)).is_ok() {
        let _ = files::write(path, binary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs the compiler but no GPU.
    #[test]
    fn every_program_compiles() {
        // SAFETY: looking for a library opens it.
        if !unsafe { sys::is_culib_present() } {
            terms::tests::left_out(
                "no CUDA compiler (libnvrtc) is found, kernels are not compiled",
            );
            return;
        }
        let programs = [
            Program::Elements,
            Program::Sums,
            Program::Activation(Activation::Gelu),
            Program::Activation(Activation::GeluTanh),
            Program::Activation(Activation::Relu),
            Program::Activation(Activation::Silu),
            Program::Activation(Activation::Elu),
            Program::Rows,
            Program::Softmax,
            Program::Heads,
            Program::Adam,
            Program::Search,
            Program::Norm { lanes: 8, slabs: 3 },
            Program::Norm { lanes: 1, slabs: 2 },
            Program::Attention { head: 16, whole: false },
            Program::Attention { head: 64, whole: true },
            Program::Attention { head: 128, whole: true },
            Program::AttentionReference,
        ];
        let hopper = [1, 2, 4].map(|groups| Program::Hopper { groups });
        let everywhere = ["sm_80", "sm_90a"].map(|arch| programs.map(|program| (program, arch)));
        let all = everywhere.into_iter().flatten().chain(hopper.map(|program| (program, "sm_90a")));
        for (program, arch) in all {
            let compiled = compile(&program.source(), arch);
            let code = compiled.unwrap_or_else(|log| panic!("{program:?} for {arch}: {log}"));
            assert!(!code.is_empty(), "{program:?} for {arch}");
        }
    }
}
