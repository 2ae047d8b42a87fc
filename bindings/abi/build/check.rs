//! Comparisons of the header with the engine, made by the compiler.
//!
//! Every constant, every structure's size and fields, and every function's type. A header that
//! tells another story than the engine does not compile.

use crate::declare::rust_type;
use crate::header::{Item, Type, Value};

const ENGINE: &str = "engine::";

/// The text of `check.rs`.
pub fn checks(items: &[Item]) -> Result<String, String> {
    let mut text = String::new();
    for item in items {
        match item {
            Item::Constant {
                name,
                value: Value::Number(_),
            } => text.push_str(&format!(
                "const _: () = assert!({ENGINE}{name} as i128 == raw::{name} as i128);\n"
            )),
            Item::Constant { .. } | Item::Opaque { .. } => {}
            Item::Alias { name, kind } => text.push_str(&format!(
                "const _: fn({ENGINE}{name}) -> {} = |it| it;\n",
                rust_type(kind, ENGINE)?
            )),
            Item::Fields {
                name,
                union,
                fields,
            } => text.push_str(&layout(name, *union, fields)?),
            Item::Function {
                name,
                parameters,
                result,
            } => {
                let parameters = parameters
                    .iter()
                    .map(|kind| rust_type(kind, ENGINE))
                    .collect::<Result<Vec<_>, _>>()?
                    .join(", ");
                let result = rust_type(result, ENGINE)?;
                text.push_str(&format!(
                    "const _: unsafe extern \"C\" fn({parameters}) -> {result} = {ENGINE}{name};\n"
                ));
            }
        }
    }
    Ok(text)
}

fn layout(name: &str, union: bool, fields: &[(String, Type)]) -> Result<String, String> {
    let mut text = format!(
        "const _: () = assert!(size_of::<raw::{name}>() == size_of::<{ENGINE}{name}>());\n\
         const _: () = assert!(align_of::<raw::{name}>() == align_of::<{ENGINE}{name}>());\n"
    );
    for (field, kind) in fields {
        text.push_str(&format!(
            "const _: () = assert!(offset_of!(raw::{name}, {field}) == \
             offset_of!({ENGINE}{name}, {field}));\n"
        ));
        // Reading a union's field is unsafe; its size and offset have to do.
        if !union {
            let kind = rust_type(kind, ENGINE)?;
            text.push_str(&format!(
                "const _: fn(&{ENGINE}{name}) -> &{kind} = |it| &it.{field};\n"
            ));
        }
    }
    Ok(text)
}
