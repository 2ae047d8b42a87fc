//! The engine's side of `tests/format/run`: writes logs, and tells what the engine reads in them.
//!
//! Takes orders on standard input, one a line, with tabs between their parts:
//!
//! | order | what it does |
//! | --- | --- |
//! | `write CASE DIR` | makes a log with the records of that case |
//! | `read DIR` | opens it read-only and prints all it holds as JSON lines |
//! | `append DIR` | opens it for writing, which repairs it, and appends to each partition |
//!
//! A line `{"type":"end"}` ends each answer.

mod json;
mod read;
mod write;

use edgelog_core::Result;
use std::io::{self, BufRead, Write};
use std::path::Path;

fn obey(order: &[&str], out: &mut dyn Write) -> Result<()> {
    match order {
        ["write", case, dir] => write::case(case, Path::new(dir)),
        ["read", dir] => read::log(Path::new(dir), out),
        ["append", dir] => write::append_to_all(Path::new(dir)),
        _ => {
            eprintln!("no such order: {order:?}");
            std::process::exit(2);
        }
    }
}

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let order: Vec<&str> = line.split('\t').collect();
        if let Err(error) = obey(&order, &mut out) {
            let kind = format!("{:?}", error.kind());
            let text = error.to_string();
            writeln!(
                out,
                "{}",
                json::Object::new("error")
                    .text("kind", &kind)
                    .text("text", &text)
            )?;
        }
        writeln!(out, "{}", json::Object::new("end"))?;
        out.flush()?;
    }
    Ok(())
}
