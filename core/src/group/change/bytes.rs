//! The bytes of changes, and of what a snapshot has in common with them.

use super::{Change, Range};
use crate::group::pending::{Held, Owner, Run};
use crate::varint::{self, Input};

const JOIN: u8 = 1;
const LEAVE: u8 = 2;
const SEEN: u8 = 3;
const DELIVER: u8 = 4;
const AGAIN: u8 = 5;
const ACKNOWLEDGE: u8 = 6;
const RELEASE: u8 = 7;
const EXPIRE: u8 = 8;
const GIVE_UP: u8 = 9;
const SKIP: u8 = 10;
const SEEK: u8 = 11;
const SESSION: u8 = 12;
const GRANT: u8 = 13;
const YIELD: u8 = 14;
const PROGRESS: u8 = 15;
const VOID: u8 = 16;
/// With [`DELIVER`], [`AGAIN`], [`RELEASE`] and [`YIELD`]: at most once, counts, does not count,
/// shuns.
const FLAG: u8 = 0x80;

fn kind(kind: u8, flag: bool) -> u8 {
    if flag {
        kind | FLAG
    } else {
        kind
    }
}

pub(in crate::group) fn put_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
}

pub(in crate::group) fn name(input: &mut Input<'_>) -> Option<String> {
    let length = usize::from(input.byte()?);
    let bytes = input.bytes(length)?;
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

pub(in crate::group) fn owner(input: &mut Input<'_>) -> Option<Owner> {
    Owner::try_from(input.number()?).ok()
}

fn partition(input: &mut Input<'_>) -> Option<u32> {
    u32::try_from(input.number()?).ok()
}

/// Ranges of any partitions: each as its partition, its first offset and its length.
fn put_ranges(out: &mut Vec<u8>, ranges: &[Range]) {
    varint::put(out, ranges.len() as u64);
    for range in ranges {
        varint::put(out, u64::from(range.partition));
        varint::put(out, range.first);
        varint::put(out, range.records());
    }
}

fn ranges(input: &mut Input<'_>) -> Option<Vec<Range>> {
    let count = input.length()?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let (partition, first) = (partition(input)?, input.number()?);
        let end = first.checked_add(input.number()?)?;
        ranges.push(Range {
            partition,
            first,
            end,
        });
    }
    Some(ranges)
}

/// Ranges of one partition that follow `from`: what is left out before each, and its length.
fn put_steps(out: &mut Vec<u8>, mut from: u64, ranges: &[Range]) {
    varint::put(out, ranges.len() as u64);
    for range in ranges {
        varint::put(out, range.first.saturating_sub(from));
        varint::put(out, range.records());
        from = range.end;
    }
}

fn steps(input: &mut Input<'_>, partition: u32, mut from: u64) -> Option<Vec<Range>> {
    let count = input.length()?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let first = from.checked_add(input.number()?)?;
        from = first.checked_add(input.number()?)?;
        ranges.push(Range {
            partition,
            first,
            end: from,
        });
    }
    Some(ranges)
}

