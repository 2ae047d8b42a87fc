//! The policies and faults, each shown on the smallest workload that tells it from the others.

#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;

fn create(sys: &FaultySys, path: &str) -> Arc<dyn File> {
    sys.open(path, OpenHow::CreateNew).unwrap()
}

/// A durable file `f` holding `old`, and nothing to remember.
fn with_old_file() -> (FaultySys, Arc<dyn File>) {
    let sys = FaultySys::new();
    sys.write_file("f", b"old");
    sys.checkpoint();
    let file = sys.open("f", OpenHow::Write).unwrap();
    (sys, file)
}

fn errno<T>(answer: io::Result<T>) -> Option<i32> {
    answer.err().and_then(|error| error.raw_os_error())
}

fn after(sys: &FaultySys, how: Cut) -> Image {
    sys.cut(sys.operations(), how)
}

#[test]
fn operations_are_numbered_and_told() {
    let sys = FaultySys::new();
    sys.make_dir("d").unwrap();
    let file = create(&sys, "d/a");
    file.write_at(b"abc", 2).unwrap();
    file.truncate(4).unwrap();
    file.sync_data().unwrap();
    sys.rename("d/a", "d/b").unwrap();
    sys.sync_dir("d").unwrap();
    sys.unlink("d/b").unwrap();
    sys.remove_dir("d").unwrap();
    let texts: Vec<String> = (0..sys.operations())
        .map(|index| sys.operation_text(index).unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "make_dir d",
            "create d/a",
            "write d/a 2+3",
            "truncate d/a 4",
            "sync_data d/a",
            "rename d/a d/b",
            "sync_dir d",
            "unlink d/b",
            "remove_dir d"
        ]
    );
    assert_eq!(sys.cut(0, Cut::KeepAll), Image::new());
    let image = sys.cut(4, Cut::KeepAll);
    assert_eq!(image.read_file("d/a"), Some(&b"\0\0ab"[..]));
    assert_eq!(after(&sys, Cut::KeepAll), sys.image());
    assert_eq!(sys.image(), Image::new());
}

#[test]
fn what_was_synced_survives_every_policy() {
    let sys = FaultySys::new();
    sys.make_dir("d").unwrap();
    sys.sync_dir("").unwrap();
    let file = create(&sys, "d/a");
    file.write_at(&[7; 9000], 0).unwrap();
    file.sync_data().unwrap();
    sys.sync_dir("d").unwrap();
    let synced = sys.operations();
    file.write_at(&[8; 9000], 9000).unwrap();
    sys.rename("d/a", "d/b").unwrap();
    for at in synced..=sys.operations() {
        for how in Cut::all_policies() {
            let image = sys.cut(at, how);
            let bytes = image.read_file("d/a").or_else(|| image.read_file("d/b"));
            assert!(bytes.unwrap().starts_with(&[7; 9000]), "{at} {how:?}");
        }
    }
}

#[test]
fn a_synced_file_without_a_synced_name_is_lost() {
    let sys = FaultySys::new();
    sys.make_dir("d").unwrap();
    let file = create(&sys, "d/a");
    file.write_at(b"x", 0).unwrap();
    file.sync_data().unwrap();
    sys.sync_dir("d").unwrap();
    assert_eq!(after(&sys, Cut::DropUnsynced), Image::new());
    sys.sync_dir("").unwrap();
    assert_eq!(after(&sys, Cut::DropUnsynced), sys.image());
}

#[test]
fn unsynced_contents_and_names_go_back() {
    let (sys, file) = with_old_file();
    let before = sys.image();
    file.truncate(1).unwrap();
    file.write_at(b"new", 1).unwrap();
    sys.rename("f", "g").unwrap();
    create(&sys, "h");
    assert_eq!(after(&sys, Cut::DropUnsynced), before);
    let names_only = after(&sys, Cut::DropData);
    assert_eq!(names_only.files(), ["g", "h"]);
    assert_eq!(names_only.read_file("g"), Some(&b"old"[..]));
    let data_only = after(&sys, Cut::DropNames);
    assert_eq!(data_only.files(), ["f"]);
    assert_eq!(data_only.read_file("f"), Some(&b"onew"[..]));
}

