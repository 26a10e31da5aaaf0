//! Links with the runtime library in the folder TILEWRIGHT_RUNTIME, and has programs look for it there.

use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-env-changed=TILEWRIGHT_RUNTIME");
    let folder = env::var("TILEWRIGHT_RUNTIME")
        .expect("TILEWRIGHT_RUNTIME is not set: the folder of libtilewright_runtime");
    let folder = fs::canonicalize(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=tilewright_runtime");
    if env::var_os("CARGO_CFG_UNIX").is_some() {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", folder.display());
    }
}
