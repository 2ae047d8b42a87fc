//! Reads `edgelog.h` and writes what Rust needs to call it.
//!
//! The header is the contract. It is read by a small parser of our own, which knows only the
//! regular C that the header is made of and refuses the rest, so nothing is left out in silence.

mod check;
mod declare;
mod header;
mod library;
mod tokens;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

fn run() -> Result<(), String> {
    for name in ["EDGELOG_INCLUDE_DIR", "EDGELOG_LIB_DIR", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let bundled = env::var_os("CARGO_FEATURE_BUNDLED").is_some();
    let linked = env::var_os("CARGO_FEATURE_LINKED").is_some();

    let include = match env::var_os("EDGELOG_INCLUDE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => variable("CARGO_MANIFEST_DIR")?.join("../../include"),
    };
    let path = include.join("edgelog.h");
    println!("cargo:rerun-if-changed={}", path.display());
    println!("cargo:rerun-if-changed=build");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let items = header::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;

    let out = variable("OUT_DIR")?;
    write(out.join("raw.rs"), &declare::declarations(&items)?)?;
    // Compared only where the engine is at hand; the crate itself refuses other combinations.
    if bundled && !linked {
        write(out.join("check.rs"), &check::checks(&items)?)?;
    }
    if linked && !bundled {
        library::find()?;
    }
    Ok(())
}

fn variable(name: &str) -> Result<PathBuf, String> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| format!("{name} is not set"))
}

fn write(path: PathBuf, text: &str) -> Result<(), String> {
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo:warning={error}");
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