#[test]
fn an_unsynced_unlink_is_undone_and_the_contents_are_back() {
    let (sys, file) = with_old_file();
    drop(file);
    sys.unlink("f").unwrap();
    assert_eq!(
        after(&sys, Cut::DropUnsynced).read_file("f"),
        Some(&b"old"[..])
    );
    sys.sync_dir("").unwrap();
    assert_eq!(after(&sys, Cut::DropUnsynced), Image::new());
}

#[test]
fn a_replaced_file_is_back_unless_the_directory_was_synced() {
    let (sys, _) = with_old_file();
    let file = create(&sys, "tmp");
    file.write_at(b"new", 0).unwrap();
    file.sync_data().unwrap();
    sys.rename("tmp", "f").unwrap();
    let image = after(&sys, Cut::DropUnsynced);
    assert_eq!(image.files(), ["f"]);
    assert_eq!(image.read_file("f"), Some(&b"old"[..]));
    sys.sync_dir("").unwrap();
    let image = after(&sys, Cut::DropUnsynced);
    assert_eq!(image.files(), ["f"]);
    assert_eq!(image.read_file("f"), Some(&b"new"[..]));
}

#[test]
fn a_rename_between_directories_needs_both_synced() {
    let sys = FaultySys::new();
    sys.write_file("a/f", b"x");
    sys.write_file("b/g", b"y");
    sys.checkpoint();
    sys.rename("a/f", "b/f").unwrap();
    sys.sync_dir("b").unwrap();
    let image = after(&sys, Cut::DropUnsynced);
    assert_eq!(image.files(), ["a/f", "b/f", "b/g"]);
    sys.sync_dir("a").unwrap();
    assert_eq!(after(&sys, Cut::DropUnsynced), sys.image());
}

#[test]
fn a_directory_is_renamed_with_what_is_in_it() {
    let sys = FaultySys::new();
    sys.write_file("a/f", b"x");
    sys.rename("a", "b").unwrap();
    assert_eq!(sys.files(), ["b/f"]);
    assert_eq!(sys.list("").unwrap(), ["b"]);
    assert_eq!(errno(sys.rename("b", "b/c")), Some(libc::EINVAL));
}

#[test]
fn the_last_write_is_torn_where_the_policy_says() {
    let (sys, file) = with_old_file();
    file.write_at(b"1234", 3).unwrap();
    file.write_at(b"abcdef", 7).unwrap();
    let torn = |how| after(&sys, how).read_file("f").unwrap().to_vec();
    assert_eq!(torn(Cut::Torn { bytes: 1 }), b"old1234a");
    assert_eq!(torn(Cut::Torn { bytes: 0 }), b"old1234");
    assert_eq!(torn(Cut::Torn { bytes: 100 }), b"old1234abcdef");
    assert_eq!(torn(Cut::TornHalf), b"old1234abc");
    assert_eq!(torn(Cut::TornPages), b"old1234");
    file.sync_data().unwrap();
    assert_eq!(torn(Cut::TornHalf), b"old1234abcdef");
}

#[test]
fn pages_tear_at_multiples_of_their_size_in_the_file() {
    let (sys, file) = with_old_file();
    file.write_at(&[1; 10_000], 3).unwrap();
    assert_eq!(
        after(&sys, Cut::TornPages).read_file("f").unwrap().len(),
        4096
    );
    let (sys, file) = with_old_file();
    file.write_at(&[1; 4093], 3).unwrap();
    file.write_at(&[2; 4097], 4096).unwrap();
    assert_eq!(
        after(&sys, Cut::TornPages).read_file("f").unwrap().len(),
        8192
    );
}

#[test]
fn unsynced_tails_turn_to_zeros() {
    let (sys, file) = with_old_file();
    file.write_at(b"new", 3).unwrap();
    file.sync_data().unwrap();
    file.write_at(b"lost", 6).unwrap();
    let image = after(&sys, Cut::ZeroTail);
    assert_eq!(image.read_file("f"), Some(&b"oldnew\0\0\0\0"[..]));
    let second = create(&sys, "g");
    second.write_at(b"xyz", 0).unwrap();
    let image = after(&sys, Cut::ZeroTail);
    assert_eq!(image.read_file("g"), Some(&b"\0\0\0"[..]));
}

