//! Rust declarations of what the header declares.

use crate::header::{Item, Type, Value};

/// The text of `raw.rs`.
pub fn declarations(items: &[Item]) -> Result<String, String> {
    let mut text = String::new();
    let mut functions = String::new();
    for item in items {
        match item {
            Item::Constant {
                name,
                value: Value::Text(value),
            } => {
                text.push_str(&format!("pub const {name}: &str = {value:?};\n"));
            }
            Item::Constant {
                name,
                value: Value::Number(value),
            } => {
                let kind = number_type(*value)?;
                text.push_str(&format!("pub const {name}: {kind} = {value};\n"));
            }
            Item::Alias { name, kind } => {
                text.push_str(&format!("pub type {name} = {};\n", rust_type(kind, "")?));
            }
            Item::Opaque { name } => {
                text.push_str(&format!(
                    "#[repr(C)]\npub struct {name} {{\n    _own: [u8; 0],\n}}\n"
                ));
            }
            Item::Fields {
                name,
                union,
                fields,
            } => {
                let word = if *union { "union" } else { "struct" };
                text.push_str(&format!(
                    "#[repr(C)]\n#[derive(Clone, Copy)]\npub {word} {name} {{\n"
                ));
                for (field, kind) in fields {
                    text.push_str(&format!("    pub {field}: {},\n", rust_type(kind, "")?));
                }
                text.push_str("}\n");
            }
            Item::Function {
                name,
                parameters,
                result,
            } => {
                let parameters = parameters
                    .iter()
                    .map(|kind| Ok(format!("_: {}", rust_type(kind, "")?)))
                    .collect::<Result<Vec<_>, String>>()?
                    .join(", ");
                let result = rust_type(result, "")?;
                functions.push_str(&format!("    pub fn {name}({parameters}) -> {result};\n"));
            }
        }
    }
    text.push_str(&format!("extern \"C\" {{\n{functions}}}\n"));
    Ok(text)
}

fn number_type(value: i128) -> Result<&'static str, String> {
    if u32::try_from(value).is_ok() {
        Ok("u32")
    } else if i32::try_from(value).is_ok() {
        Ok("i32")
    } else if u64::try_from(value).is_ok() {
        Ok("u64")
    } else {
        Err(format!("{value} is out of range"))
    }
}

/// `kind` in Rust, where the header's own types are in `module` (with its colons). Its constants
/// are always those that `declarations` wrote.
pub fn rust_type(kind: &Type, module: &str) -> Result<String, String> {
    let mut text = match kind.base.as_str() {
        "int8_t" => "i8".to_owned(),
        "uint8_t" => "u8".to_owned(),
        "int16_t" => "i16".to_owned(),
        "uint16_t" => "u16".to_owned(),
        "int32_t" => "i32".to_owned(),
        "uint32_t" => "u32".to_owned(),
        "int64_t" => "i64".to_owned(),
        "uint64_t" => "u64".to_owned(),
        "char" => "core::ffi::c_char".to_owned(),
        "void" if !kind.pointers.is_empty() => "core::ffi::c_void".to_owned(),
        own if own.starts_with("edgelog_") => format!("{module}{own}"),
        other => return Err(format!("the type {other} has no fixed width")),
    };
    for constant in &kind.pointers {
        text = format!("*{} {text}", if *constant { "const" } else { "mut" });
    }
    if let Some(count) = &kind.array {
        let number = count.starts_with(|letter: char| letter.is_ascii_digit());
        let raw = if module.is_empty() { "" } else { "raw::" };
        let count = if number {
            count.clone()
        } else {
            format!("{raw}{count} as usize")
        };
        text = format!("[{text}; {count}]");
    }
    Ok(text)
}
