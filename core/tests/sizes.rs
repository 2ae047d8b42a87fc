//! The fault scenario F10: offsets above 2^32 and 2^53, files above 2 and 4 GiB, and the same bytes
//! on every architecture. The files are made here from `FORMAT.md` alone, without the engine.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use std::os::unix::fs::FileExt;
use support::{
    append_scenario, assert_scenario, existing, kill, offsets, open_well, read_all, read_from,
    segments, Dir,
};

/// CRC-32 that goes on from a sum.
fn crc(start: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    hasher.update(bytes);
    hasher.finalize()
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Many zeros, summed up once.
struct Zeros {
    count: usize,
    sum: crc32fast::Hasher,
}

impl Zeros {
    fn new(count: usize) -> Zeros {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&vec![0; count]);
        Zeros { count, sum }
    }
}

/// Makes segments as `FORMAT.md` describes them.
struct Maker {
    uid: u64,
    base: u64,
    seed: u32,
}

impl Maker {
    fn new(uid: u64, base: u64) -> Maker {
        let mut place = uid.to_le_bytes().to_vec();
        place.extend(0_u32.to_le_bytes());
        place.extend(base.to_le_bytes());
        place.extend(0_u32.to_le_bytes());
        Maker {
            uid,
            base,
            seed: crc(0, &place),
        }
    }

