//! The work that is due in the background: buffered records go out, written ones onto the medium,
//! aged ones away. Done by the log's one thread, or by the caller.

use crate::error::{Kind, Result};
use crate::log::Inner;
use crate::peers::Keeper;
use crate::reserve::Reserve;
use crate::sys::thread::Thread;
use std::sync::{Arc, Weak};

/// Milliseconds between two looks for aged records.
const AGE_LOOK_MS: u64 = 60_000;
/// Milliseconds until work is tried again after it failed.
const RETRY_MS: u64 = 1_000;

/// Starts the thread. It does not keep the log alive.
pub(crate) fn start(log: &Arc<Inner>) -> std::io::Result<Thread> {
    let context = log.context().clone();
    let log: Weak<Inner> = Arc::downgrade(log);
    Thread::start(move || {
        while context.signal.wait() {
            let Some(log) = log.upgrade() else { return };
            // Trouble is told to those who ask; the rest of the work has its time.
            if let (Some(ms), _) = work(&log, None) {
                context.signal.due_in(ms);
            }
        }
    })
}

/// Apart from the comparison: mixed with it, the number of one that is never due was looked at, to
/// no effect, but valgrind tells it.
#[inline(never)]
fn or_never(due: Option<u64>) -> u64 {
    due.unwrap_or(u64::MAX)
}

/// Does what is due, until the budget is spent; answers when the next work is due, in
/// milliseconds from now, and the first thing that failed.
pub(crate) fn work(log: &Inner, budget_ms: Option<u64>) -> (Option<u64>, Result<()>) {
    let context = log.context();
    let started_ms = context.sys.boot_ms();
    let spent = || {
        let so_far = context.sys.boot_ms().saturating_sub(started_ms);
        budget_ms.is_some_and(|budget_ms| so_far >= budget_ms)
    };
    let mut next_ms = u64::MAX;
    let mut first_error = None;
    let mut sooner = |due: Option<u64>| next_ms = next_ms.min(or_never(due));
    sooner(Reserve::maintain(context));
    for topic in log.topics() {
        if topic.shared.check().is_err() {
            continue;
        }
        for partition in &topic.partitions {
            sooner(partition.give_due());
            for done in [partition.flush_due(), partition.sync_due()] {
                match done {
                    Ok(due) => sooner(due),
                    // Nothing of it is due any more.
                    Err(error) if error.kind() == Kind::Deleted => {}
                    // One partition's trouble must not keep the others from their turn.
                    Err(error) => {
                        sooner(Some(RETRY_MS));
                        first_error = first_error.or(Some(error));
                    }
                }
            }
        }
        for group in topic.groups_met() {
            sooner(group.give_due());
        }
        let options = topic.shared.options();
        if !options.keep.is_empty() {
            // A step at least, however small the budget is.
            for partition in &topic.partitions {
                let done = partition.compact_due(&options);
                let goes_on = matches!(done, Ok(Some(_)));
                match done {
                    Ok(due) => sooner(due),
                    Err(error) if error.kind() == Kind::Deleted => {}
                    Err(error) => {
                        sooner(Some(RETRY_MS));
                        first_error = first_error.or(Some(error));
                    }
                }
                if goes_on && spent() {
                    return (Some(0), first_error.map_or(Ok(()), Err));
                }
            }
        }
        if options.max_age_ms != 0 {
            let retained = match context.peers.try_change() {
                Ok(None) => {
                    sooner(Some(RETRY_MS));
                    continue;
                }
                Ok(Some(_changing)) => log.retain(&topic),
                Err(error) => Err(error),
            };
            sooner(Some(AGE_LOOK_MS));
            if let Some(error) = retained.err().filter(|e| e.kind() != Kind::Deleted) {
                first_error = first_error.or(Some(error));
            }
        }
    }
    let next = (next_ms != u64::MAX).then_some(next_ms);
    (next, first_error.map_or(Ok(()), Err))
}

impl Keeper for Inner {
    fn give_wanted(&self) {
        for topic in self.topics_if_free() {
            topic
                .partitions
                .iter()
                .for_each(|partition| partition.give_wanted());
            topic
                .groups_if_free()
                .iter()
                .for_each(|group| group.give_wanted());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use crate::log::Log;
    use crate::options::{Create, Durability, LogOptions, TopicOptions};
    use crate::peers::Keeper;
    use crate::record::Record;
    use crate::sys::faulty::FaultySys;
    use crate::topic::Topic;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Barrier};

    /// A log whose thread does nothing, as if it waited for another process.
    fn open(sys: &FaultySys) -> Log {
        let log = Log::open_on(Arc::new(sys.clone()), &LogOptions::default()).unwrap();
        log.inner.end_thread();
        log
    }

    fn topic(log: &Log, name: &str) -> Topic {
        log.topic(name, Create::IfMissing, &TopicOptions::default())
            .unwrap()
    }

    fn append(topic: &Topic, durability: Durability) {
        let record = Record {
            value: Some(b"value"),
            ..Record::default()
        };
        topic.append(&record, Some(durability)).unwrap();
    }

    /// Each of two processes keeps something, and wants what the other one keeps.
    fn crosswise(durability: Durability) {
        let sys = FaultySys::new();
        let logs = [open(&sys), open(&sys)];
        let (both_keep, done) = (Barrier::new(2), AtomicU32::new(0));
        let work = |log: &Log, own: &str, other: &str| {
            let [own, other] = [own, other].map(|name| topic(log, name));
            // What is changed again and again is kept; no time passes here.
            for _ in 0..3 {
                append(&own, durability);
            }
            both_keep.wait();
            append(&other, Durability::Written);
            done.fetch_add(1, Ordering::Relaxed);
            // Whoever is first does no longer wait, and has nobody who would give back for it.
            while done.load(Ordering::Relaxed) < 2 {
                log.inner.give_wanted();
                std::thread::yield_now();
            }
        };
        let [first, second] = &logs;
        std::thread::scope(|scope| {
            scope.spawn(|| work(first, "a", "b"));
            scope.spawn(|| work(second, "b", "a"));
        });
    }

    #[test]
    fn two_that_wait_for_what_the_other_one_keeps_both_go_on() {
        crosswise(Durability::Written);
    }

    #[test]
    fn two_that_wait_for_what_the_other_one_has_buffered_both_go_on() {
        crosswise(Durability::Buffered);
    }
}
