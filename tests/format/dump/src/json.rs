//! As much JSON as the answers need.

use std::fmt::{self, Write};

/// One object on one line.
pub struct Object(String);

impl Object {
    pub fn new(kind: &str) -> Object {
        Object(format!("{{\"type\":{}", quoted(kind)))
    }

    pub fn raw(mut self, name: &str, value: impl fmt::Display) -> Object {
        self.0 += &format!(",{}:{value}", quoted(name));
        self
    }

    pub fn text(self, name: &str, value: &str) -> Object {
        self.raw(name, quoted(value))
    }

    pub fn bytes(self, name: &str, value: Option<&[u8]>) -> Object {
        self.raw(name, value.map_or("null".to_string(), hex))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}}}", self.0)
    }
}

/// Hexadecimal digits in quotes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let mut text = String::with_capacity(bytes.len() * 2 + 2);
    text.push('"');
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text.push('"');
    text
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if letter.is_control() || letter == '"' || letter == '\\' {
            let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
        } else {
            quoted.push(letter);
        }
    }
    quoted.push('"');
    quoted
}