impl Change {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Change::Join {
                consumer,
                at_ms,
                name,
            } => {
                out.push(JOIN);
                varint::put(out, u64::from(*consumer));
                varint::put(out, *at_ms);
                put_name(out, name);
            }
            Change::Leave { consumer } => {
                out.push(LEAVE);
                varint::put(out, u64::from(*consumer));
            }
            Change::Seen { consumer, at_ms } => {
                out.push(SEEN);
                varint::put(out, u64::from(*consumer));
                varint::put(out, *at_ms);
            }
            Change::Deliver {
                consumer,
                at_ms,
                at_most_once,
                partition,
                from,
                ranges,
            } => {
                out.push(kind(DELIVER, *at_most_once));
                varint::put(out, u64::from(*consumer));
                varint::put(out, *at_ms);
                varint::put(out, u64::from(*partition));
                varint::put(out, *from);
                put_steps(out, *from, ranges);
            }
            Change::Again {
                consumer,
                at_ms,
                counts,
                ranges,
            } => {
                out.push(kind(AGAIN, *counts));
                varint::put(out, u64::from(*consumer));
                varint::put(out, *at_ms);
                put_ranges(out, ranges);
            }
            Change::Release {
                due_ms,
                uncount,
                ranges,
            } => {
                out.push(kind(RELEASE, *uncount));
                varint::put(out, *due_ms);
                put_ranges(out, ranges);
            }
            Change::Acknowledge { ranges } => {
                out.push(ACKNOWLEDGE);
                put_ranges(out, ranges);
            }
            Change::Expire { ranges } => {
                out.push(EXPIRE);
                put_ranges(out, ranges);
            }
            Change::GiveUp { ranges } => {
                out.push(GIVE_UP);
                put_ranges(out, ranges);
            }
            Change::Skip { partition, to } => put_move(out, SKIP, *partition, *to),
            Change::Seek { partition, to } => put_move(out, SEEK, *partition, *to),
            Change::Session {
                consumer,
                at_ms,
                ttl_ms,
            } => put_numbers(out, SESSION, &[u64::from(*consumer), *at_ms, *ttl_ms]),
            Change::Grant {
                partition,
                consumer,
                epoch,
                at_ms,
            } => {
                let (partition, consumer) = (u64::from(*partition), u64::from(*consumer));
                put_numbers(out, GRANT, &[partition, consumer, *epoch, *at_ms]);
            }
            Change::Yield {
                partition,
                at_ms,
                shun,
            } => put_numbers(out, kind(YIELD, *shun), &[u64::from(*partition), *at_ms]),
            Change::Progress { partition, at_ms } => {
                put_numbers(out, PROGRESS, &[u64::from(*partition), *at_ms]);
            }
            Change::Void { at_ms } => put_numbers(out, VOID, &[*at_ms]),
        }
    }

    /// The next change of a frame; `None` at its end, or at bytes that make none.
    pub(crate) fn decode(input: &mut Input<'_>) -> Option<Change> {
        let byte = input.byte()?;
        let flag = byte & FLAG != 0;
        Some(match byte & !FLAG {
            JOIN => Change::Join {
                consumer: owner(input)?,
                at_ms: input.number()?,
                name: name(input)?,
            },
            LEAVE => Change::Leave {
                consumer: owner(input)?,
            },
            SEEN => Change::Seen {
                consumer: owner(input)?,
                at_ms: input.number()?,
            },
            DELIVER => {
                let (consumer, at_ms) = (owner(input)?, input.number()?);
                let (partition, from) = (partition(input)?, input.number()?);
                Change::Deliver {
                    consumer,
                    at_ms,
                    at_most_once: flag,
                    partition,
                    from,
                    ranges: steps(input, partition, from)?,
                }
            }
            AGAIN => Change::Again {
                consumer: owner(input)?,
                at_ms: input.number()?,
                counts: flag,
                ranges: ranges(input)?,
            },
            RELEASE => Change::Release {
                due_ms: input.number()?,
                uncount: flag,
                ranges: ranges(input)?,
            },
            ACKNOWLEDGE => Change::Acknowledge {
                ranges: ranges(input)?,
            },
            EXPIRE => Change::Expire {
                ranges: ranges(input)?,
            },
            GIVE_UP => Change::GiveUp {
                ranges: ranges(input)?,
            },
            SKIP => Change::Skip {
                partition: partition(input)?,
                to: input.number()?,
            },
            SEEK => Change::Seek {
                partition: partition(input)?,
                to: input.number()?,
            },
            SESSION => Change::Session {
                consumer: owner(input)?,
                at_ms: input.number()?,
                ttl_ms: input.number()?,
            },
            GRANT => Change::Grant {
                partition: partition(input)?,
                consumer: owner(input)?,
                epoch: input.number()?,
                at_ms: input.number()?,
            },
            YIELD => Change::Yield {
                partition: partition(input)?,
                at_ms: input.number()?,
                shun: flag,
            },
            PROGRESS => Change::Progress {
                partition: partition(input)?,
                at_ms: input.number()?,
            },
            VOID => Change::Void {
                at_ms: input.number()?,
            },
            _ => return None,
        })
    }
}

fn put_move(out: &mut Vec<u8>, kind: u8, partition: u32, to: u64) {
    put_numbers(out, kind, &[u64::from(partition), to]);
}

fn put_numbers(out: &mut Vec<u8>, kind: u8, numbers: &[u64]) {
    out.push(kind);
    numbers.iter().for_each(|number| varint::put(out, *number));
}

