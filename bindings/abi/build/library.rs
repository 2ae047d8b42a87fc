//! Where the installed library is.

use std::env;
use std::process::Command;

/// Tells cargo to link with `libedgelog.so`.
pub fn find() -> Result<(), String> {
    if let Some(folder) = env::var_os("EDGELOG_LIB_DIR") {
        let folder = folder.to_str().ok_or("EDGELOG_LIB_DIR is not UTF-8")?;
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:library={folder}");
    } else {
        let answer = Command::new("pkg-config")
            .args(["--libs-only-L", "edgelog"])
            .output()
            .map_err(|error| format!("pkg-config: {error}; set EDGELOG_LIB_DIR instead"))?;
        if !answer.status.success() {
            let reason = String::from_utf8_lossy(&answer.stderr);
            return Err(format!("{}\nset EDGELOG_LIB_DIR instead", reason.trim()));
        }
        for word in String::from_utf8_lossy(&answer.stdout).split_whitespace() {
            if let Some(folder) = word.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
                println!("cargo:library={folder}");
            }
        }
    }
    println!("cargo:rustc-link-lib=dylib=edgelog");
    Ok(())
}