    fn header(&self, name: &str) -> Vec<u8> {
        let mut out = b"EDGESEG1".to_vec();
        out.extend(1_u32.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(self.uid.to_le_bytes());
        out.extend(self.base.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.extend([0; 8 + 8 + 8 + 16 + 2]);
        out.push(name.len() as u8);
        out.extend(name.as_bytes());
        out.extend(crc(0, &out).to_le_bytes());
        assert_eq!(out.len(), 87 + name.len());
        out
    }

    /// The first bytes of a frame whose body goes on with so many zeros, and its whole size.
    fn frame_of_zeros(
        &self,
        position: u64,
        kind: u8,
        start: &[u8],
        zeros: &Zeros,
    ) -> (Vec<u8>, u64) {
        let seed = self.seed ^ position as u32 ^ ((position >> 32) as u32).rotate_left(16);
        let length = start.len() + zeros.count;
        let word = length as u32 | u32::from(kind) << 24;
        let mut sum = crc32fast::Hasher::new_with_initial(seed);
        sum.update(&word.to_le_bytes());
        sum.update(start);
        sum.combine(&zeros.sum);
        let head = [&sum.finalize().to_le_bytes(), &word.to_le_bytes(), start].concat();
        (head, length as u64 + 8)
    }

    fn frame(&self, position: u64, kind: u8, body: &[u8]) -> Vec<u8> {
        self.frame_of_zeros(position, kind, body, &Zeros::new(0)).0
    }

    /// The body of a frame with one record that has a value and nothing else.
    fn record(&self, offset: u64, value: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        varint(&mut body, offset - self.base);
        varint(&mut body, 1_800_000_000_000);
        varint(&mut body, 0);
        body.push(2);
        varint(&mut body, value.len() as u64);
        body.extend(value);
        body
    }

    /// The body of a footer; the entries are offsets and positions.
    fn footer(&self, next: u64, entries: &[(u64, u64)]) -> Vec<u8> {
        let mut body = Vec::new();
        varint(&mut body, next - self.base);
        varint(&mut body, entries.len() as u64);
        varint(&mut body, 0);
        varint(&mut body, 1_800_000_000_000);
        varint(&mut body, 1_800_000_000_000);
        varint(&mut body, 0);
        varint(&mut body, entries.len() as u64);
        let (mut offset, mut position) = (self.base, 0);
        for entry in entries {
            varint(&mut body, entry.0 - offset);
            varint(&mut body, entry.1 - position);
            varint(&mut body, 1_800_000_000_000);
            (offset, position) = *entry;
        }
        let length = body.len() as u32 + 4 + 8;
        body.extend(length.to_le_bytes());
        body
    }
}

/// The identity of a topic, from its description.
fn uid_of(description: &[u8]) -> u64 {
    u64::from_le_bytes(description[16..24].try_into().unwrap())
}

/// A machine whose only topic goes on at this offset: its checkpoint says so.
fn at_offset(next: u64) -> FaultySys {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let small = TopicOptions {
        segment_bytes: 1_024,
        ..TopicOptions::default()
    };
    log.topic("t", Create::New, &small).unwrap();
    log.close().unwrap();
    let uid = uid_of(&sys.read_file("t00000001/TOPIC").unwrap());
    let mut body = uid.to_le_bytes().to_vec();
    body.extend([0; 8 + 8 + 16]);
    body.extend(1_u32.to_le_bytes());
    body.extend(next.to_le_bytes());
    body.extend(next.to_le_bytes());
    let mut block = b"EDGECKP1".to_vec();
    block.extend(1_u32.to_le_bytes());
    block.extend((body.len() as u32).to_le_bytes());
    block.extend(body);
    block.extend(crc(0, &block).to_le_bytes());
    sys.write_file("t00000001/CHECKPOINT", &block.repeat(2));
    sys
}

#[test]
fn f10_offsets_of_any_size_work() {
    for next in [
        (1 << 32) - 15,
        (1 << 53) - 15,
        (1 << 63) - 15,
        u64::MAX - 1_000,
    ] {
        let sys = at_offset(next);
        let log = open_well(&sys);
        let topic = existing(&log, "t");
        for i in next..next + 30 {
            let at = append_scenario(&topic, i, Durability::Written).unwrap();
            assert_eq!(at.offset, i);
        }
        log.close().unwrap();
        let log = open_well(&sys);
        assert!(log.recovery().unwrap().is_empty() || segments(&sys).len() > 3);
        let topic = existing(&log, "t");
        let all: Vec<u64> = (next..next + 30).collect();
        assert_eq!(offsets(&read_all(&topic).unwrap()), all);
        for (start, direction) in [
            (next + 16, Direction::Forward),
            (next + 16, Direction::Backward),
        ] {
            let options = ReaderOptions {
                start: Start::Offset(start),
                direction,
                ..ReaderOptions::default()
            };
            let mut got = offsets(&read_from(&topic, &options).unwrap());
            got.sort_unstable();
            let expected = match direction {
                Direction::Forward => &all[16..],
                Direction::Backward => &all[..17],
            };
            assert_eq!(got, expected, "{direction:?} from {start}");
        }
        let at = append_scenario(&topic, next + 30, Durability::Synced).unwrap();
        assert_eq!(at.offset, next + 30);
        assert!(log.verify().unwrap().is_empty());
        kill(&sys, log);
        let log = open_well(&sys);
        let stats = existing(&log, "t").partition_stats(0).unwrap();
        assert_eq!((stats.next_offset, stats.records), (next + 31, 31));
    }
}

#[test]
fn the_last_offset_there_is_is_no_accident() {
    let sys = at_offset(u64::MAX - 3);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    let mut given = Vec::new();
    for _ in 0..10 {
        match append_scenario(&topic, 0, Durability::Written) {
            Ok(at) => given.push(at.offset),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Full, "{error}");
            }
        }
    }
    let count = given.len();
    given.dedup();
    assert_eq!(given.len(), count, "an offset twice: {given:?}");
    let read = offsets(&read_all(&topic).unwrap());
    assert_eq!(read, given);
}

/// A log on the real file system with a topic that has no records yet.
fn empty_log(dir: &Dir) -> (u64, std::path::PathBuf) {
    let log = dir.open();
    let large = TopicOptions {
        segment_bytes: 1 << 40,
        ..TopicOptions::default()
    };
    log.topic("t", Create::New, &large).unwrap();
    log.close().unwrap();
    let topic = dir.path().join("t00000001");
    let uid = uid_of(&std::fs::read(topic.join("TOPIC")).unwrap());
    (uid, topic.join("p0000-0000000000000000-00000000.seg"))
}

