//! Everything a log can be asked, and what must hold of the answers whatever its files are. Where
//! nothing wrong stands behind a right checksum, more must hold: `strict`.
use crate::corpus::append_some;
use crate::groups::{self, Notes};
use crate::Rng;
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::{
    Direction, Kind, Log, LogOptions, OnGap, Reader, ReaderOptions, RecordView, Start, Topic,
    TopicOptions,
};
use std::sync::Arc;

/// A record that was read: partition, offset, time, and a sum over the rest.
pub type Seen = (u32, u64, u64, u32);

/// Reads to the end. Offsets must rise strictly within a partition, or fall.
pub fn drain(
    reader: &mut Reader,
    direction: Direction,
    max: usize,
    strict: bool,
) -> Result<Vec<Seen>, Kind> {
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        let answer = reader.read_with(max, |view: RecordView<'_>| {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(view.key.unwrap_or(b"-"));
            hasher.update(view.value.unwrap_or(b"-"));
            for header in view.headers {
                hasher.update(header.name);
                hasher.update(header.value);
            }
            let sum = hasher.finalize();
            seen.push((view.partition, view.offset, view.timestamp_ms, sum));
        });
        match answer {
            Ok(0) => break,
            Ok(count) => assert!(count <= max),
            Err(error) if error.kind() == Kind::Gap => {
                let (first, end) = error.offsets().unwrap();
                assert!(first < end, "{error}");
            }
            Err(error) => return Err(error.kind()),
        }
    }
    seen.sort_by_key(|seen| seen.0);
    for pair in seen.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let (before, after) = (pair[0].1, pair[1].1);
        let moves = match direction {
            Direction::Forward => before < after,
            Direction::Backward => before > after,
        };
        assert!(moves || !strict, "{after} after {before}");
    }
    Ok(seen)
}

/// Some way of reading.
pub fn reader_options(rng: &mut Rng) -> ReaderOptions {
    ReaderOptions {
        partition: rng.percent(30).then(|| rng.below(3) as u32),
        start: match rng.below(4) {
            0 => Start::Earliest,
            1 => Start::Latest,
            2 if rng.percent(50) => Start::Offset(rng.below(60) as u64),
            2 => Start::Offset(rng.odd_number()),
            _ => Start::Time(rng.odd_number()),
        },
        direction: *rng.pick(&[Direction::Forward, Direction::Backward]),
        on_gap: *rng.pick(&[OnGap::Skip, OnGap::Stop]),
        buffer_bytes: *rng.pick(&[0, 1, 100, 5_000]),
        key: rng.percent(20).then(|| rng.below(5).to_be_bytes().to_vec()),
    }
}

/// Reads a topic in many ways; answers what is in it.
pub fn read(rng: &mut Rng, topic: &Topic, strict: bool) -> Result<Vec<Seen>, Kind> {
    let open = |options: &ReaderOptions| topic.reader(options).map_err(|e| e.kind());
    let forward = ReaderOptions::default();
    let max = 1 + rng.below(40);
    let all = drain(&mut open(&forward)?, Direction::Forward, max, strict)?;
    let stops = ReaderOptions {
        on_gap: OnGap::Stop,
        ..forward.clone()
    };
    let stopped = drain(&mut open(&stops)?, Direction::Forward, max, strict)?;
    if strict {
        assert_eq!(stopped, all, "stopping at gaps loses nothing");
    }
    let backward = ReaderOptions {
        direction: Direction::Backward,
        start: Start::Latest,
        ..forward
    };
    let mut turned = drain(&mut open(&backward)?, Direction::Backward, max, strict)?;
    turned.reverse();
    turned.sort_by_key(|seen| seen.0);
    if strict {
        assert_eq!(turned, all, "backwards is not forwards");
    }
    for _ in 0..3 {
        let options = reader_options(rng);
        if let Ok(mut reader) = topic.reader(&options) {
            for seen in drain(&mut reader, options.direction, max, strict)? {
                assert!(
                    !strict || all.contains(&seen),
                    "{seen:?} is nowhere else: {options:?}"
                );
            }
            let _ = reader.latest(&rng.below(5).to_be_bytes());
            let _ = reader.seek(Start::Offset(rng.odd_number()));
            let _ = reader.next();
        }
    }
    Ok(all)
}

/// Reads all of a log, changes it, and opens it again.
pub fn log(rng: &mut Rng, sys: &FaultySys, options: &LogOptions, notes: &Notes, strict: bool) {
    let before = sys.image();
    let log = match Log::open_on(Arc::new(sys.clone()), options) {
        Ok(log) => log,
        Err(error) => {
            // What is not understood, or not wanted damaged, is not touched but for the lock.
            let expected = [Kind::Version, Kind::Damaged, Kind::NotFound, Kind::Exists];
            assert!(expected.contains(&error.kind()), "{error}");
            let mut image = sys.image();
            if before.read_file("LOCK").is_none() {
                image.remove_file("LOCK");
            }
            assert_eq!(image, before, "{error}");
            return;
        }
    };
    let read_only = options.mode == edgelog_core::Mode::ReadOnly;
    let _ = (log.recovery().unwrap(), log.verify(), log.stats().unwrap());
    let mut contents = Vec::new();
    for name in log.topic_names().unwrap() {
        let options = TopicOptions::default();
        let topic = log.topic(&name, edgelog_core::Create::Never, &options);
        let topic = topic.unwrap();
        let before = read(rng, &topic, strict).unwrap();
        if !read_only {
            for _ in 0..rng.below(12) {
                match append_some(rng, &topic) {
                    Ok(_) => {}
                    Err(e) => assert!(matches!(e.kind(), Kind::Full | Kind::TooLarge), "{e}"),
                }
            }
            if rng.percent(20) {
                topic.retain().unwrap();
            }
            topic.flush().unwrap();
        }
        let stats = topic.stats().unwrap();
        let after = read(rng, &topic, strict).unwrap();
        if stats.dropped_records == 0 && !read_only && strict {
            let expected = before.len() as u64 + stats.appended_records;
            assert_eq!(
                after.len() as u64,
                expected,
                "appended and not there: {name}"
            );
        }
        if read_only {
            groups::look(rng, &topic, strict);
            contents.push((name, after, Notes::default()));
            continue;
        }
        let notes = groups::probe(rng, sys, &topic, notes, strict);
        let after = read(rng, &topic, strict).unwrap();
        contents.push((name, after, notes));
    }
    log.close().unwrap();
    if read_only {
        assert_eq!(sys.image(), before, "a reader changed something");
        return;
    }
    let again = Log::open_on(Arc::new(sys.clone()), &crate::corpus::manual()).unwrap();
    for (name, expected, notes) in contents {
        let options = TopicOptions::default();
        let topic = again.topic(&name, edgelog_core::Create::Never, &options);
        let topic = topic.unwrap();
        let found = read(rng, &topic, strict).unwrap();
        if strict {
            assert_eq!(found, expected, "another reading of {name}");
        }
        groups::probe(rng, sys, &topic, &notes, strict);
    }
}
