//! What may happen to the files of a log: plain damage, and damage that a right checksum covers, so
//! that what lies behind the checksums is reached too.

use crate::Rng;
use edgelog_core::sys::faulty::Image;

/// Changes an image in a few places. Answers whether all of it is damage that checksums notice.
pub fn image(rng: &mut Rng, image: &mut Image) -> bool {
    let mut noticed = true;
    for _ in 0..1 + rng.below(4) {
        let files = image.files();
        if files.is_empty() {
            break;
        }
        let path = rng.pick(&files).clone();
        let other = rng.pick(&files).clone();
        match rng.below(10) {
            0 => {
                image.remove_file(&path);
            }
            1 => {
                // Under another name: another base, generation, partition or topic.
                let bytes = image.read_file(&path).unwrap_or(&[]).to_vec();
                image.write_file(&other_name(rng, &path), &bytes);
            }
            2 => {
                let bytes = image.read_file(&other).unwrap_or(&[]).to_vec();
                image.write_file(&path, &bytes);
            }
            3 | 4 => {
                noticed = false;
                let seed = topic_identity(image, &path);
                let mut bytes = image.read_file(&path).unwrap_or(&[]).to_vec();
                covered(rng, &path, seed, &mut bytes);
                image.write_file(&path, &bytes);
            }
            _ => {
                let mut bytes = image.read_file(&path).unwrap_or(&[]).to_vec();
                let donor = image.read_file(&other).unwrap_or(&[]).to_vec();
                plain(rng, &mut bytes, &donor);
                image.write_file(&path, &bytes);
            }
        }
    }
    noticed
}

/// Another name that a file of a log may have.
fn other_name(rng: &mut Rng, path: &str) -> String {
    let dir = match rng.below(4) {
        0 => "t00000002",
        1 => "t000000ff",
        _ => path.split_once('/').map_or("t00000001", |(dir, _)| dir),
    };
    match rng.below(14) {
        0 => format!("{dir}/TOPIC"),
        1 => format!("{dir}/CHECKPOINT"),
        2 => format!("{path}.tmp"),
        3 => "LOG".to_owned(),
        4 => "RESERVE".to_owned(),
        5 => format!("{dir}/g{:04x}.grp", rng.below(4)),
        6..=8 => {
            let (group, generation) = (rng.below(4), rng.below(5));
            format!("{dir}/g{group:04x}-{generation:08x}.jrn")
        }
        _ => {
            let (partition, generation) = (rng.below(4), rng.below(3));
            let base = match rng.percent(70) {
                true => rng.below(60) as u64,
                false => rng.odd_number(),
            };
            format!("{dir}/p{partition:04x}-{base:016x}-{generation:08x}.seg")
        }
    }
}

/// Damage as media and programs do it.
fn plain(rng: &mut Rng, bytes: &mut Vec<u8>, donor: &[u8]) {
    let at = rng.below(bytes.len().max(1));
    match rng.below(7) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        1 => bytes.truncate(at),
        2 => bytes.resize(bytes.len() + rng.below(5_000), 0),
        3 => {
            let count = rng.below(300);
            bytes.extend(rng.bytes(count));
        }
        4 => {
            let number = rng.odd_number().to_le_bytes();
            let count = *rng.pick(&[1, 2, 4, 8]);
            overwrite(bytes, at, &number[..count]);
        }
        5 => {
            let from = rng.below(donor.len().max(1));
            let count = rng.below(200).min(donor.len().saturating_sub(from));
            overwrite(bytes, at, &donor[from..from + count]);
        }
        _ => {
            let count = rng.below(100).min(bytes.len() - at.min(bytes.len()));
            bytes.drain(at..at + count);
        }
    }
}

fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (byte, new) in bytes.iter_mut().skip(at).zip(new) {
        *byte = *new;
    }
}

