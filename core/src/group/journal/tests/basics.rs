//! Beginning, appending, opening, folding on; beside other processes.

use super::*;
use crate::sys::faulty::Repeat;

#[test]
fn what_was_written_comes_back() {
    let process = Process::shared();
    assert!(process.try_open(true).0.is_none());
    let (journal, events) = sample(&process);
    let size = journal.size_bytes();
    assert_eq!(process.bytes(&journal).len() as u64, size);
    process.assert_counted("by its writer");
    for locked in [false, true] {
        let other = process.beside();
        let (opened, met) = other.open(locked);
        assert_eq!(met, events);
        assert_eq!(opened.size_bytes(), size);
        assert_eq!(opened.generation(), 1);
        assert!(!opened.is_due(None) && !opened.is_damaged());
        other.assert_counted("by another");
    }
}

#[test]
fn an_append_is_one_write_and_opens_nothing() {
    let process = Process::new(&FaultySys::new(), Mode::Exclusive);
    let mut journal = process.begin(1, &[]);
    process.append(&mut journal, b"first");
    let before = process.sys.counters();
    for number in 0..100_u64 {
        let mark = clock(number);
        journal
            .append(&process.context, Some(&mark), b"changes", false)
            .unwrap();
        assert_eq!(process.fold_on(&mut journal, true).0, Seen::Same);
    }
    let after = process.sys.counters();
    assert_eq!(after.writes - before.writes, 100);
    assert_eq!((after.opens, after.reads, after.syncs), {
        (before.opens, before.reads, before.syncs)
    });
    process.try_append(&mut journal, b"durable", true).unwrap();
    assert_eq!(process.sys.counters().syncs, before.syncs + 1);
}

#[test]
fn another_process_folds_on_without_the_lock() {
    let writer = Process::shared();
    let (mut journal, _) = sample(&writer);
    let reader = writer.beside();
    let (mut seen, _) = reader.open(false);
    assert_eq!(reader.fold_on(&mut seen, false), (Seen::Same, vec![]));
    for number in [7, 8] {
        writer.append(&mut journal, &[number; 9]);
    }
    let news = [7, 8]
        .map(|number| Event::Changes(vec![number; 9]))
        .to_vec();
    assert_eq!(reader.fold_on(&mut seen, false), (Seen::Grown, news));
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Same, vec![]));
    reader.assert_counted("folded on");
    // And takes its turn.
    reader.append(&mut seen, b"mine");
    let mine = vec![Event::Changes(b"mine".to_vec())];
    assert_eq!(writer.fold_on(&mut journal, true), (Seen::Grown, mine));
    writer.assert_counted("folded on");
}

#[test]
fn a_journal_that_was_replaced_is_noticed() {
    let writer = Process::shared();
    let (journal, _) = sample(&writer);
    let reader = writer.beside();
    let (mut seen, _) = reader.open(false);
    let next = writer.begin(journal.next_generation(), &[b"anew"]);
    assert_eq!(next.generation(), 2);
    assert_eq!(writer.files(), std::slice::from_ref(&next.path));
    writer.assert_counted("rotated");
    for locked in [false, true] {
        assert_eq!(reader.fold_on(&mut seen, locked), (Seen::Other, vec![]));
    }
    let (_, met) = reader.open(false);
    let anew = vec![Event::Snapshot(b"anew".to_vec()), Event::SnapshotEnd];
    assert_eq!(met, anew);
    reader.assert_counted("opened anew");
}

#[test]
fn the_old_journal_is_not_written_to_where_it_could_not_be_removed() {
    let writer = Process::shared();
    let (journal, _) = sample(&writer);
    let reader = writer.beside();
    let (mut seen, _) = reader.open(false);
    // Create, write, sync, rename, sync of the directory; then the old one's turn.
    writer.sys.fail_after(5, libc::EIO, Repeat::Once);
    let next = writer.begin(journal.next_generation(), &[b"anew"]);
    assert_eq!(writer.files().len(), 2);
    writer.assert_counted("both");
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Other, vec![]));
    // The next one to open it with the lock does it.
    let (opened, _) = reader.open(true);
    assert_eq!(opened.generation(), next.generation());
    assert_eq!(writer.files(), [next.path]);
}

#[test]
fn another_group_of_the_same_number_is_told_apart() {
    let first = Process::shared();
    let (journal, _) = sample(&first);
    let late = first.beside();
    let (mut late_journal, _) = late.open(true);
    late.context.files.clear();
    Journal::remove_all(&first.context, &first.shared, NUMBER).unwrap();
    assert!(first.files().is_empty());
    first.assert_counted("removed");
    let large = vec![vec![9; 500]];
    let (context, shared) = (&first.context, &first.shared);
    let other = Journal::begin(context, shared, UID + 1, NUMBER, 1, &large).unwrap();
    assert_eq!(other.path, journal.path);
    let before = first.bytes(&other);
    assert_eq!(late.fold_on(&mut late_journal, true), (Seen::Other, vec![]));
    assert!(late.try_open(true).0.is_none());
    assert_eq!(first.bytes(&other), before);
    // Begun anew by the one who should not, it does not get the other's name.
    assert_eq!(late.begin(1, &[]).generation(), 2);
}

