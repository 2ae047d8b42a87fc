//! How far back each key is kept: a table that is bounded in memory, whatever the number of keys.
//!
//! Keys are treated in the order of their hashes. When there are more than fit, the upper half of
//! the range goes; a later pass treats it. So each pass knows all keys of its range, and knows
//! them exactly.

use std::ops::RangeInclusive;

/// Offsets that are remembered for each key that fits, on average.
const OFFSETS_PER_KEY: usize = 8;
/// Bytes of keys that are remembered for each key that fits, on average.
const BYTES_PER_KEY: usize = 64;
const NONE: u32 = u32::MAX;

/// What is known of a key.
#[derive(Debug, Clone)]
struct Known {
    hash: u32,
    /// Where its bytes lie.
    key_at: u32,
    key_bytes: u32,
    /// The next one in the same bucket.
    next: u32,
    /// The newest offsets, a ring; the oldest of them is at `oldest`.
    offsets: Vec<u64>,
    oldest: u32,
    /// A record of it is there that is to go.
    has_garbage: bool,
}

impl Known {
    fn keep_from(&self) -> u64 {
        let oldest = self.offsets.get(self.oldest as usize);
        oldest.copied().unwrap_or(0)
    }
}

/// The keys of one pass.
#[derive(Debug)]
pub(crate) struct Keys {
    keys_max: usize,
    range: RangeInclusive<u32>,
    buckets: Vec<u32>,
    known: Vec<Known>,
    bytes: Vec<u8>,
    offsets: usize,
    peak: usize,
}

/// A key in the table.
pub(crate) type KeyId = u32;

impl Keys {
    /// An empty table, for keys whose hashes are this one or higher.
    pub(crate) fn new(keys_max: usize, first_hash: u32) -> Keys {
        let keys_max = keys_max.max(1);
        Keys {
            keys_max,
            range: first_hash..=u32::MAX,
            buckets: vec![NONE; keys_max.next_power_of_two()],
            known: Vec::new(),
            bytes: Vec::new(),
            offsets: 0,
            peak: 0,
        }
    }

    /// The first hash that a further pass has to treat.
    pub(crate) fn next_hash(&self) -> Option<u32> {
        self.range.end().checked_add(1)
    }

    /// The most keys that were known at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// The key, if it is known. Keys out of the range of this pass never are.
    pub(crate) fn find(&self, key: &[u8]) -> Option<KeyId> {
        self.find_hashed(key, crate::crc::hash(key))
    }

    fn find_hashed(&self, key: &[u8], hash: u32) -> Option<KeyId> {
        let mut at = *self.buckets.get(self.bucket(hash))?;
        while let Some(known) = self.known.get(at as usize) {
            if known.hash == hash && self.key_of(known) == key {
                return Some(at);
            }
            at = known.next;
        }
        None
    }

    fn bucket(&self, hash: u32) -> usize {
        // The range is cut from above, so the low bits stay spread.
        (hash as usize) & self.buckets.len().saturating_sub(1)
    }

    fn key_of(&self, known: &Known) -> &[u8] {
        let rest = self.bytes.get(known.key_at as usize..).unwrap_or(&[]);
        rest.get(..known.key_bytes as usize).unwrap_or(&[])
    }

    /// A record of a key of which the newest `count` are kept.
    pub(crate) fn note(&mut self, key: &[u8], offset: u64, is_tombstone: bool, count: u32) {
        let hash = crate::crc::hash(key);
        if !self.range.contains(&hash) {
            return;
        }
        let Some(id) = self.find_hashed(key, hash).or_else(|| self.add(key, hash)) else {
            return;
        };
        let Some(known) = self.known.get_mut(id as usize) else {
            return;
        };
        if is_tombstone {
            self.offsets = self.offsets.saturating_sub(known.offsets.len());
            known.offsets = Vec::new();
            known.oldest = 0;
        }
        if known.offsets.len() < count as usize {
            known.offsets.push(offset);
            self.offsets = self.offsets.saturating_add(1);
        } else if let Some(oldest) = known.offsets.get_mut(known.oldest as usize) {
            *oldest = offset;
            let next = known.oldest.saturating_add(1);
            known.oldest = if next >= count { 0 } else { next };
        }
        self.fit();
    }

    /// Says from which offset on a key is kept; false when there are too many keys, and then it is
    /// not one of them.
    pub(crate) fn set(&mut self, key: &[u8], offset: u64) -> bool {
        let hash = crate::crc::hash(key);
        let found = self.find_hashed(key, hash);
        let id = found.or_else(|| {
            let fits = self.has_room(key.len()) || self.known.is_empty();
            fits.then(|| self.add(key, hash)).flatten()
        });
        let known = id.and_then(|id| self.known.get_mut(id as usize));
        let is_known = known.is_some();
        if let Some(known) = known {
            known.offsets = vec![offset];
        }
        is_known
    }

    fn has_room(&self, key_bytes: usize) -> bool {
        let bytes = self.bytes.len().saturating_add(key_bytes);
        self.known.len() < self.keys_max && bytes <= self.keys_max.saturating_mul(BYTES_PER_KEY)
    }