/// A run in a snapshot, behind the end of the one before it.
pub(in crate::group) fn put_run(out: &mut Vec<u8>, from: u64, run: &Run) {
    varint::put(out, run.first.saturating_sub(from));
    varint::put(out, u64::from(run.count));
    let (owner, due_ms) = match run.held {
        Held::By(owner) => (u64::from(owner), 0),
        Held::Released { due_ms } => (u64::from(Owner::MAX), due_ms),
    };
    varint::put(out, owner);
    if owner == u64::from(Owner::MAX) {
        varint::put(out, due_ms);
    }
    varint::put(out, run.first_ms / 1000);
    varint::put(out, run.last_ms);
    varint::put(out, u64::from(run.deliveries));
}

pub(in crate::group) fn run(input: &mut Input<'_>, partition: u32, from: u64) -> Option<Run> {
    let first = from.checked_add(input.number()?)?;
    let count = u32::try_from(input.number()?).ok().filter(|n| *n > 0)?;
    first.checked_add(u64::from(count))?;
    let owner = owner(input)?;
    let held = match owner {
        Owner::MAX => Held::Released {
            due_ms: input.number()?,
        },
        owner => Held::By(owner),
    };
    Some(Run {
        partition,
        first,
        count,
        held,
        first_ms: input.number()?.checked_mul(1000)?,
        last_ms: input.number()?,
        deliveries: u32::try_from(input.number()?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "test")]
    use super::*;

    fn range(partition: u32, first: u64, end: u64) -> Range {
        Range {
            partition,
            first,
            end,
        }
    }

    fn examples() -> Vec<Change> {
        let ranges = vec![range(3, 7, 8), range(0, u64::MAX - 9, u64::MAX)];
        vec![
            Change::Join {
                consumer: 4_095,
                at_ms: 1 << 47,
                name: "c".repeat(255),
            },
            Change::Leave { consumer: 0 },
            Change::Seen {
                consumer: 1,
                at_ms: 5,
            },
            Change::Deliver {
                consumer: 2,
                at_ms: 9,
                at_most_once: true,
                partition: 1_023,
                from: 100,
                ranges: vec![range(1_023, 100, 110), range(1_023, 120, 121)],
            },
            Change::Again {
                consumer: 2,
                at_ms: 9,
                counts: false,
                ranges: ranges.clone(),
            },
            Change::Acknowledge {
                ranges: ranges.clone(),
            },
            Change::Release {
                due_ms: 77,
                uncount: true,
                ranges: ranges.clone(),
            },
            Change::Expire {
                ranges: ranges.clone(),
            },
            Change::GiveUp { ranges },
            Change::Skip {
                partition: 1,
                to: 500,
            },
            Change::Seek {
                partition: 1,
                to: 0,
            },
            Change::Session {
                consumer: 3,
                at_ms: 8,
                ttl_ms: 10_000,
            },
            Change::Grant {
                partition: 1_023,
                consumer: 3,
                epoch: u64::MAX,
                at_ms: 8,
            },
            Change::Yield {
                partition: 7,
                at_ms: 8,
                shun: true,
            },
            Change::Progress {
                partition: 7,
                at_ms: 9,
            },
            Change::Void { at_ms: 10 },
        ]
    }

    #[test]
    fn changes_come_back() {
        let mut out = Vec::new();
        examples().iter().for_each(|change| change.encode(&mut out));
        let mut input = Input::new(&out);
        let decoded: Vec<Change> = std::iter::from_fn(|| Change::decode(&mut input)).collect();
        assert_eq!(decoded, examples());
        assert!(input.is_empty());
    }

    #[test]
    fn no_prefix_of_a_change_is_one() {
        for change in examples() {
            let mut out = Vec::new();
            change.encode(&mut out);
            for cut in 0..out.len() {
                assert_eq!(Change::decode(&mut Input::new(&out[..cut])), None);
            }
        }
    }

    #[test]
    fn a_batch_of_a_hundred_takes_few_bytes() {
        let mut out = Vec::new();
        let ranges = vec![range(0, 1 << 20, (1 << 20) + 100)];
        Change::Deliver {
            consumer: 1,
            at_ms: 86_400_000 * 365,
            at_most_once: false,
            partition: 0,
            from: 1 << 20,
            ranges: ranges.clone(),
        }
        .encode(&mut out);
        Change::Acknowledge { ranges }.encode(&mut out);
        assert!(out.len() < 30, "{} bytes", out.len());
    }
}