#[test]
fn f10_a_sealed_file_above_4_gib_is_read_through_its_index() {
    let dir = Dir::new("sparse-sealed");
    let (uid, path) = empty_log(&dir);
    let maker = Maker::new(uid, 0);
    let file = std::fs::File::create(&path).unwrap();
    file.write_all_at(&maker.header("t"), 0).unwrap();
    // Holes between them: what was there is damaged, for all a reader can tell.
    let positions = [
        88,
        (2 << 30) - 20,
        (2 << 30) + 12_345,
        (4 << 30) - 20,
        (4 << 30) + 12_345,
    ];
    let mut entries = Vec::new();
    for (offset, position) in (0_u64..).zip(positions) {
        let body = maker.record(offset, &offset.to_le_bytes());
        let frame = maker.frame(position, 0x81, &body);
        file.write_all_at(&frame, position).unwrap();
        entries.push((offset, position));
    }
    let position = positions[4] + 100;
    let footer = maker.frame(position, 2, &maker.footer(5, &entries));
    file.write_all_at(&footer, position).unwrap();
    drop(file);
    // The next one was begun: the large one is not looked at any more.
    let next = path.with_file_name("p0000-0000000000000005-00000000.seg");
    std::fs::write(next, Maker::new(uid, 5).header("t")).unwrap();

    let log = dir.open();
    assert!(log.recovery().unwrap().is_empty());
    let topic = existing(&log, "t");
    let stats = topic.partition_stats(0).unwrap();
    assert_eq!((stats.next_offset, stats.records), (5, 5));
    assert_eq!(stats.bytes, position + footer.len() as u64 + 88);
    for offset in 0..5_u64 {
        let mut reader = topic
            .reader(&ReaderOptions {
                start: Start::Offset(offset),
                ..ReaderOptions::default()
            })
            .unwrap();
        let record = reader.next().unwrap().unwrap();
        assert_eq!(record.offset, offset);
        assert_eq!(record.value, Some(&offset.to_le_bytes()[..]));
    }
    let at = append_scenario(&topic, 5, Durability::Synced).unwrap();
    assert_eq!(at.offset, 5);
    log.close().unwrap();
}

#[test]
fn f10_an_active_file_above_4_gib_goes_on() {
    let dir = Dir::new("sparse-active");
    let (uid, path) = empty_log(&dir);
    let maker = Maker::new(uid, 0);
    let file = std::fs::File::create(&path).unwrap();
    file.write_all_at(&maker.header("t"), 0).unwrap();
    // Frames with large values of zeros, of which only the head is written.
    let value = Zeros::new(16_000_000);
    let (mut position, mut count) = (88, 0);
    while position <= (4 << 30) {
        let mut body = maker.record(count, &[]);
        body.pop();
        varint(&mut body, value.count as u64);
        let (head, size) = maker.frame_of_zeros(position, 0x81, &body, &value);
        file.write_all_at(&head, position).unwrap();
        position += size;
        count += 1;
    }
    file.set_len(position).unwrap();
    // A torn tail up there is cut like any other.
    file.write_all_at(b"torn", position).unwrap();
    drop(file);

    let log = dir.open();
    let report = log.recovery().unwrap();
    let [damage] = report.entries() else {
        panic!("{report:?}")
    };
    let torn = (DamageKind::TornTail, position, 4, count);
    let found = (damage.kind, damage.position, damage.bytes, damage.offset);
    assert_eq!(found, torn);
    let topic = existing(&log, "t");
    for i in count..count + 20 {
        let at = append_scenario(&topic, i, Durability::Written).unwrap();
        assert_eq!(at.offset, i);
    }
    assert!(std::fs::metadata(&path).unwrap().len() > position);
    let from = ReaderOptions {
        start: Start::Offset(count),
        ..ReaderOptions::default()
    };
    let records = read_from(&topic, &from).unwrap();
    let expected: Vec<u64> = (count..count + 20).collect();
    assert_eq!(offsets(&records), expected);
    records.iter().for_each(assert_scenario);
    log.close().unwrap();
}

