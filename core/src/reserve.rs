//! Room that is kept for what must work on a full medium: acknowledgements, which free room
//! themselves in the end. It is a file of bytes that do not compress. Whoever meets a full medium
//! and may spend it unlinks it, which works where nothing else does, and tries again; records are
//! not appended then until it could be made again.

use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::limits::{PAGE_BYTES, RESERVE_BYTES, RESERVE_LOOK_MS};
use crate::names;
use crate::options::Mode;
use crate::segment::window::write_full;
use crate::sys::mutex::Mutex;
use crate::sys::{OpenHow, Sys};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// So small a part of the medium is kept, at most.
const RESERVE_PART: u64 = 8;
/// So small a part of what is kept one file may take before it is begun anew.
const SHARE_PART: u64 = 4;

/// Less than this is not worth beginning a file anew.
const SHARE_BYTES_MIN: u64 = 2 * PAGE_BYTES;

/// What a log knows of its reserve.
#[derive(Default)]
pub(crate) struct Reserve {
    /// It should be there, and there may be no room for it: no records until it is.
    is_missing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The log has groups.
    is_wanted: bool,
    /// How large it is or was; 0: it never was.
    size_bytes: u64,
    /// Bytes of it that count as used.
    counted_bytes: u64,
    /// When it was last looked at, in milliseconds since boot.
    looked_ms: u64,
}

impl Reserve {
    /// Whether records must wait.
    #[inline]
    pub(crate) fn is_missing(&self) -> bool {
        self.is_missing.load(Ordering::Relaxed)
    }

    /// While it is spent: what one file of a group may take of the room that it left.
    pub(crate) fn share_bytes(&self) -> Option<u64> {
        self.is_missing().then(|| {
            let share_bytes = self.state.lock().size_bytes / SHARE_PART;
            share_bytes.max(SHARE_BYTES_MIN)
        })
    }

    /// Counts what is there, when the log is opened.
    pub(crate) fn count(context: &Context) {
        context.reserve.state.lock().look(context);
    }

    /// Makes sure that there is a reserve, where the log's limit has room for it: of a small
    /// medium no more than its part. Answers false when the medium has no room for it.
    pub(crate) fn keep(context: &Context) -> bool {
        if context.mode == Mode::ReadOnly {
            return true;
        }
        let reserve = &context.reserve;
        let mut state = reserve.state.lock();
        state.is_wanted = true;
        state.looked_ms = context.sys.boot_ms();
        let mut has_room = true;
        if !state.look(context) {
            let was_spent = state.size_bytes != 0;
            let size_bytes = match was_spent {
                true => state.size_bytes,
                false => part_of(context.sys.room().bytes),
            };
            if size_bytes != 0 && !context.is_over(size_bytes) {
                let made = make_with_room(context, size_bytes, was_spent);
                // Another process may have been faster, and have taken our temporary name with it.
                let is_there = state.look(context);
                has_room = is_there || !made.is_err_and(lacks_room);
            }
        }
        reserve.is_missing.store(!has_room, Ordering::Relaxed);
        has_room
    }

    /// Before records are written, when it was missing: they must not take the room that is left.
    #[cold]
    pub(crate) fn restore(context: &Context) -> Result<()> {
        if Reserve::keep(context) {
            return Ok(());
        }
        let text = "the room that is left is kept for acknowledgements";
        Err(Error::io(text, io::Error::from_raw_os_error(libc::ENOSPC)))
    }

    /// Records met a full medium. Another process may spend the reserve at any time, so it is
    /// looked for before the next write.
    #[cold]
    pub(crate) fn note_full(context: &Context) {
        let reserve = &context.reserve;
        if reserve.state.lock().look(context) {
            reserve.is_missing.store(true, Ordering::Relaxed);
        }
    }

    /// Gives the room up; answers whether there was any.
    #[cold]
    pub(crate) fn spend(context: &Context) -> bool {
        let reserve = &context.reserve;
        let mut state = reserve.state.lock();
        state.look(context);
        let spent = context.sys.unlink(names::RESERVE).is_ok();
        state.look(context);
        if spent {
            state.is_wanted = true;
            reserve.is_missing.store(true, Ordering::Relaxed);
            context.signal.due_in(RESERVE_LOOK_MS);
        }
        spent
    }

    /// Does something that may take the reserve: once more when the medium was full.
    pub(crate) fn retry<T>(context: &Context, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        match attempt() {
            Err(e) if e.kind() == Kind::NoSpace && Reserve::spend(context) => attempt(),
            other => other,
        }
    }

