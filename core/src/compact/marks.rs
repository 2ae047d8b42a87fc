//! Which records of some segments are to go: a bit for each.

/// The marks of segments that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    words: Vec<u32>,
    /// Where each segment's bits start, and behind the last one where they end.
    starts: Vec<usize>,
}

impl Marks {
    /// How many segments with these numbers of records can be marked in so many bytes: at least
    /// one.
    pub(crate) fn fit(records: impl Iterator<Item = u64>, bytes_max: usize) -> usize {
        let mut bits = (bytes_max as u64).saturating_mul(8);
        let mut count = 0_usize;
        for records in records {
            if records > bits && count != 0 {
                break;
            }
            bits = bits.saturating_sub(records);
            count = count.saturating_add(1);
        }
        count
    }

    /// No marks yet, for segments with these numbers of records.
    pub(crate) fn new(records: impl Iterator<Item = u64>) -> Marks {
        let mut end = 0_usize;
        let mut starts = vec![0];
        for records in records {
            end = end.saturating_add(usize::try_from(records).unwrap_or(usize::MAX));
            starts.push(end);
        }
        Marks {
            words: vec![0; end.div_ceil(32)],
            starts,
        }
    }

    fn bit(&self, segment: usize, record: usize) -> Option<usize> {
        let start = *self.starts.get(segment)?;
        let end = *self.starts.get(segment.checked_add(1)?)?;
        start.checked_add(record).filter(|bit| *bit < end)
    }

    /// Marks a record; false when it is marked already, or has no place.
    pub(crate) fn set(&mut self, segment: usize, record: usize) -> bool {
        let Some(bit) = self.bit(segment, record) else {
            return false;
        };
        let Some(word) = self.words.get_mut(bit / 32) else {
            return false;
        };
        let mask = 1_u32 << (bit % 32);
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    pub(crate) fn is_set(&self, segment: usize, record: usize) -> bool {
        let bit = self.bit(segment, record);
        bit.is_some_and(|bit| {
            let word = self.words.get(bit / 32).copied().unwrap_or(0);
            word & (1_u32 << (bit % 32)) != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_has_its_own_mark() {
        let mut marks = Marks::new([3, 0, 40].into_iter());
        assert!(marks.set(0, 2) && marks.set(2, 0) && marks.set(2, 39));
        assert!(!marks.set(0, 2), "twice");
        assert!(!marks.set(0, 3) && !marks.set(1, 0) && !marks.set(2, 40) && !marks.set(3, 0));
        for (segment, record, is) in [(0, 2, true), (0, 1, false), (2, 0, true), (2, 39, true)] {
            assert_eq!(marks.is_set(segment, record), is);
        }
        assert!(!marks.is_set(0, 3) && !marks.is_set(9, 0));
    }

    #[test]
    fn at_least_one_segment_fits() {
        assert_eq!(Marks::fit([100, 1].into_iter(), 1), 1);
        assert_eq!(Marks::fit([4, 4, 1].into_iter(), 1), 2);
        assert_eq!(Marks::fit([0, 8, 0].into_iter(), 1), 3);
        assert_eq!(Marks::fit([].into_iter(), 1), 0);
    }
}
