//! The parser of the header, and what happens when header and engine disagree.
#![expect(clippy::unwrap_used, reason = "test")]

#[path = "../build/check.rs"]
mod check;
#[path = "../build/declare.rs"]
mod declare;
#[path = "../build/header.rs"]
mod header;
#[path = "../build/tokens.rs"]
mod tokens;

#[cfg(feature = "bundled")]
use std::path::{Path, PathBuf};
#[cfg(feature = "bundled")]
use std::process::{Command, Output};

const SMALL: &str = r#"
#ifndef SMALL_H
#define SMALL_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define NOT_READ 1
#else
#define OTHERWISE 2
#endif
#define ONE 1u
#define MINUS (-3)
#define WIDE 0x1FFFFFFFFULL
#define TEXT "text"
#define INIT {(uint32_t)sizeof(edgelog_pair), 0}
#define MARK
typedef int32_t edgelog_status;
/* A comment; with: (signs) */
typedef struct edgelog_log edgelog_log; // and one of the other kind
typedef union edgelog_ptr { const void *p; uint64_t bits; } edgelog_ptr;
typedef struct edgelog_pair {
  uint64_t a, b;
  char word[16];
  char text[ONE];
  union edgelog_ptr ptr;
} edgelog_pair;
static inline int helper(int x) { if (x) { return x + 1; } return 0; }
MARK edgelog_status edgelog_do(const struct edgelog_log *log, edgelog_pair **pair,
                               const char *const *names);
uint32_t edgelog_none(void);
#ifdef __cplusplus
}
#endif
#endif
"#;

#[test]
fn every_kind_of_declaration_is_understood() {
    let text = declare::declarations(&header::parse(SMALL).unwrap()).unwrap();
    for wanted in [
        "pub const OTHERWISE: u32 = 2;",
        "pub const ONE: u32 = 1;",
        "pub const MINUS: i32 = -3;",
        "pub const WIDE: u64 = 8589934591;",
        "pub const TEXT: &str = \"text\";",
        "pub type edgelog_status = i32;",
        "pub struct edgelog_log {",
        "pub union edgelog_ptr {\n    pub p: *const core::ffi::c_void,\n    pub bits: u64,\n}",
        "    pub a: u64,\n    pub b: u64,\n    pub word: [core::ffi::c_char; 16],\n",
        "    pub text: [core::ffi::c_char; ONE as usize],\n    pub ptr: edgelog_ptr,\n",
        "pub fn edgelog_do(_: *const edgelog_log, _: *mut *mut edgelog_pair, \
         _: *const *const core::ffi::c_char) -> edgelog_status;",
        "pub fn edgelog_none() -> u32;",
    ] {
        assert!(text.contains(wanted), "{wanted}\nis not in\n{text}");
    }
    for unwanted in ["NOT_READ", "INIT", "helper", "MARK"] {
        assert!(!text.contains(unwanted), "{unwanted} is in\n{text}");
    }
}

#[test]
fn everything_is_compared() {
    let text = check::checks(&header::parse(SMALL).unwrap()).unwrap();
    for wanted in [
        "engine::MINUS as i128 == raw::MINUS as i128",
        "size_of::<raw::edgelog_pair>() == size_of::<engine::edgelog_pair>()",
        "offset_of!(raw::edgelog_ptr, bits) == offset_of!(engine::edgelog_ptr, bits)",
        "const _: fn(&engine::edgelog_pair) -> &u64 = |it| &it.b;",
        "-> engine::edgelog_status = engine::edgelog_do;",
    ] {
        assert!(text.contains(wanted), "{wanted}\nis not in\n{text}");
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    for (text, wanted) in [
        ("long edgelog_f(void);", "long has no fixed width"),
        ("edgelog_status edgelog_f(int x, ...);", "a name expected"),
        ("enum edgelog_e { A };", "expected"),
        ("typedef struct a b;", "another name"),
        ("#define X (1 << 3)\n", "X"),
        ("#ifndef A\n", "without its #endif"),
        ("#endif\n", "alone"),
        ("/* for ever", "without an end"),
        ("#assert x\n", "not understood"),
    ] {
        let answer = header::parse(text).and_then(|items| declare::declarations(&items));
        let error = answer.err().unwrap_or_default();
        assert!(error.contains(wanted), "{text:?}: {error:?}");
    }
}

/// Compiles the crate against another header.
#[cfg(feature = "bundled")]
fn compile(name: &str, from: &str, to: &str) -> Output {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/edgelog.h");
    let text = std::fs::read_to_string(own).unwrap();
    assert!(text.contains(from), "{from:?} is not in the header");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.join(format!("header-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("edgelog.h"), text.replacen(from, to, 1)).unwrap();
    Command::new(env!("CARGO"))
        .args(["check", "--locked", "--quiet", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", target.join("header"))
        .env("EDGELOG_INCLUDE_DIR", &folder)
        .output()
        .unwrap()
}

#[test]
#[cfg(feature = "bundled")]
fn a_header_that_disagrees_does_not_compile() {
    let same = compile("same", "EDGELOG_OK", "EDGELOG_OK");
    assert!(
        same.status.success(),
        "{}",
        String::from_utf8_lossy(&same.stderr)
    );
    for (name, from, to, wanted) in [
        (
            "value",
            "#define EDGELOG_INVALID (-1)",
            "#define EDGELOG_INVALID (-2)",
            "EDGELOG_INVALID",
        ),
        (
            "type",
            "uint32_t linger_ms;",
            "int32_t linger_ms;",
            "linger_ms",
        ),
        (
            "order",
            "uint32_t mode;",
            "uint32_t maintenance_;\n  uint32_t mode;",
            "edgelog_options",
        ),
        (
            "function",
            "edgelog_status edgelog_close(edgelog_log *log,",
            "edgelog_status edgelog_close(edgelog_log *log, uint32_t how,",
            "edgelog_close",
        ),
        (
            "missing",
            "uint32_t edgelog_version(void);",
            "uint32_t edgelog_versio(void);",
            "versio",
        ),
    ] {
        let output = compile(name, from, to);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} compiled");
        assert!(text.contains(wanted), "{name}: {text}");
    }
}
