//! Each file of a small log, cut at every length in turn: it opens, gives what is readable, and
//! appends go on.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{FaultySys, Image};
use edgelog_core::*;
use support::{
    append_scenario, assert_scenario, existing, kill, offsets, open, read_all, read_from,
    scenario_log, segments,
};

const COUNT: u64 = 30;

/// The records that must be there when one segment holds only its first bytes: all of the others,
/// and of this one those whose frames end before the cut.
struct Frames {
    /// Of each record, the file and where its frame ends in it.
    ends: Vec<(String, u64)>,
}

impl Frames {
    fn of(sys: &FaultySys) -> Frames {
        let mut ends = Vec::new();
        let files = segments(sys);
        for path in &files {
            let bytes = sys.read_file(path).unwrap();
            let mut position = 88;
            while position < bytes.len() {
                let word =
                    u32::from_le_bytes(bytes[position + 4..position + 8].try_into().unwrap());
                position += 8 + (word & 0xff_ffff) as usize;
                // Not the footer.
                if word >> 24 & 0x7f == 1 {
                    ends.push((path.clone(), position as u64));
                }
            }
        }
        assert_eq!(ends.len() as u64, COUNT);
        Frames { ends }
    }

    fn left(&self, path: &str, length: u64) -> Vec<u64> {
        let stays = |(file, end): &(String, u64)| file != path || *end <= length;
        (0..COUNT)
            .filter(|offset| stays(&self.ends[*offset as usize]))
            .collect()
    }
}

fn check(image: Image, expected: &[u64], what: &str) {
    let sys = FaultySys::from_image(image);
    sys.reboot();
    let log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
    let topic = existing(&log, "t");
    let records = read_all(&topic).unwrap();
    records.iter().for_each(assert_scenario);
    assert_eq!(offsets(&records), expected, "{what}");
    let backward = ReaderOptions {
        direction: Direction::Backward,
        start: Start::Latest,
        ..ReaderOptions::default()
    };
    let mut turned = read_from(&topic, &backward).unwrap();
    turned.reverse();
    assert_eq!(turned, records, "{what}: backwards");
    // What is gone is told, and is never given out again: the checkpoint knows of all.
    let reports = [log.recovery().unwrap(), log.verify().unwrap()];
    for offset in 0..COUNT {
        let told = reports
            .iter()
            .flat_map(Report::entries)
            .any(|d| d.offset <= offset && offset < d.offset_end);
        assert_eq!(
            told,
            !expected.contains(&offset),
            "{what}: offset {offset}: {reports:?}"
        );
    }
    let at = append_scenario(&topic, COUNT, Durability::Synced).unwrap();
    assert_eq!(at.offset, COUNT, "{what}");
    kill(&sys, log);
    let log = open(&sys).unwrap_or_else(|e| panic!("{what}: again: {e}"));
    let again = read_all(&existing(&log, "t")).unwrap();
    assert_eq!(again.len(), records.len() + 1, "{what}: after appending");
    assert_eq!(again[..records.len()], records, "{what}: after appending");
}

#[test]
fn every_prefix_of_every_file_opens() {
    let sys = scenario_log(COUNT, 1_024);
    let frames = Frames::of(&sys);
    for path in sys.files() {
        let bytes = sys.read_file(&path).unwrap();
        let described = path.ends_with("TOPIC") || path.ends_with("CHECKPOINT");
        for length in 0..bytes.len() {
            let mut image = sys.image();
            image.write_file(&path, &bytes[..length]);
            let what = format!("{path} cut to {length} bytes");
            let expected = frames.left(&path, length as u64);
            if path.ends_with("CHECKPOINT") || !described || length >= bytes.len() / 2 {
                check(image, &expected, &what);
                continue;
            }
            // A description beyond repair is made anew from any segment.
            let sys = FaultySys::from_image(image);
            let log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
            let topic = existing(&log, "t");
            assert_eq!(offsets(&read_all(&topic).unwrap()), expected, "{what}");
            let kinds = |d: &Damage| d.kind == DamageKind::Meta;
            let report = log.recovery().unwrap();
            assert!(report.entries().iter().any(kinds), "{what}: {report:?}");
            kill(&sys, log);
            let log = open(&sys).unwrap();
            assert!(log.recovery().unwrap().is_empty(), "{what}: mended");
        }
    }
}

#[test]
fn each_file_may_be_missing_altogether() {
    let sys = scenario_log(COUNT, 1_024);
    let frames = Frames::of(&sys);
    for path in sys.files() {
        let mut image = sys.image();
        image.remove_file(&path);
        let what = format!("without {path}");
        if path.ends_with("TOPIC") {
            // Its segments tell what it was: only a mark makes a deletion.
            let sys = FaultySys::from_image(image);
            let log = open(&sys).unwrap();
            let kinds: Vec<_> = log
                .recovery()
                .unwrap()
                .entries()
                .iter()
                .map(|d| d.kind)
                .collect();
            assert_eq!(kinds, [DamageKind::Meta], "{what}");
            let topic = existing(&log, "t");
            assert_eq!(read_all(&topic).unwrap().len() as u64, COUNT, "{what}");
            let at = append_scenario(&topic, COUNT, Durability::Synced);
            assert_eq!(at.unwrap().offset, COUNT);
            continue;
        }
        let mut expected = frames.left(&path, 0);
        if path == segments(&sys)[0] {
            // Retention takes the oldest, too: what is before the first file was asked to go.
            let sys = FaultySys::from_image(image);
            let log = open(&sys).unwrap();
            expected.retain(|offset| *offset >= expected_first(&sys));
            let records = read_all(&existing(&log, "t")).unwrap();
            assert_eq!(offsets(&records), expected, "{what}");
            continue;
        }
        check(image, &expected, &what);
    }
}

/// The base offset of the first file.
fn expected_first(sys: &FaultySys) -> u64 {
    u64::from_str_radix(&segments(sys)[0][16..32], 16).unwrap()
}

#[test]
fn each_file_may_be_full_of_other_bytes() {
    let sys = scenario_log(COUNT, 1_024);
    let frames = Frames::of(&sys);
    let files = segments(&sys);
    for path in &files {
        let length = sys.read_file(path).unwrap().len();
        let other = sys.read_file(&files[files.len() - 1]).unwrap();
        let fillings = [
            vec![0; length],
            vec![0xff; length],
            vec![1; length],
            other.iter().copied().cycle().take(length).collect(),
            vec![0; 10 * length],
        ];
        for (number, bytes) in fillings.into_iter().enumerate() {
            if number == 3 && path == &files[files.len() - 1] {
                // Those are its own.
                continue;
            }
            let mut image = sys.image();
            image.write_file(path, &bytes);
            let expected = frames.left(path, 0);
            check(image, &expected, &format!("{path} with filling {number}"));
        }
    }
}