/// A log with a bit of everything, made with the same clocks and identities everywhere.
fn sample() -> FaultySys {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let small = TopicOptions {
        segment_bytes: 2_048,
        partitions: 3,
        max_records: 100,
        ..TopicOptions::default()
    };
    let mut topic = log.topic("s\u{e4}mple/..", Create::New, &small).unwrap();
    let other = log
        .topic("other", Create::New, &TopicOptions::default())
        .unwrap();
    let mut log = log;
    for i in 0..200_u64 {
        sys.advance_ms(i * 37);
        let key = entity_key((i % 3) as u8, i % 11).unwrap();
        let value = vec![i as u8; (i % 97) as usize];
        let headers = [
            Header {
                name: b"h",
                value: &value[..(i % 5) as usize % (value.len() + 1)],
            },
            Header::default(),
        ];
        let record = Record {
            key: (i % 4 != 0).then_some(&key[..]),
            value: (i % 4 == 0 || i % 7 != 0).then_some(&value[..]),
            headers: &headers[..(i % 3) as usize],
            timestamp_ms: (i % 5 == 0).then_some(i << (i % 60)),
            partition: (i % 2 == 0).then_some((i % 3) as u32),
        };
        let durability = [
            Durability::Buffered,
            Durability::Written,
            Durability::Synced,
        ][(i % 3) as usize];
        if i % 9 == 0 {
            let batch = [Record {
                partition: Some(1),
                ..record
            }; 5];
            topic.append_batch(&batch, Some(durability)).unwrap();
        } else {
            topic.append(&record, Some(durability)).unwrap();
        }
        if i == 120 {
            log.close().unwrap();
            sys.reboot();
            sys.set_wall_ms(5_000);
            log = open_well(&sys);
            topic = existing(&log, "s\u{e4}mple/..");
        }
    }
    let options = GroupOptions::default();
    let group = topic.group("gr\u{fc}ppe", Create::New, Start::Earliest, &options);
    let mut consumer = group.unwrap().0.consumer("c").unwrap();
    let take = TakeOptions {
        max: 9,
        ..TakeOptions::default()
    };
    let mut taken = Vec::new();
    let mut receiver = |record: RecordView<'_>, _: u32| {
        taken.push(Position {
            partition: record.partition,
            offset: record.offset,
        });
    };
    consumer.take(&take, &mut receiver).unwrap();
    consumer.member().ack(&taken[..3]).unwrap();
    let refused = consumer.member().nack(&taken[4..6], &Nack::default());
    assert_eq!(refused.unwrap(), [Outcome::Done; 2]);
    drop(consumer);
    let ordered = GroupOptions {
        ordered: true,
        lease_ttl_ms: 70_000,
        ..GroupOptions::default()
    };
    let group = topic.group("ordered", Create::New, Start::Earliest, &ordered);
    let mut consumer = group.unwrap().0.consumer("c").unwrap();
    consumer
        .take(&take, &mut |_: RecordView<'_>, _| ())
        .unwrap();
    consumer.member().release(Some(1)).unwrap();
    // Without the end of its session.
    std::mem::forget(consumer);
    drop(other);
    log.delete_topic("other").unwrap();
    topic.retain().unwrap();
    log.close().unwrap();
    sys
}

/// Of all files of the sample. It changes only when the format does, or when records are
/// gathered into frames otherwise; then it is taken anew from the failing test, on x86_64.
const SAMPLE_CRC: u32 = 0xdc0c_303f;

#[test]
fn f10_every_architecture_writes_the_same_bytes() {
    let sys = sample();
    let mut sum = 0;
    for path in sys.files() {
        let bytes = sys.read_file(&path).unwrap();
        println!("{path}: {} bytes, {:08x}", bytes.len(), crc(0, &bytes));
        sum = crc(crc(sum, path.as_bytes()), &bytes);
    }
    let log = open_well(&sys);
    assert!(log.recovery().unwrap().is_empty());
    assert!(log.verify().unwrap().is_empty());
    assert_eq!(sum, SAMPLE_CRC, "{sum:#010x} is written here");
}
