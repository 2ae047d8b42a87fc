//! Words of a C header: comments and preprocessor lines taken away.

use std::collections::BTreeSet;

/// What is left of a header: its words, and the macros it defines.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Names, numbers and single characters, with the line each stands on.
    pub words: Vec<(String, usize)>,
    /// `#define NAME value`, in the order of the header.
    pub macros: Vec<(String, String)>,
}

/// Splits `text` into words. Only `#ifndef` sections are read: in this header the others are for
/// C++, for compilers' attributes and for assertions, which have nothing to declare.
pub fn split(text: &str) -> Result<Tokens, String> {
    let mut tokens = Tokens::default();
    let mut empty = BTreeSet::new();
    let mut sections: Vec<bool> = Vec::new();
    let plain = without_comments(text)?.replace("\\\n", "  ");
    for (index, line) in plain.lines().enumerate() {
        let number = index.saturating_add(1);
        let line = line.trim();
        if let Some(directive) = line.strip_prefix('#') {
            let directive = directive.trim_start();
            let (verb, rest) = directive
                .split_once(char::is_whitespace)
                .unwrap_or((directive, ""));
            match verb {
                "ifndef" => sections.push(true),
                "if" | "ifdef" => sections.push(false),
                "else" | "elif" => {
                    let reading = sections
                        .pop()
                        .ok_or(format!("line {number}: #{verb} alone"))?;
                    sections.push(verb == "else" && !reading);
                }
                "endif" => {
                    sections
                        .pop()
                        .ok_or(format!("line {number}: #endif alone"))?;
                }
                "define" if sections.iter().all(|reading| *reading) => {
                    let rest = rest.trim();
                    let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                    if value.is_empty() {
                        empty.insert(name.to_owned());
                    } else if !name.contains('(') {
                        tokens
                            .macros
                            .push((name.to_owned(), value.trim().to_owned()));
                    }
                }
                "define" | "include" | "pragma" | "undef" | "error" | "warning" => {}
                other => return Err(format!("line {number}: #{other} is not understood")),
            }
        } else if sections.iter().all(|reading| *reading) {
            words_of(line, number, &empty, &mut tokens.words);
        }
    }
    if sections.is_empty() {
        Ok(tokens)
    } else {
        Err("an #if without its #endif".to_owned())
    }
}

/// Comments become blanks; the ends of lines stay, so that messages name the right line.
fn without_comments(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, comment) = rest.split_at(start);
        plain.push_str(before);
        let length = if comment.starts_with("/*") {
            let end = comment.find("*/").ok_or("a comment without an end")?;
            end.saturating_add(2)
        } else if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else {
            return Err("a slash outside of a comment".to_owned());
        };
        let (comment, after) = comment.split_at(length);
        plain.push(' ');
        plain.extend(comment.chars().filter(|letter| *letter == '\n'));
        rest = after;
    }
    plain.push_str(rest);
    Ok(plain)
}

fn words_of(line: &str, number: usize, empty: &BTreeSet<String>, words: &mut Vec<(String, usize)>) {
    let part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut word = String::from(letter);
        if part(&letter) {
            while let Some(next) = letters.next_if(part) {
                word.push(next);
            }
        }
        if !letter.is_ascii_whitespace() && !empty.contains(&word) {
            words.push((word, number));
        }
    }
}