#[test]
fn a_half_done_rename_leaves_two_names_of_one_inode() {
    let (sys, _) = with_old_file();
    let file = create(&sys, "tmp");
    file.write_at(b"new", 0).unwrap();
    sys.rename("tmp", "f").unwrap();
    let image = after(&sys, Cut::BothNames);
    assert_eq!(image.files(), ["f", "tmp"]);
    let restarted = FaultySys::from_image(image);
    let tmp = restarted.open("tmp", OpenHow::Write).unwrap();
    tmp.truncate(0).unwrap();
    assert_eq!(restarted.read_file("f").unwrap(), b"");
    // As POSIX says, renaming one name of an inode to the other does nothing.
    restarted.rename("tmp", "f").unwrap();
    assert_eq!(restarted.files(), ["f", "tmp"]);
    restarted.unlink("tmp").unwrap();
    assert_eq!(restarted.files(), ["f"]);

    sys.sync_dir("").unwrap();
    assert_eq!(after(&sys, Cut::BothNames), sys.image());
    create(&sys, "later");
    assert_eq!(after(&sys, Cut::BothNames), sys.image());
}

#[test]
fn reordering_keeps_and_loses_each_operation_for_some_seed() {
    let (sys, file) = with_old_file();
    file.write_at(b"A", 10).unwrap();
    file.write_at(b"B", 20).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let how = Cut::Reordered { seed };
        let image = after(&sys, how);
        assert_eq!(image, after(&sys, how));
        let bytes = image.read_file("f").unwrap();
        assert!(bytes.starts_with(b"old"));
        seen.insert((bytes.contains(&b'A'), bytes.contains(&b'B')));
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn equality_is_of_contents_and_of_shared_inodes() {
    let one = FaultySys::new();
    one.write_file("a", b"x");
    one.write_file("b", b"x");
    let two = FaultySys::new();
    two.write_file("b", b"x");
    two.write_file("a", b"x");
    assert_eq!(one.image(), two.image());
    two.checkpoint();
    two.unlink("b").unwrap();
    two.rename("a", "b").unwrap();
    let shared = after(&two, Cut::BothNames);
    assert_eq!(shared.files(), ["a", "b"]);
    assert_ne!(one.image(), shared);
    assert!(one.flip_bit("a", 7));
    assert_ne!(one.image(), Image::new());
    assert_eq!(one.read_file("a").unwrap(), [b'x' ^ 0x80]);
    assert!(!one.flip_bit("a", 8));
}

#[test]
fn tampering_is_no_operation_and_survives() {
    let (sys, file) = with_old_file();
    file.write_at(b"new", 3).unwrap();
    sys.write_file("d/e/g", b"extra");
    assert!(sys.flip_bit("f", 0));
    assert_eq!(sys.operations(), 1);
    let image = after(&sys, Cut::DropUnsynced);
    assert_eq!(image.read_file("d/e/g"), Some(&b"extra"[..]));
    assert_eq!(image.read_file("f"), Some(&b"nld"[..]));
    assert_eq!(sys.cut(0, Cut::KeepAll).files(), ["f"]);
    assert!(sys.remove_file("f"));
    assert!(!sys.remove_file("f"));
    assert_eq!(after(&sys, Cut::DropUnsynced).files(), ["d/e/g"]);
}

#[test]
fn what_a_failed_sync_should_have_covered_stays_lost() {
    let (sys, file) = with_old_file();
    file.write_at(b"A", 3).unwrap();
    sys.fail_sync(libc::EIO, 1);
    assert_eq!(errno(file.sync_data()), Some(libc::EIO));
    file.write_at(b"B", 4).unwrap();
    file.sync_data().unwrap();
    assert_eq!(sys.read_file("f").unwrap(), b"oldAB");
    assert_eq!(
        after(&sys, Cut::DropUnsynced).read_file("f"),
        Some(&b"old\0B"[..])
    );
}

#[test]
fn operations_fail_once_or_always() {
    let (sys, file) = with_old_file();
    sys.fail_after(1, libc::EIO, Repeat::Once);
    file.write_at(b"a", 0).unwrap();
    assert_eq!(errno(file.write_at(b"b", 0)), Some(libc::EIO));
    file.write_at(b"c", 0).unwrap();
    sys.fail_after(0, libc::ENOSPC, Repeat::Always);
    assert_eq!(errno(file.truncate(0)), Some(libc::ENOSPC));
    assert_eq!(errno(sys.unlink("f")), Some(libc::ENOSPC));
    assert_eq!(errno(sys.open("n", OpenHow::Create)), Some(libc::ENOSPC));
    assert_eq!(sys.read_file("f").unwrap(), b"cld");
    sys.heal();
    sys.unlink("f").unwrap();
    assert_eq!(sys.operations(), 3);
}

#[test]
fn transfers_are_short_and_reads_fail_on_request() {
    let (sys, file) = with_old_file();
    sys.short_writes(Some(2));
    assert_eq!(file.write_at(b"abc", 3).unwrap(), 2);
    sys.short_reads(Some(3));
    let mut buffer = [0u8; 9];
    assert_eq!(file.read_at(&mut buffer, 1).unwrap(), 3);
    assert_eq!(&buffer[..3], b"lda");
    sys.fail_reads(libc::EIO, 1);
    assert_eq!(errno(file.read_at(&mut buffer, 0)), Some(libc::EIO));
    sys.heal();
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
    assert_eq!(file.read_at(&mut buffer, 5).unwrap(), 0);
    assert_eq!(file.read_at(&mut buffer, u64::MAX).unwrap(), 0);
}

#[test]
fn a_full_medium_writes_short_then_refuses_to_grow() {
    let (sys, file) = with_old_file();
    sys.set_capacity_bytes(Some(5));
    assert_eq!(file.write_at(b"abcd", 3).unwrap(), 2);
    assert_eq!(errno(file.write_at(b"cd", 5)), Some(libc::ENOSPC));
    assert_eq!(file.write_at(b"O", 0).unwrap(), 1);
    file.truncate(4).unwrap();
    create(&sys, "g");
    assert_eq!(file.write_at(b"cd", 4).unwrap(), 1);
    sys.set_capacity_bytes(None);
    assert_eq!(file.write_at(b"cd", 5).unwrap(), 2);
    assert_eq!(sys.read_file("f").unwrap(), b"Oldaccd");
}

#[test]
fn a_full_jffs2_only_unlinks() {
    let (sys, file) = with_old_file();
    sys.write_file("big", &[0; 4 * 65_536]);
    sys.write_file("small", &[0; 100]);
    sys.set_capacity_bytes(Some(4 * 65_536 + 103));
    sys.set_full_rules(FullRules::jffs2());
    file.write_at(b"O", 0).unwrap();
    assert_eq!(errno(file.write_at(b"x", 3)), Some(libc::ENOSPC));
    assert_eq!(errno(file.write_at(b"o", 0)), Some(libc::ENOSPC));
    assert_eq!(errno(file.truncate(0)), Some(libc::ENOSPC));
    assert_eq!(errno(sys.rename("f", "g")), Some(libc::ENOSPC));
    assert_eq!(errno(sys.make_dir("d")), Some(libc::ENOSPC));
    assert_eq!(errno(sys.open("n", OpenHow::CreateNew)), Some(libc::ENOSPC));
    sys.unlink("small").unwrap();
    assert_eq!(errno(file.write_at(b"x", 3)), Some(libc::ENOSPC));
    let open = sys.open("big", OpenHow::Read).unwrap();
    sys.unlink("big").unwrap();
    assert_eq!(errno(file.write_at(b"x", 3)), Some(libc::ENOSPC));
    drop(open);
    file.write_at(b"x", 3).unwrap();
    file.truncate(0).unwrap();
}

#[test]
fn a_read_only_medium_refuses_changes() {
    let (sys, file) = with_old_file();
    sys.set_read_only(true);
    assert_eq!(errno(file.write_at(b"x", 0)), Some(libc::EROFS));
    assert_eq!(errno(sys.open("f", OpenHow::Write)), Some(libc::EROFS));
    assert_eq!(errno(sys.open("n", OpenHow::Create)), Some(libc::EROFS));
    assert!(matches!(
        sys.lock("f", Hold::Exclusive),
        Err(LockError::Io(_))
    ));
    sys.open("f", OpenHow::Read).unwrap();
}

#[test]
fn errors_are_those_of_linux() {
    let sys = FaultySys::new();
    sys.write_file("d/f", b"");
    assert_eq!(errno(sys.open("x", OpenHow::Read)), Some(libc::ENOENT));
    assert_eq!(errno(sys.open("x/y", OpenHow::Create)), Some(libc::ENOENT));
    assert_eq!(
        errno(sys.open("d/f/y", OpenHow::Create)),
        Some(libc::ENOTDIR)
    );
    assert_eq!(errno(sys.open("d", OpenHow::Write)), Some(libc::EISDIR));
    assert_eq!(
        errno(sys.open("d/f", OpenHow::CreateNew)),
        Some(libc::EEXIST)
    );
    assert_eq!(errno(sys.unlink("d")), Some(libc::EISDIR));
    assert_eq!(errno(sys.remove_dir("d")), Some(libc::ENOTEMPTY));
    assert_eq!(errno(sys.remove_dir("d/f")), Some(libc::ENOTDIR));
    assert_eq!(errno(sys.make_dir("d")), Some(libc::EEXIST));
    assert_eq!(errno(sys.list("d/f")), Some(libc::ENOTDIR));
    assert_eq!(errno(sys.sync_dir("x")), Some(libc::ENOENT));
    assert_eq!(errno(sys.rename("x", "y")), Some(libc::ENOENT));
    assert_eq!(errno(sys.rename("d/f", "d")), Some(libc::EISDIR));
    assert_eq!(errno(sys.size_bytes("x")), Some(libc::ENOENT));
    assert_eq!(errno(sys.open("../x", OpenHow::Create)), Some(libc::ENOENT));
    assert_eq!(sys.operations(), 0);
}

#[test]
fn a_file_without_a_name_can_still_be_used() {
    let (sys, file) = with_old_file();
    sys.unlink("f").unwrap();
    file.write_at(b"new", 3).unwrap();
    assert_eq!(file.size_bytes().unwrap(), 6);
    assert_eq!(sys.image(), Image::new());
    assert_eq!(after(&sys, Cut::KeepAll), Image::new());
}

#[test]
fn locks_exclude_until_dropped_or_rebooted() {
    let sys = FaultySys::new();
    let held = sys.lock("lock", Hold::Exclusive).unwrap();
    assert!(matches!(
        sys.clone().lock("lock", Hold::Exclusive),
        Err(LockError::Held(_))
    ));
    drop(held);
    let before = sys.lock("lock", Hold::Exclusive).unwrap();
    sys.reboot();
    let now = sys.lock("lock", Hold::Exclusive).unwrap();
    drop(before);
    assert!(matches!(
        sys.lock("lock", Hold::Exclusive),
        Err(LockError::Held(_))
    ));
    drop(now);
    sys.lock("lock", Hold::Exclusive).unwrap();
    assert_eq!(sys.operations(), 1);
}

#[test]
fn clocks_go_as_told() {
    let sys = FaultySys::new();
    assert_eq!(
        (sys.wall_ms(), sys.boot_ms()),
        (WALL_MS_AT_START, BOOT_MS_AT_START)
    );
    sys.advance_ms(5);
    sys.step_wall(-10);
    assert_eq!(sys.wall_ms(), WALL_MS_AT_START - 5);
    assert_eq!(sys.boot_ms(), BOOT_MS_AT_START + 5);
    sys.set_wall_ms(3);
    sys.step_wall(-10);
    assert_eq!(sys.wall_ms(), 0);
    let boot_id = sys.boot_id();
    sys.reboot();
    assert_ne!(sys.boot_id(), boot_id);
    assert_eq!(sys.boot_ms(), 0);
    assert_ne!(sys.random_u64(), sys.random_u64());
}