    /// Tries to have it again, now and then; answers when the next time is, in milliseconds from
    /// now.
    pub(crate) fn maintain(context: &Context) -> Option<u64> {
        let reserve = &context.reserve;
        let since_ms = {
            let state = reserve.state.lock();
            if !state.is_wanted {
                return None;
            }
            context.sys.boot_ms().saturating_sub(state.looked_ms)
        };
        if since_ms >= RESERVE_LOOK_MS {
            Reserve::keep(context);
        }
        let left_ms = RESERVE_LOOK_MS.saturating_sub(since_ms);
        // Without anything to repair nobody is woken for it.
        let next_ms = if left_ms == 0 {
            RESERVE_LOOK_MS
        } else {
            left_ms
        };
        reserve.is_missing().then_some(next_ms)
    }
}

impl State {
    /// Whether it is there. What is there counts from here on.
    fn look(&mut self, context: &Context) -> bool {
        let bytes = context.sys.size_bytes(names::RESERVE).unwrap_or(0);
        context.subtract_used(self.counted_bytes);
        context.add_used(bytes);
        self.counted_bytes = bytes;
        // It gets its name when it is whole.
        let is_whole = bytes >= PAGE_BYTES;
        if is_whole {
            self.size_bytes = bytes;
        }
        is_whole
    }
}

/// How much of a medium of so many bytes is kept: a part of it, in whole pages.
fn part_of(bytes: u64) -> u64 {
    let part = (bytes / RESERVE_PART).min(RESERVE_BYTES);
    part.saturating_sub(part % PAGE_BYTES)
}

/// Makes it if the medium seems to have room: trying costs flash. Once spent it takes a little more
/// than itself, else every bit of room that comes back would be written full with it.
fn make_with_room(context: &Context, size_bytes: u64, was_spent: bool) -> io::Result<()> {
    let more = if was_spent { size_bytes / 4 } else { 0 };
    if context.sys.room().free_bytes < size_bytes.saturating_add(more) {
        return Err(io::Error::from_raw_os_error(libc::ENOSPC));
    }
    make(&*context.sys, size_bytes)
}

