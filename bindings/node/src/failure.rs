//! Errors on their way to JavaScript.
//!
//! Node-API has room for a code and a message, an edgelog error has more fields. So the message
//! carries all of them, a line each, and `lib/error.cjs` makes an `EdgelogError` of it.

use edgelog_abi::{Error, Status};

/// The first line, by which JavaScript tells these from errors of Node-API itself.
const MARK: &str = "edgelog";

/// The message that carries `error`.
pub fn message(error: &Error) -> String {
    let status = error.status();
    let mut lines = vec![
        MARK.to_owned(),
        status.name().unwrap_or("INTERNAL").to_owned(),
        status.code().to_string(),
    ];
    lines.push(number(error.os_error()));
    lines.push(number(error.partition()));
    lines.push(number(error.segment()));
    lines.push(number(error.position()));
    lines.push(number(error.offset()));
    lines.push(number(error.offset_end()));
    lines.push(number(error.process_id()));
    // Last, because it alone may hold line ends.
    lines.push(error.text().to_owned());
    lines.join("\n")
}

/// `error` as napi throws it.
pub fn thrown(error: Error) -> napi::Error {
    napi::Error::from_reason(message(&error))
}

/// A fault between the two halves of this package.
pub fn broken(text: &str) -> Error {
    Error::new(Status::INTERNAL, text)
}

fn number<T: ToString>(field: Option<T>) -> String {
    field.map(|value| value.to_string()).unwrap_or_default()
}
