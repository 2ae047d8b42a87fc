//! Appends that promises stand for.
//!
//! JavaScript may start many before the first is done. They cross together, are done in the
//! order in which they were called, and those that ask for `synced` share one sync.
//!
//! One queued append is a head of 16 bytes (kind: 0 a record, 1 an atomic batch; durability;
//! number of records; bytes of them) and then its records, see [`crate::packed`].

use edgelog_abi::{Durability, Position, Result, Topic};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::failure::{broken, message};
use crate::options::durability;
use crate::packed::{each_batch, one, Cursor};

const KIND_RECORD: u32 = 0;
const KIND_BATCH: u32 = 1;

/// What became of queued appends.
#[napi(object)]
pub struct Queued {
    /// For each append 16 bytes: 0, partition, offset; or the number, from 1, of its failure.
    pub outcomes: Buffer,
    /// The failures, see [`crate::failure`].
    pub failures: Vec<String>,
}

enum Outcome {
    Landed(Position),
    Failed(u32),
}

struct Appends<'a> {
    topic: &'a Topic,
    level_default: Durability,
    /// Outcome, and whether it still waits for the sync.
    outcomes: Vec<(Outcome, bool)>,
    failures: Vec<String>,
}

/// Does the appends of `packed`.
pub fn append(topic: &Topic, packed: &[u8]) -> Result<Queued> {
    let bytes = u32::try_from(packed.len()).map_err(|_| broken("a queue beyond 4 GiB"))?;
    let mut cursor = Cursor::new(packed, bytes)?;
    let mut appends = Appends {
        topic,
        level_default: topic.options()?.durability,
        outcomes: Vec::new(),
        failures: Vec::new(),
    };
    while !cursor.is_empty() {
        let kind = cursor.u32()?;
        let level = durability(cursor.u32()?)?;
        let count = cursor.u32()?;
        let bytes = cursor.u32()?;
        let mut records = Cursor::new(cursor.bytes(bytes)?, bytes)?;
        appends.one(kind, level, count, &mut records);
    }
    appends.sync();
    Ok(appends.queued())
}

impl Appends<'_> {
    fn one(&mut self, kind: u32, level: Durability, count: u32, records: &mut Cursor<'_>) {
        let level = if level == Durability::Default {
            self.level_default
        } else {
            level
        };
        let synced = level == Durability::Synced;
        // The sync comes once, behind all of them.
        let level = if synced { Durability::Written } else { level };
        let topic = self.topic;
        let result = match kind {
            KIND_RECORD => one(records, |record| topic.append(record, level)),
            KIND_BATCH => each_batch(records, count, |batch| topic.append_batch(batch, level)),
            _ => Err(broken("an append of an unknown kind")),
        };
        match result {
            Ok(position) => self.outcomes.push((Outcome::Landed(position), synced)),
            Err(error) => {
                let number = self.fail(&error);
                self.outcomes.push((Outcome::Failed(number), false));
            }
        }
    }

    fn sync(&mut self) {
        if !self.outcomes.iter().any(|(_, waits)| *waits) {
            return;
        }
        if let Err(error) = self.topic.sync() {
            let number = self.fail(&error);
            for (outcome, waits) in &mut self.outcomes {
                if *waits {
                    *outcome = Outcome::Failed(number);
                }
            }
        }
    }

    fn fail(&mut self, error: &edgelog_abi::Error) -> u32 {
        self.failures.push(message(error));
        u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }

    fn queued(self) -> Queued {
        let mut outcomes = Vec::new();
        for (outcome, _) in &self.outcomes {
            let (failure, partition, offset) = match outcome {
                Outcome::Landed(position) => (0, position.partition, position.offset),
                Outcome::Failed(number) => (*number, 0, 0),
            };
            outcomes.extend_from_slice(&failure.to_le_bytes());
            outcomes.extend_from_slice(&partition.to_le_bytes());
            outcomes.extend_from_slice(&offset.to_le_bytes());
        }
        Queued {
            outcomes: outcomes.into(),
            failures: self.failures,
        }
    }
}