    fn add(&mut self, key: &[u8], hash: u32) -> Option<KeyId> {
        let id = u32::try_from(self.known.len()).ok()?;
        let key_at = u32::try_from(self.bytes.len()).ok()?;
        let at = self.bucket(hash);
        let bucket = self.buckets.get_mut(at)?;
        let next = std::mem::replace(bucket, id);
        self.bytes.extend_from_slice(key);
        self.known.push(Known {
            hash,
            key_at,
            key_bytes: key.len() as u32,
            next,
            offsets: Vec::new(),
            oldest: 0,
            has_garbage: false,
        });
        self.peak = self.peak.max(self.known.len());
        Some(id)
    }

    fn is_over(&self) -> bool {
        self.known.len() > self.keys_max
            || self.offsets > self.keys_max.saturating_mul(OFFSETS_PER_KEY)
            || self.bytes.len() > self.keys_max.saturating_mul(BYTES_PER_KEY)
    }

    /// Cuts the range in half until what is known fits. One key always does, and keys of one hash
    /// stay together.
    fn fit(&mut self) {
        while self.is_over() && self.known.len() > 1 && self.range.start() < self.range.end() {
            let (first, last) = (*self.range.start(), *self.range.end());
            let middle = first.saturating_add(last.saturating_sub(first) / 2);
            self.range = first..=middle;
            self.forget_outside();
        }
    }

    fn forget_outside(&mut self) {
        let old = std::mem::take(&mut self.known);
        let bytes = std::mem::take(&mut self.bytes);
        self.buckets.fill(NONE);
        self.offsets = 0;
        for known in old {
            if !self.range.contains(&known.hash) {
                continue;
            }
            let (at, count) = (known.key_at as usize, known.key_bytes as usize);
            let key = bytes.get(at..).and_then(|rest| rest.get(..count));
            let id = key.and_then(|key| self.add(key, known.hash));
            if let Some(again) = id.and_then(|id| self.known.get_mut(id as usize)) {
                self.offsets = self.offsets.saturating_add(known.offsets.len());
                again.offsets = known.offsets;
                again.oldest = known.oldest;
            }
        }
    }

    /// From which offset on a key is kept.
    pub(crate) fn keep_from(&self, id: KeyId) -> u64 {
        self.known.get(id as usize).map_or(0, Known::keep_from)
    }

    /// Notes that a record of the key is there that is to go.
    pub(crate) fn note_garbage(&mut self, id: KeyId) {
        if let Some(known) = self.known.get_mut(id as usize) {
            known.has_garbage = true;
        }
    }

    /// Whether a record of the key is there that is to go.
    pub(crate) fn has_garbage(&self, id: KeyId) -> bool {
        self.known
            .get(id as usize)
            .is_none_or(|known| known.has_garbage)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test")]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_last_ones_are_kept_and_a_tombstone_forgets() {
        let mut keys = Keys::new(10, 0);
        for offset in 0..10 {
            keys.note(b"three", offset, false, 3);
        }
        assert_eq!(keys.keep_from(keys.find(b"three").unwrap()), 7);
        keys.note(b"one", 20, false, 1);
        keys.note(b"one", 25, false, 1);
        assert_eq!(keys.keep_from(keys.find(b"one").unwrap()), 25);
        keys.note(b"three", 30, true, 3);
        keys.note(b"three", 31, false, 3);
        assert_eq!(keys.keep_from(keys.find(b"three").unwrap()), 30);
        keys.note(b"three", 32, false, 3);
        keys.note(b"three", 33, false, 3);
        assert_eq!(keys.keep_from(keys.find(b"three").unwrap()), 31);
        assert_eq!(keys.find(b"none"), None);
        assert_eq!(keys.next_hash(), None);
    }

    /// Passes over random records: together they know every key as one large table does.
    #[test]
    fn many_passes_agree_with_one() {
        let mut number = 1_u64;
        let mut random = |below: u64| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (number >> 33) % below
        };
        let records: Vec<(Vec<u8>, u64, bool)> = (0..20_000)
            .map(|offset| {
                let key = format!("key {}", random(3_000)).into_bytes();
                (key, offset, random(50) == 0)
            })
            .collect();
        for count in [1, 2, 20] {
            let mut model: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            for (key, offset, tombstone) in &records {
                let offsets = model.entry(key.clone()).or_default();
                if *tombstone {
                    offsets.clear();
                }
                offsets.push(*offset);
                if offsets.len() > count as usize {
                    offsets.remove(0);
                }
            }
            let (mut first, mut passes, mut seen) = (Some(0), 0, 0);
            while let Some(hash) = first {
                let mut keys = Keys::new(100, hash);
                for (key, offset, tombstone) in &records {
                    keys.note(key, *offset, *tombstone, count);
                }
                assert!(keys.peak() <= 101);
                for (key, offsets) in &model {
                    if let Some(id) = keys.find(key) {
                        assert_eq!(keys.keep_from(id), offsets[0]);
                        seen += 1;
                    }
                }
                first = keys.next_hash();
                passes += 1;
                assert!(passes < 500);
            }
            assert_eq!(seen, model.len());
        }
    }

    #[test]
    fn one_key_fits_whatever_it_takes() {
        let mut keys = Keys::new(1, 0);
        let long = vec![b'x'; 60_000];
        for offset in 0..1_000 {
            keys.note(&long, offset, false, 500);
        }
        let mut first = Some(0);
        let mut found = None;
        while let Some(hash) = first {
            let mut keys = Keys::new(1, hash);
            for offset in 0..1_000 {
                keys.note(&long, offset, false, 500);
            }
            found = found.or(keys.find(&long).map(|id| keys.keep_from(id)));
            first = keys.next_hash();
        }
        assert_eq!(found, Some(500));
    }
}