/// The identity of the topic in whose directory a file lies.
fn topic_identity(image: &Image, path: &str) -> u64 {
    let dir = path.split_once('/').map_or("", |(dir, _)| dir);
    let description = image.read_file(&format!("{dir}/TOPIC"));
    let bytes = description.and_then(|bytes| bytes.get(16..24)?.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// Changes something that a checksum covers, and the checksum with it.
fn covered(rng: &mut Rng, path: &str, identity: u64, bytes: &mut Vec<u8>) {
    if path.ends_with(".seg") {
        match rng.percent(15) {
            true => header(rng, bytes),
            false => frame(rng, path, identity, bytes),
        }
        return;
    }
    if path.ends_with(".jrn") {
        match rng.percent(15) {
            true => journal_header(rng, bytes),
            false => journal_frame(rng, path, bytes),
        }
        return;
    }
    // A description: the same block twice.
    let half = bytes.len() / 2;
    if half < 24 {
        return;
    }
    bytes.truncate(half);
    let at = 8 + rng.below(half - 12);
    odd_bytes(rng, &mut bytes[..half - 4], at);
    let sum = crc32fast::hash(&bytes[..half - 4]);
    bytes[half - 4..].copy_from_slice(&sum.to_le_bytes());
    let copy = bytes.clone();
    bytes.extend(copy);
}

fn odd_bytes(rng: &mut Rng, bytes: &mut [u8], at: usize) {
    let number = rng.odd_number().to_le_bytes();
    let count = *rng.pick(&[1, 1, 2, 4, 8]);
    overwrite(bytes, at, &number[..count]);
}

fn header(rng: &mut Rng, bytes: &mut [u8]) {
    let Some(name) = bytes.get(82).map(|length| usize::from(*length)) else {
        return;
    };
    if bytes.len() < 87 + name {
        return;
    }
    let at = 8 + rng.below(74);
    odd_bytes(rng, &mut bytes[..82], at);
    let sum = crc32fast::hash(&bytes[..83 + name]);
    bytes[83 + name..87 + name].copy_from_slice(&sum.to_le_bytes());
}

/// Bytes of a journal's header.
const JOURNAL_HEADER: usize = 28;

fn journal_header(rng: &mut Rng, bytes: &mut [u8]) {
    if bytes.len() < JOURNAL_HEADER {
        return;
    }
    let at = 8 + rng.below(16);
    odd_bytes(rng, &mut bytes[..24], at);
    let sum = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
}

/// The identity of the group is in the header, and its other numbers are in the name.
fn journal_frame(rng: &mut Rng, path: &str, bytes: &mut Vec<u8>) {
    let Some(identity) = bytes.get(12..20).and_then(|b| b.try_into().ok()) else {
        return;
    };
    let place = journal_place(path, u64::from_le_bytes(identity));
    change_frame(rng, bytes, JOURNAL_HEADER, &[3, 4, 5, 6, 0x84, 1], &place);
}

fn journal_place(path: &str, identity: u64) -> Vec<u8> {
    let (group, generation) = (number(path, 'g', 1), number(path, 'g', 2));
    let mut place = identity.to_le_bytes().to_vec();
    place.extend((group as u32).to_le_bytes());
    place.extend(0_u64.to_le_bytes());
    place.extend((generation as u32).to_le_bytes());
    place
}

/// A number of a file's name, in order.
fn number(path: &str, letter: char, at: usize) -> u64 {
    let name = path.rsplit('/').next().unwrap_or("");
    let digits = name.split([letter, '-', '.']).nth(at);
    u64::from_str_radix(digits.unwrap_or("0"), 16).unwrap_or(0)
}

/// The place of a segment's frames, but for the byte in the file.
fn segment_place(path: &str, identity: u64) -> Vec<u8> {
    let [partition, base, generation] = [1, 2, 3].map(|at| number(path, 'p', at));
    let mut place = identity.to_le_bytes().to_vec();
    place.extend((partition as u32).to_le_bytes());
    place.extend(base.to_le_bytes());
    place.extend((generation as u32).to_le_bytes());
    place
}

fn frame_sum(place: &[u8], position: usize, covered: &[u8]) -> u32 {
    let seed = crc32fast::hash(place) ^ position as u32;
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(covered);
    hasher.finalize()
}

fn frame(rng: &mut Rng, path: &str, identity: u64, bytes: &mut Vec<u8>) {
    let Some(name) = bytes.get(82).map(|length| usize::from(*length)) else {
        return;
    };
    let place = segment_place(path, identity);
    change_frame(rng, bytes, 87 + name, &[1, 2, 3, 0x81, 0x82, 4, 0], &place);
}

/// All frames from here on, as their lengths say.
fn frames(bytes: &[u8], first: usize) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let mut position = first;
    while let Some(word) = bytes.get(position + 4..position + 8) {
        let word = u32::from_le_bytes(word.try_into().unwrap_or([0; 4]));
        let size = 8 + (word & 0xff_ffff) as usize;
        if size == 8 || position + size > bytes.len() {
            break;
        }
        places.push((position, size));
        position += size;
    }
    places
}

/// Changes a frame, or says once more what one says.
fn change_frame(rng: &mut Rng, bytes: &mut Vec<u8>, first: usize, kinds: &[u8], place: &[u8]) {
    let places = frames(bytes, first);
    if places.is_empty() {
        return;
    }
    let (mut position, mut size) = *rng.pick(&places);
    match rng.below(5) {
        // Another kind.
        0 => bytes[position + 7] = *rng.pick(kinds),
        // Another length: the rest of the file is what it was.
        1 => {
            size = 9 + rng.below(bytes.len() - position - 8);
            let length = (size as u32 - 8).to_le_bytes();
            bytes[position + 4..position + 7].copy_from_slice(&length[..3]);
        }
        // Again, at the end or in the place of another one.
        2 => {
            let again = bytes[position..position + size].to_vec();
            let (last, last_size) = places[places.len() - 1];
            position = match rng.percent(50) {
                true => last + last_size,
                false => rng.pick(&places).0,
            };
            if bytes.len() < position + size {
                bytes.resize(position + size, 0);
            }
            overwrite(bytes, position, &again);
        }
        _ => {
            let at = position + 8 + rng.below(size - 8);
            odd_bytes(rng, &mut bytes[..position + size], at);
        }
    }
    let covered = &bytes[position + 4..position + size];
    let sum = frame_sum(place, position, covered);
    bytes[position..position + 4].copy_from_slice(&sum.to_le_bytes());
}
