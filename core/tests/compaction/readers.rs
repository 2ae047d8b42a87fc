//! Readers that stand anywhere when a compaction comes.

use super::*;

#[test]
fn readers_go_on_forwards_and_backwards() {
    for step in [1_usize, 7, 50, 130] {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let rules = vec![rule("", Keep::Last(1))];
        let topic = log.topic("t", Create::New, &eager(rules)).unwrap();
        for i in 0..200 {
            append(&topic, &format!("k{}", i % 10), Some(&"v".repeat(100)));
        }
        let read = |reader: &mut Reader, max: usize| {
            let mut got = Vec::new();
            reader
                .read_with(max, |record: RecordView<'_>| got.push(record.offset))
                .unwrap();
            got
        };
        let mut forward = topic.reader(&ReaderOptions::default()).unwrap();
        let mut backward = topic
            .reader(&ReaderOptions {
                start: Start::Latest,
                direction: Direction::Backward,
                ..ReaderOptions::default()
            })
            .unwrap();
        let before = (read(&mut forward, step), read(&mut backward, step));
        topic.compact().unwrap();
        let left = offsets(&read_all(&topic).unwrap());
        let mut rest = Vec::new();
        loop {
            let more = read(&mut forward, 9);
            if more.is_empty() {
                break;
            }
            rest.extend(more);
        }
        assert!(
            rest.windows(2).all(|two| two[0] < two[1]),
            "{step}: {rest:?}"
        );
        let last = before.0.last().copied().unwrap();
        assert!(rest[0] > last);
        // What is left behind the reader is all there; what it had in its buffer it may still give.
        let wanted = left.iter().filter(|offset| **offset > last);
        for offset in wanted {
            assert!(rest.contains(offset), "{step}: {offset}");
        }
        let mut back = Vec::new();
        loop {
            let more = read(&mut backward, 9);
            if more.is_empty() {
                break;
            }
            back.extend(more);
        }
        assert!(
            back.windows(2).all(|two| two[0] > two[1]),
            "{step}: {back:?}"
        );
        let first = before.1.last().copied().unwrap();
        for offset in left.iter().filter(|offset| **offset < first) {
            assert!(back.contains(offset), "{step}: {offset} backwards");
        }
    }
}

#[test]
fn maintenance_of_a_topic_that_another_process_deleted_is_no_trouble() {
    let sys = FaultySys::new();
    let shared = LogOptions {
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    };
    let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
    let (a, b) = (open(), open());
    let rules = TopicOptions {
        max_age_ms: 1_000,
        ..eager(vec![rule("", Keep::Last(1))])
    };
    let topic = a.topic("t", Create::New, &rules).unwrap();
    for _ in 0..100 {
        append(&topic, "k", Some(&"v".repeat(100)));
    }
    sys.advance_ms(100_000);
    b.delete_topic("t").unwrap();
    for _ in 0..10 {
        a.maintain(0).unwrap();
    }
}
