//! What holds of journals.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "test"
)]

mod basics;
mod crash;
mod damage;
mod full;

use super::*;
use crate::names::{topic_dir, Entry};
use crate::options::{LogOptions, Mode, TopicOptions};
use crate::segment::header::ClockMark;
use crate::sys::faulty::{FaultySys, Image};

const UID: u64 = 0x1234_5678_9abc_def0;
const NUMBER: u32 = 3;

/// A process that has a topic open.
struct Process {
    sys: FaultySys,
    context: Context,
    shared: Arc<topic::Shared>,
}

/// What was met, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Snapshot(Vec<u8>),
    SnapshotEnd,
    Clock(u64),
    Changes(Vec<u8>),
    Hole,
}

impl Process {
    fn new(sys: &FaultySys, mode: Mode) -> Process {
        let dir = topic_dir(1);
        let _ = crate::sys::Sys::make_dir(sys, &dir);
        let options = LogOptions {
            mode,
            ..LogOptions::default()
        };
        // With journals as small as they get.
        let topic = TopicOptions {
            segment_bytes: 64 * 1024,
            ..TopicOptions::default()
        };
        let topic = topic.resolved(0).unwrap();
        Process {
            sys: sys.clone(),
            context: Context::new(Arc::new(sys.clone()), &options),
            shared: Arc::new(topic::Shared::new("t".into(), 42, dir, topic)),
        }
    }

    fn shared() -> Process {
        Process::new(&FaultySys::new(), Mode::Shared)
    }

    fn of_image(image: Image) -> Process {
        Process::new(&FaultySys::from_image(image), Mode::Shared)
    }

    fn beside(&self) -> Process {
        Process::new(&self.sys, Mode::Shared)
    }

    fn begin(&self, generation: u32, parts: &[&[u8]]) -> Journal {
        self.try_begin(generation, parts).unwrap()
    }

    fn try_begin(&self, generation: u32, parts: &[&[u8]]) -> Result<Journal> {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
        Journal::begin(&self.context, &self.shared, UID, NUMBER, generation, &parts)
    }

    fn try_open(&self, locked: bool) -> (Option<Journal>, Vec<Event>) {
        let mut events = Vec::new();
        let journal = Journal::open(
            &self.context,
            &self.shared,
            UID,
            NUMBER,
            locked,
            &mut |met| note(&mut events, met),
        );
        (journal.unwrap(), events)
    }

    fn open(&self, locked: bool) -> (Journal, Vec<Event>) {
        let (journal, events) = self.try_open(locked);
        (journal.unwrap(), events)
    }

    fn fold_on(&self, journal: &mut Journal, locked: bool) -> (Seen, Vec<Event>) {
        let mut events = Vec::new();
        let seen = journal.fold_on(&self.context, locked, &mut |met| note(&mut events, met));
        (seen.unwrap(), events)
    }

    fn append(&self, journal: &mut Journal, changes: &[u8]) {
        self.try_append(journal, changes, false).unwrap();
    }

    fn try_append(&self, journal: &mut Journal, changes: &[u8], durable: bool) -> Result<()> {
        journal.append(&self.context, None, changes, durable)
    }

    /// The files of the topic's directory.
    fn files(&self) -> Vec<String> {
        let files = self.sys.files().into_iter();
        files.filter(|path| path.contains('/')).collect()
    }

    fn bytes(&self, journal: &Journal) -> Vec<u8> {
        self.sys.read_file(&journal.path).unwrap()
    }

    /// What is counted as used is what is there.
    fn assert_counted(&self, what: &str) {
        let sizes = self.files().into_iter().filter_map(|path| {
            let name = path.rsplit('/').next()?;
            let bytes = self.sys.read_file(&path)?.len() as u64;
            matches!(crate::names::entry(name), Entry::Journal(_)).then_some(bytes)
        });
        let sum: u64 = sizes.sum();
        assert_eq!(self.shared.used_bytes(), sum, "{what}");
        assert_eq!(*self.context.used_bytes.lock(), sum, "{what}");
    }
}

fn note(events: &mut Vec<Event>, met: Met<'_>) -> Result<()> {
    events.push(match met {
        Met::Snapshot(body) => Event::Snapshot(body.to_vec()),
        Met::SnapshotEnd => Event::SnapshotEnd,
        Met::Clock(clock) => Event::Clock(clock.run_ms),
        Met::Changes(body) => Event::Changes(body.to_vec()),
        Met::Hole => Event::Hole,
    });
    Ok(())
}

fn clock(run_ms: u64) -> ClockMark {
    ClockMark {
        boot_id: 7,
        boot_ms: 11,
        run_ms,
    }
}

fn changes(number: u8) -> Event {
    Event::Changes(vec![number; usize::from(number) + 1])
}

/// A journal with all there can be in it, and what is met in it.
fn sample(process: &Process) -> (Journal, Vec<Event>) {
    let mut journal = process.begin(1, &[b"first", b"second part"]);
    let mut events = vec![
        Event::Snapshot(b"first".to_vec()),
        Event::Snapshot(b"second part".to_vec()),
        Event::SnapshotEnd,
    ];
    for number in 0..6 {
        let Event::Changes(body) = changes(number) else {
            continue;
        };
        let mark = clock(u64::from(number));
        let mark = (number % 3 == 0).then_some(&mark);
        journal
            .append(&process.context, mark, &body, false)
            .unwrap();
        if mark.is_some() {
            events.push(Event::Clock(u64::from(number)));
        }
        events.push(changes(number));
    }
    (journal, events)
}
