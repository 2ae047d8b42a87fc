//! A Redis server of its own, and what it is asked.

use std::collections::BTreeMap;
use std::fs::remove_dir_all;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Number(i64),
    Text(String),
    List(Vec<Reply>),
    Nothing,
}

impl Reply {
    pub fn number(&self) -> u64 {
        match self {
            Reply::Number(number) => *number as u64,
            other => panic!("{other:?} is no number"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Reply::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    /// Nothing is a list without anything.
    pub fn list(&self) -> &[Reply] {
        match self {
            Reply::List(list) => list,
            Reply::Nothing => &[],
            other => panic!("{other:?} is no list"),
        }
    }

    /// A list of names and values in turn.
    pub fn map(&self) -> BTreeMap<&str, &Reply> {
        let pairs = self.list().chunks(2);
        pairs.map(|pair| (pair[0].text(), &pair[1])).collect()
    }
}

/// It ends with the value.
pub struct Redis {
    server: Child,
    directory: PathBuf,
    line: BufReader<UnixStream>,
}

impl Redis {
    pub fn start() -> Redis {
        let directory = std::env::temp_dir().join(format!("edgelog-redis-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let socket = directory.join("socket");
        let server = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--unixsocket", socket.to_str().unwrap()])
            .args(["--dir", directory.to_str().unwrap()])
            .stdout(Stdio::null())
            .spawn();
        let server = server.unwrap_or_else(|error| panic!("redis-server: {error}"));
        let connected = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            UnixStream::connect(&socket).ok()
        });
        Redis {
            server,
            directory,
            line: BufReader::new(connected.unwrap()),
        }
    }

    /// What it answers to a command; an error ends the test.
    pub fn ask(&mut self, words: &[&str]) -> Reply {
        let mut out = format!("*{}\r\n", words.len());
        for word in words {
            out += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.line.get_mut().write_all(out.as_bytes()).unwrap();
        match self.reply() {
            Ok(reply) => reply,
            Err(error) => panic!("{}: {error}", words.join(" ")),
        }
    }

    fn reply(&mut self) -> Result<Reply, String> {
        let mut line = String::new();
        self.line.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        Ok(match kind {
            "+" => Reply::Text(rest.to_owned()),
            "-" => return Err(rest.to_owned()),
            ":" => Reply::Number(rest.parse().unwrap()),
            "$" | "*" if rest == "-1" => Reply::Nothing,
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.line.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8(bytes).unwrap())
            }
            "*" => {
                let count: usize = rest.parse().unwrap();
                Reply::List((0..count).map(|_| self.reply()).collect::<Result<_, _>>()?)
            }
            other => panic!("an answer that begins with {other}"),
        })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The one that was started here, by its number.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = remove_dir_all(&self.directory);
    }
}
