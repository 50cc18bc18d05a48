//! Finds the libraries that the GPU is used through.
//!
//! The driver is part of the system. The compiler of kernels (NVRTC) and the matmuls
//! (cuBLASLt) come with the CUDA toolkit or with a Python environment that has PyTorch or JAX in it;
//! whichever is found first is taken. A library that was opened by its path is found by its name
//! afterwards, which is how `cudarc` then reaches it.

#![allow(unsafe_code, reason = "opening a library runs its initialisers")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::CUresult;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};

use crate::device::DeviceError;

/// Makes sure that driver, compiler and cuBLASLt can be reached.
pub(super) fn find() -> Result<(), DeviceError> {
    // SAFETY: looking for the library opens it, and the driver's initialisers may be run.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err(DeviceError::NoDriver);
    }
    // Asked before anything is looked for that only a GPU would need.
    if matches!(result::init(), Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE))) {
        return Err(DeviceError::NoGpu);
    }
    // SAFETY: as above, for the compiler.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        keep_open(open("libnvrtc.so.")?);
    }
    // SAFETY: as above, for cuBLASLt.
    if !unsafe { cudarc::cublaslt::sys::is_culib_present() } {
        keep_open(open("libcublasLt.so.")?);
    }
    Ok(())
}

/// Keeps a library until the process ends.
fn keep_open(library: Library) {
    std::mem::forget(library);
}

/// NCCL, by its name where the system finds it so, else from the folders. `cudarc` has bindings of it, but looks for
/// `libnccl.so` alone, and what is installed beside PyTorch is `libnccl.so.2`.
pub(super) fn nccl() -> Result<Library, DeviceError> {
    // SAFETY: this library of NVIDIA's is made to be opened by any process.
    let opened = unsafe { Library::open(Some("libnccl.so.2"), RTLD_LAZY | RTLD_GLOBAL) };
    opened.or_else(|_| open("libnccl.so."))
}

/// Opens the first library whose file name begins so.
fn open(prefix: &'static str) -> Result<Library, DeviceError> {
    let folders = folders();
    for folder in &folders {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with(prefix) {
                continue;
            }
            // SAFETY: these libraries of NVIDIA's are made to be opened by any process.
            let opened = unsafe { Library::open(Some(entry.path()), RTLD_LAZY | RTLD_GLOBAL) };
            if let Ok(library) = opened {
                return Ok(library);
            }
        }
    }
    Err(DeviceError::Unusable(format!(
        "{} is not found in {} folders; install the CUDA toolkit, or `pip install nvidia-cublas nvidia-cuda-nvrtc \
         nvidia-nccl-cu13`, or name its folder in LD_LIBRARY_PATH",
        prefix.trim_end_matches(".so."),
        folders.len()
    )))
}

/// Where such libraries lie: the toolkit's usual places, then Python environments.
fn folders() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"]
        .iter()
        .filter_map(|name| env::var_os(name).map(PathBuf::from))
        .collect();
    roots.extend(children(Path::new("/usr/local"), "cuda"));
    roots.push("/opt/cuda".into());
    let mut folders: Vec<PathBuf> = roots
        .iter()
        .flat_map(|root| ["lib64", "lib", "targets/x86_64-linux/lib"].map(|lib| root.join(lib)))
        .collect();
    folders
        .extend(["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib"].map(PathBuf::from));
    for environment in environments() {
        for python in children(&environment.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"].map(|name| python.join(name)) {
                let parts = children(&packages.join("nvidia"), "");
                folders.extend(parts.into_iter().map(|part| part.join("lib")));
                folders.push(packages.join("torch/lib"));
            }
        }
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Python environments: the active one, those of the interpreters on the path, the user's own.
fn environments() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|name| env::var_os(name).map(PathBuf::from))
        .collect();
    let path = env::var_os("PATH").unwrap_or_default();
    for bin in env::split_paths(&path) {
        if bin.join("python3").exists() || bin.join("python").exists() {
            found.extend(bin.parent().map(Path::to_owned));
        }
    }
    let home = env::var_os("HOME").map(PathBuf::from);
    found.extend(home.iter().map(|home| home.join(".local")));
    // What pyenv puts on the path are mere stand-ins for the environments behind it.
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from);
    if let Some(root) = pyenv.or_else(|| Some(home?.join(".pyenv"))) {
        found.extend(children(&root.join("versions"), ""));
    }
    found
}

/// The folders in `folder` whose names begin so, in order.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