#[test]
fn what_a_dead_writer_left_is_cut_off_under_the_lock_only() {
    let process = Process::shared();
    let (journal, events) = sample(&process);
    let whole = process.bytes(&journal);
    let reader = process.beside();
    let (mut seen, _) = reader.open(false);
    let mut torn = whole.clone();
    torn.extend_from_slice(&whole[whole.len() - 14..whole.len() - 1]);
    process.sys.write_file(&journal.path, &torn);
    assert_eq!(reader.fold_on(&mut seen, false), (Seen::Same, vec![]));
    assert_eq!(reader.beside().open(false).1, events);
    assert_eq!(process.bytes(&journal), torn);
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Same, vec![]));
    assert_eq!(process.bytes(&journal), whole);
    reader.assert_counted("cut");
    process.sys.write_file(&journal.path, &torn);
    let (mut opened, met) = process.open(true);
    assert_eq!(met, events);
    assert!(!opened.is_damaged());
    process.append(&mut opened, b"on");
    let (_, met) = process.beside().open(false);
    assert_eq!(met[events.len()..], [Event::Changes(b"on".to_vec())]);
}

#[test]
fn an_append_that_fails_leaves_nothing() {
    for failing in 0..2 {
        let process = Process::shared();
        let (mut journal, mut events) = sample(&process);
        let before = process.bytes(&journal);
        process.sys.short_writes(Some(7));
        process.sys.fail_after(failing, libc::EIO, Repeat::Once);
        let error = process.try_append(&mut journal, b"failed", false);
        assert_eq!(error.unwrap_err().kind(), Kind::Io);
        process.assert_counted("taken back");
        assert_eq!(process.bytes(&journal), before);
        let (_, met) = process.beside().open(false);
        assert_eq!(met, events);
        process.append(&mut journal, b"on");
        events.push(Event::Changes(b"on".to_vec()));
        assert_eq!(process.beside().open(true).1, events);
    }
}

#[test]
fn a_clock_that_was_written_stays_when_the_changes_behind_it_fail() {
    let process = Process::shared();
    let mut journal = process.begin(1, &[]);
    let reader = process.beside();
    let (mut seen, _) = reader.open(false);
    process.sys.short_writes(Some(45));
    process.sys.fail_after(1, libc::EIO, Repeat::Once);
    let mark = clock(5);
    let failed = journal.append(&process.context, Some(&mark), b"failed", false);
    assert!(failed.is_err());
    let met = vec![Event::Clock(5)];
    assert_eq!(reader.fold_on(&mut seen, false), (Seen::Grown, met));
    process.append(&mut journal, b"on");
    let met = vec![Event::Changes(b"on".to_vec())];
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Grown, met));
}

#[test]
fn behind_a_failed_sync_nothing_is_appended() {
    let process = Process::shared();
    let (mut journal, events) = sample(&process);
    process.sys.fail_sync(libc::EIO, 1);
    let error = process.try_append(&mut journal, b"failed", true);
    assert_eq!(error.unwrap_err().kind(), Kind::Io);
    let error = process.try_append(&mut journal, b"more", false);
    assert_eq!(error.unwrap_err().kind(), Kind::Poisoned);
    assert!(journal.is_poisoned() && journal.is_due(None));
    assert_eq!(process.beside().open(false).1, events);
    let mut next = process.begin(journal.next_generation(), &[b"anew"]);
    process.try_append(&mut next, b"on", true).unwrap();
    assert!(!next.is_due(None));
}

#[test]
fn a_journal_whose_name_may_be_lost_is_not_appended_to() {
    let process = Process::shared();
    let (journal, _) = sample(&process);
    // Not the first sync, which is the file's.
    process.sys.fail_after(4, libc::EIO, Repeat::Once);
    let mut next = process.begin(journal.next_generation(), &[b"anew"]);
    assert_eq!(process.files().len(), 2);
    let error = process.try_append(&mut next, b"on", false);
    assert_eq!(error.unwrap_err().kind(), Kind::Poisoned);
    let mut third = process.begin(next.next_generation(), &[b"anew"]);
    process.append(&mut third, b"on");
    assert_eq!(process.files(), [third.path]);
}

#[test]
fn a_journal_is_due_when_most_of_it_is_old() {
    let process = Process::shared();
    let part = vec![1; 40_000];
    let mut journal = process.begin(1, &[&part]);
    let mut written = 0_u64;
    while !journal.is_due(None) {
        process.append(&mut journal, &part);
        written += 1;
    }
    assert_eq!(written, 4);
    let mut small = process.begin(2, &[]);
    let mut written = 0_u64;
    while !small.is_due(None) {
        process.append(&mut small, &part[..1_000]);
        written += 1_008;
    }
    assert!((65_000..66_000).contains(&written));
}

#[test]
fn bodies_are_as_large_as_a_frame_can_hold() {
    let process = Process::shared();
    let most = vec![5; crate::limits::FRAME_BYTES_MAX];
    let over = vec![5; most.len() + 1];
    let mut journal = process.begin(1, &[&most]);
    process.append(&mut journal, &most);
    process.append(&mut journal, b"x");
    for bad in [&over[..], b""] {
        let error = process.try_append(&mut journal, bad, false);
        assert_eq!(error.unwrap_err().kind(), Kind::TooLarge);
        let error = process.try_begin(2, &[bad]).err();
        assert_eq!(error.unwrap().kind(), Kind::TooLarge);
    }
    let (_, met) = process.beside().open(true);
    let expected = [
        Event::Snapshot(most.clone()),
        Event::SnapshotEnd,
        Event::Changes(most),
        Event::Changes(b"x".to_vec()),
    ];
    assert_eq!(met.len(), expected.len());
    assert!(met == expected);
}

#[test]
fn few_files_are_open_however_many_groups_there_are() {
    let process = Process::shared();
    let part = vec![b"x".to_vec()];
    let (context, shared) = (&process.context, &process.shared);
    for number in 0..50 {
        let begun = Journal::begin(context, shared, UID, number, 1, &part).unwrap();
        let mut begun = begun;
        process.append(&mut begun, b"x");
    }
    let peak = process.sys.counters().open_files_peak;
    assert!(peak <= 5, "{peak} files");
}
