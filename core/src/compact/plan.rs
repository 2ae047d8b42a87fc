//! Which segments are written anew, which of them together, and which only go: a pure function of
//! what was counted. Flash wears, so what has little garbage waits until it pays.

use std::ops::Range;

/// What was counted of a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Records that stay.
    pub kept_records: u64,
    /// What they take.
    pub kept_bytes: u64,
    /// What the others take.
    pub garbage_bytes: u64,
    /// Some of it cannot be read: it is left alone.
    pub damaged: bool,
}

impl Tally {
    /// One record of those that stayed goes.
    pub(crate) fn drop_one(&mut self, bytes: u64) {
        self.kept_records = self.kept_records.saturating_sub(1);
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
        self.garbage_bytes = self.garbage_bytes.saturating_add(bytes);
    }

    fn is_dead(&self) -> bool {
        self.kept_records == 0 && !self.damaged
    }

    fn pays(&self, min_garbage_percent: u32) -> bool {
        let all = self.kept_bytes.saturating_add(self.garbage_bytes);
        // 1 percent means any.
        let percent = u64::from(min_garbage_percent.saturating_sub(1));
        let least = all.saturating_mul(percent) / 100;
        !self.damaged && self.garbage_bytes != 0 && self.garbage_bytes >= least
    }

    fn is_small(&self, segment_bytes: u64) -> bool {
        !self.damaged && self.kept_bytes < segment_bytes / SMALL_PART
    }
}

/// A segment is small when what stays of it fills less than this part of one.
const SMALL_PART: u64 = 4;
/// So many small neighbours are merged even if they hold no garbage.
const SMALL_NEIGHBOURS: usize = 4;

/// What is done with segments that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// They go: nothing in them stays, and nothing is before them.
    Remove(Range<usize>),
    /// One new segment takes their place.
    Rewrite(Range<usize>),
}

/// What the plan has to heed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub segment_bytes: u64,
    pub min_garbage_percent: u32,
    /// No segment is before these.
    pub is_first: bool,
    /// A file of the partition remains behind these, so that all of them may go.
    pub has_successor: bool,
}

/// What to do with these segments, in their order.
pub(crate) fn plan(tallies: &[Tally], terms: &Terms) -> Vec<Action> {
    let mut actions = Vec::new();
    let dead = tallies.iter().take_while(|tally| tally.is_dead()).count();
    let may_go = match (terms.is_first, terms.has_successor) {
        (false, _) => 0,
        (true, true) => dead,
        // The last file tells which offset comes next.
        (true, false) => dead.min(tallies.len().saturating_sub(1)),
    };
    if may_go != 0 {
        actions.push(Action::Remove(0..may_go));
    }
    let mut at = may_go;
    while let Some(rest) = tallies.get(at..).filter(|rest| !rest.is_empty()) {
        let count = together(rest, terms);
        let group = rest.get(..count).unwrap_or(&[]);
        let pays = group
            .iter()
            .any(|tally| tally.pays(terms.min_garbage_percent));
        if (pays || count >= SMALL_NEIGHBOURS) && !is_empty_already(group) {
            actions.push(Action::Rewrite(at..at.saturating_add(count)));
        }
        at = at.saturating_add(count.max(1));
    }
    actions
}

/// A single one that was emptied before.
fn is_empty_already(group: &[Tally]) -> bool {
    matches!(group, [one] if one.kept_records == 0 && one.garbage_bytes == 0)
}

/// How many of these fit into one new segment and have a reason to be in it.
fn together(tallies: &[Tally], terms: &Terms) -> usize {
    let has_reason = |tally: &Tally| {
        tally.pays(terms.min_garbage_percent) || tally.is_small(terms.segment_bytes)
    };
    let mut sum = 0_u64;
    let mut count = 0_usize;
    for tally in tallies {
        sum = sum.saturating_add(tally.kept_bytes);
        if !has_reason(tally) || (count != 0 && sum > terms.segment_bytes) {
            break;
        }
        count = count.saturating_add(1);
    }
    count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        segment_bytes: 1000,
        min_garbage_percent: 50,
        is_first: true,
        has_successor: true,
    };

    fn tally(kept: u64, garbage: u64) -> Tally {
        Tally {
            kept_records: kept,
            kept_bytes: kept,
            garbage_bytes: garbage,
            damaged: false,
        }
    }

    #[test]
    fn what_is_dead_at_the_front_goes() {
        let all = [tally(0, 900), tally(0, 900), tally(800, 100)];
        assert_eq!(plan(&all, &TERMS), [Action::Remove(0..2)]);
        let alone = Terms {
            has_successor: false,
            ..TERMS
        };
        let plan = plan(&all[..2], &alone);
        assert_eq!(plan, [Action::Remove(0..1), Action::Rewrite(1..2)]);
    }

    #[test]
    fn little_garbage_waits() {
        let all = [tally(600, 400), tally(490, 510), tally(900, 100)];
        assert_eq!(plan(&all, &TERMS), [Action::Rewrite(1..2)]);
        assert_eq!(plan(&[tally(900, 0)], &TERMS), []);
    }

    #[test]
    fn what_is_dead_in_the_middle_is_one_with_its_neighbours() {
        let all = [
            tally(900, 100),
            tally(0, 900),
            tally(0, 900),
            tally(100, 800),
        ];
        assert_eq!(plan(&all, &TERMS), [Action::Rewrite(1..4)]);
    }

    #[test]
    fn what_fits_together_is_put_together() {
        let all = [tally(400, 600); 5];
        let expected = [
            Action::Rewrite(0..2),
            Action::Rewrite(2..4),
            Action::Rewrite(4..5),
        ];
        assert_eq!(plan(&all, &TERMS), expected);
    }

    #[test]
    fn small_neighbours_are_merged_when_there_are_enough() {
        assert_eq!(plan(&[tally(200, 0); 3], &TERMS), []);
        assert_eq!(plan(&[tally(200, 0); 5], &TERMS), [Action::Rewrite(0..5)]);
        let mixed = [tally(100, 0), tally(100, 900), tally(900, 0)];
        assert_eq!(plan(&mixed, &TERMS), [Action::Rewrite(0..2)]);
    }

    #[test]
    fn damage_is_left_alone_and_parts_the_others() {
        let damaged = Tally {
            damaged: true,
            ..tally(0, 900)
        };
        let all = [damaged, tally(100, 800), damaged, tally(100, 800)];
        let expected = [Action::Rewrite(1..2), Action::Rewrite(3..4)];
        assert_eq!(plan(&all, &TERMS), expected);
    }

    #[test]
    fn an_emptied_segment_is_not_emptied_again() {
        let all = [tally(900, 0), tally(0, 0), tally(900, 0)];
        assert_eq!(plan(&all, &TERMS), []);
    }
}