/// Writes it under its temporary name. On the medium, too: else a power cut may leave a hole.
fn make(sys: &dyn Sys, size_bytes: u64) -> io::Result<()> {
    let temporary = names::temporary(names::RESERVE);
    match sys.unlink(&temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let fill = || {
        let file = sys.open(&temporary, OpenHow::CreateNew)?;
        let (mut noise, mut position) = (NOISE_SEED, 0_u64);
        while position < size_bytes {
            let page = page_of_noise(&mut noise);
            write_full(&*file, &page, position)?;
            position = position.saturating_add(page.len() as u64);
        }
        file.sync_data()?;
        sys.rename(&temporary, names::RESERVE)
    };
    let made = fill();
    if made.is_err() {
        let _ = sys.unlink(&temporary);
    }
    made
}

const NOISE_SEED: u32 = 0x9e37_79b9;

/// Bytes that no file system makes smaller.
fn page_of_noise(noise: &mut u32) -> Vec<u8> {
    let mut page = Vec::with_capacity(PAGE_BYTES as usize);
    while page.len() < PAGE_BYTES as usize {
        *noise ^= *noise << 13;
        *noise ^= *noise >> 17;
        *noise ^= *noise << 5;
        page.extend_from_slice(&noise.to_le_bytes());
    }
    page
}

/// Whether it failed because the medium is full, and not because it is broken.
fn lacks_room(e: io::Error) -> bool {
    Error::io("", e).kind() == Kind::NoSpace
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "test"
    )]
    use super::*;
    use crate::log::Log;
    use crate::options::{Create, Durability, LogOptions, Maintenance, TopicOptions};
    use crate::record::{Position, Record};
    use crate::sys::faulty::{FaultySys, FullRules};
    use crate::topic::Topic;
    use std::sync::Arc;

    const CAPACITY_BYTES: u64 = 2 * 1024 * 1024;

    fn options() -> LogOptions {
        LogOptions {
            maintenance: Maintenance::Manual,
            ..LogOptions::default()
        }
    }

    fn open(sys: &FaultySys, options: &LogOptions) -> (Log, Topic) {
        let log = Log::open_on(Arc::new(sys.clone()), options).unwrap();
        let small = TopicOptions {
            segment_bytes: 16 * 1024,
            ..TopicOptions::default()
        };
        let topic = log.topic("t", Create::IfMissing, &small).unwrap();
        (log, topic)
    }

    fn append(topic: &Topic, durability: Durability) -> Result<Position> {
        let record = Record {
            value: Some(b"value"),
            ..Record::default()
        };
        topic.append(&record, Some(durability))
    }

    fn fill(sys: &FaultySys) {
        let used = sys.image().bytes_total();
        sys.write_file("filler", &vec![7; (CAPACITY_BYTES - used) as usize]);
    }

    fn reserve_bytes(sys: &FaultySys) -> u64 {
        let bytes = sys.read_file(names::RESERVE);
        bytes.map_or(0, |bytes| bytes.len() as u64)
    }

    #[test]
    fn it_is_made_once_and_counts() {
        let sys = FaultySys::new();
        let (log, topic) = open(&sys, &options());
        let before = log.stats().unwrap().bytes;
        assert!(append(&topic, Durability::Written).is_ok());
        assert_eq!(reserve_bytes(&sys), 0, "without groups there is none");
        let own = log.stats().unwrap().bytes - before;
        for _ in 0..2 {
            assert!(Reserve::keep(log.inner.context()));
            assert_eq!(reserve_bytes(&sys), RESERVE_BYTES);
            let bytes = log.stats().unwrap().bytes;
            assert_eq!(bytes, before + own + RESERVE_BYTES);
        }
        let stats = log.stats().unwrap();
        log.close().unwrap();
        let (log, _) = open(&sys, &options());
        let again = log.stats().unwrap();
        // A checkpoint came with the close.
        assert!(again.bytes >= stats.bytes && again.bytes < stats.bytes + 512);
        assert_eq!(again.foreign_files, 0);
        assert!(Reserve::spend(log.inner.context()));
        assert!(!Reserve::spend(log.inner.context()));
        assert_eq!(log.stats().unwrap().bytes, again.bytes - RESERVE_BYTES);
    }

    #[test]
    fn its_bytes_do_not_compress() {
        let sys = FaultySys::new();
        let (log, _) = open(&sys, &options());
        Reserve::keep(log.inner.context());
        let bytes = sys.read_file(names::RESERVE).unwrap();
        let mut counts = [0_u32; 256];
        bytes
            .iter()
            .for_each(|byte| counts[usize::from(*byte)] += 1);
        let mean = RESERVE_BYTES as u32 / 256;
        let is_even = |count: &u32| (mean * 3 / 4..mean * 5 / 4).contains(count);
        assert!(counts.iter().all(is_even), "{counts:?}");
        let mut pages: Vec<&[u8]> = bytes.chunks(64).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len() as u64, RESERVE_BYTES / 64, "nothing repeats");
    }

    #[test]
    fn a_limit_without_room_for_it_has_none_and_appends_go_on() {
        let sys = FaultySys::new();
        let limited = LogOptions {
            log_bytes_max: Some(RESERVE_BYTES),
            ..options()
        };
        let (log, topic) = open(&sys, &limited);
        assert!(Reserve::keep(log.inner.context()));
        assert_eq!(reserve_bytes(&sys), 0);
        assert!(append(&topic, Durability::Written).is_ok());
    }

    #[test]
    fn what_is_left_of_it_is_replaced() {
        let sys = FaultySys::new();
        sys.write_file(names::RESERVE, b"short");
        let (log, _) = open(&sys, &options());
        assert!(Reserve::keep(log.inner.context()));
        assert_eq!(reserve_bytes(&sys), RESERVE_BYTES);
    }

    #[test]
    fn records_wait_until_it_is_back() {
        for rules in [FullRules::default(), FullRules::jffs2()] {
            for durability in [Durability::Written, Durability::Synced] {
                let sys = FaultySys::new();
                sys.set_capacity_bytes(Some(CAPACITY_BYTES));
                sys.set_full_rules(rules);
                let (log, topic) = open(&sys, &options());
                assert!(append(&topic, durability).is_ok());
                let context = log.inner.context();
                assert!(Reserve::keep(context));
                fill(&sys);
                let full = append(&topic, durability).unwrap_err();
                assert_eq!(full.kind(), Kind::NoSpace);
                assert_eq!(reserve_bytes(&sys), RESERVE_BYTES, "not for records");
                // As an acknowledgement does.
                assert!(Reserve::spend(context));
                sys.write_file("acknowledged", &[1; 50]);
                let writes = sys.counters().bytes_written;
                for _ in 0..3 {
                    let full = append(&topic, durability).unwrap_err();
                    assert_eq!(full.kind(), Kind::NoSpace, "{rules:?}");
                    assert_eq!(full.os_error(), Some(libc::ENOSPC));
                }
                assert_eq!(sys.counters().bytes_written, writes, "trying costs nothing");
                assert_eq!(topic.partition_stats(0).unwrap().next_offset, 1);
                assert!(topic.sync().is_ok() && topic.flush().is_ok());
                log.maintain(10).unwrap();
                sys.advance_ms(RESERVE_LOOK_MS);
                log.maintain(10).unwrap();
                assert_eq!(
                    append(&topic, durability).unwrap_err().kind(),
                    Kind::NoSpace
                );
                // Without it a log that is opened knows no better until it looks.
                let (other, others) = open(&sys, &options());
                assert!(!Reserve::keep(other.inner.context()));
                assert_eq!(
                    append(&others, durability).unwrap_err().kind(),
                    Kind::NoSpace
                );
                sys.remove_file("filler");
                assert_eq!(append(&topic, durability).unwrap().offset, 1);
                assert_eq!(reserve_bytes(&sys), RESERVE_BYTES);
                assert_eq!(append(&others, durability).unwrap().offset, 2);
            }
        }
    }

    #[test]
    fn another_process_does_not_take_what_one_gave_up() {
        for rules in [FullRules::default(), FullRules::jffs2()] {
            let sys = FaultySys::new();
            sys.set_capacity_bytes(Some(CAPACITY_BYTES));
            sys.set_full_rules(rules);
            let (log, topic) = open(&sys, &options());
            append(&topic, Durability::Written).unwrap();
            let (_other, others) = open(&sys, &options());
            assert!(Reserve::keep(log.inner.context()));
            fill(&sys);
            for _ in 0..2 {
                let full = append(&others, Durability::Written).unwrap_err();
                assert_eq!(full.kind(), Kind::NoSpace);
            }
            assert!(Reserve::spend(log.inner.context()));
            sys.write_file("acknowledged", &[1; 50]);
            let writes = sys.counters().bytes_written;
            let full = append(&others, Durability::Written).unwrap_err();
            assert_eq!(full.kind(), Kind::NoSpace);
            assert_eq!(sys.counters().bytes_written, writes, "{rules:?}");
            sys.remove_file("filler");
            assert_eq!(append(&others, Durability::Written).unwrap().offset, 1);
        }
    }

    #[test]
    fn maintenance_makes_it_again() {
        let sys = FaultySys::new();
        sys.set_capacity_bytes(Some(CAPACITY_BYTES));
        let (log, _) = open(&sys, &options());
        let context = log.inner.context();
        assert_eq!(Reserve::maintain(context), None);
        assert!(Reserve::keep(context));
        assert_eq!(Reserve::maintain(context), None, "nothing to do");
        fill(&sys);
        assert!(Reserve::spend(context));
        assert!(Reserve::maintain(context).is_some_and(|ms| ms <= RESERVE_LOOK_MS));
        sys.remove_file("filler");
        log.maintain(10).unwrap();
        assert_eq!(reserve_bytes(&sys), 0, "not yet");
        sys.advance_ms(RESERVE_LOOK_MS);
        log.maintain(10).unwrap();
        assert_eq!(reserve_bytes(&sys), RESERVE_BYTES);
        assert_eq!(Reserve::maintain(context), None);
        // By somebody else.
        sys.remove_file(names::RESERVE);
        sys.advance_ms(RESERVE_LOOK_MS);
        log.maintain(10).unwrap();
        assert_eq!(reserve_bytes(&sys), RESERVE_BYTES);
    }

    #[test]
    fn records_that_are_buffered_at_the_close_get_out() {
        let sys = FaultySys::new();
        sys.set_capacity_bytes(Some(CAPACITY_BYTES));
        let exclusive = LogOptions {
            mode: Mode::Exclusive,
            ..options()
        };
        let (log, topic) = open(&sys, &exclusive);
        assert!(append(&topic, Durability::Written).is_ok());
        assert!(Reserve::keep(log.inner.context()));
        assert!(append(&topic, Durability::Buffered).is_ok());
        fill(&sys);
        assert!(Reserve::spend(log.inner.context()));
        assert_eq!(topic.flush().unwrap_err().kind(), Kind::NoSpace);
        log.close().unwrap();
        let (_, topic) = open(&sys, &exclusive);
        assert_eq!(topic.partition_stats(0).unwrap().next_offset, 2);
    }
}
