//! How the extension is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=EDGELOG_RPATH");
    if std::env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        // The bundled engine keeps its C names to itself: another copy in the same process must
        // neither be used in place of this one nor find this one's names.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs=ALL");
    }
    // Where a library that is not in one of the system's own folders is found at run time.
    if let Ok(folder) = std::env::var("EDGELOG_RPATH") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,{folder}");
    }
}
