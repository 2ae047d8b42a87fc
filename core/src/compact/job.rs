//! A compaction of one partition, in steps that take about as long as one segment takes.

use super::keys::Keys;
use super::pass::{self, Passage, Passed};
use super::plan::{self, Action, Tally, Terms};
use super::rewrite::rewrite;
use super::verdict::{Judge, Verdict};
use crate::error::Result;
use crate::partition::{Partition, Sealed};

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Records that were gone over; once for each pass.
    pub records_read: u64,
    /// Bytes of the segments that were read.
    pub bytes_read: u64,
    /// Records that went.
    pub records_removed: u64,
    /// Bytes of the new segments.
    pub bytes_written: u64,
    /// By how many bytes the files became fewer.
    pub bytes_freed: u64,
    /// Segments whose place new ones took.
    pub segments_rewritten: u64,
    /// Segments that only went.
    pub segments_removed: u64,
    /// Segments that were left as they are.
    pub segments_kept: u64,
    /// Of those, segments with damage in them.
    pub segments_damaged: u64,
    /// Passes over the keys.
    pub passes: u64,
    /// The most keys that were known at once.
    pub keys_peak: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl CompactionReport {
    /// Adds what another compaction did.
    pub(crate) fn add(&mut self, other: &CompactionReport) {
        let add = |to: &mut u64, figure: u64| *to = to.saturating_add(figure);
        add(&mut self.records_read, other.records_read);
        add(&mut self.bytes_read, other.bytes_read);
        add(&mut self.records_removed, other.records_removed);
        add(&mut self.bytes_written, other.bytes_written);
        add(&mut self.bytes_freed, other.bytes_freed);
        add(&mut self.segments_rewritten, other.segments_rewritten);
        add(&mut self.segments_removed, other.segments_removed);
        add(&mut self.segments_kept, other.segments_kept);
        add(&mut self.segments_damaged, other.segments_damaged);
        add(&mut self.passes, other.passes);
        self.keys_peak = self.keys_peak.max(other.keys_peak);
        add(&mut self.duration_ms, other.duration_ms);
    }
}

enum Phase {
    /// Learning how far back each key is kept, from this segment on.
    Learn(usize),
    /// Counting what stays and what goes, from this segment on.
    Count(usize),
    /// Learning which keys' garbage stays in segments that are left alone, from this one on.
    Leave(usize),
    /// Doing the plan, from this action on.
    Act(usize),
}

/// A compaction under way.
pub(crate) struct Job {
    judge: Judge,
    keys: Keys,
    keys_max: usize,
    min_garbage_percent: u32,
    /// What is compacted: all sealed segments up to this offset.
    end_offset: u64,
    segments: Vec<Sealed>,
    tallies: Vec<Tally>,
    actions: Vec<Action>,
    /// Of each segment, whether the plan treats it.
    treated: Vec<bool>,
    /// There are tombstones that have stayed for long enough.
    has_old_tombstones: bool,
    phase: Phase,
    report: CompactionReport,
}

impl Job {
    pub(crate) fn new(
        partition: &Partition,
        judge: Judge,
        keys_max: usize,
        min_garbage_percent: u32,
    ) -> Job {
        let segments = partition.sealed_segments();
        let end_offset = segments.last().map_or(0, |last| last.summary.next_offset);
        Job::over(
            partition,
            judge,
            Keys::new(keys_max, 0),
            keys_max,
            min_garbage_percent,
            end_offset,
        )
    }

    /// The same over the segments up to an offset, with what is known of keys.
    pub(crate) fn over(
        partition: &Partition,
        judge: Judge,
        keys: Keys,
        keys_max: usize,
        min_garbage_percent: u32,
        end_offset: u64,
    ) -> Job {
        let mut job = Job {
            judge,
            keys,
            keys_max,
            min_garbage_percent,
            end_offset,
            segments: Vec::new(),
            tallies: Vec::new(),
            actions: Vec::new(),
            treated: Vec::new(),
            has_old_tombstones: false,
            phase: Phase::Learn(0),
            report: CompactionReport::default(),
        };
        job.begin_pass(partition);
        job
    }

    /// All up to this offset has been gone over, when the job is done.
    pub(crate) fn end_offset(&self) -> u64 {
        self.end_offset
    }

    pub(crate) fn report(&self) -> CompactionReport {
        self.report
    }

    /// Adds to the time that it took.
    pub(crate) fn took(&mut self, ms: u64) {
        self.report.duration_ms = self.report.duration_ms.saturating_add(ms);
    }

    fn begin_pass(&mut self, partition: &Partition) {
        let end = self.end_offset;
        let segments = partition.sealed_segments().into_iter();
        let within = |segment: &Sealed| segment.summary.next_offset <= end;
        self.segments = segments.take_while(within).collect();
        self.tallies.clear();
        self.has_old_tombstones = false;
        self.report.passes = self.report.passes.saturating_add(1);
        self.phase = match self.judge.must_learn() {
            true => Phase::Learn(0),
            false => Phase::Count(0),
        };
    }

    /// Does a step; true when nothing is left to do.
    pub(crate) fn step(&mut self, partition: &Partition) -> Result<bool> {
        match self.phase {
            Phase::Learn(at) => {
                let Some(segment) = self.segments.get(at).cloned() else {
                    self.phase = Phase::Count(0);
                    return Ok(false);
                };
                let (judge, keys) = (&self.judge, &mut self.keys);
                let mut records = 0_u64;
                pass::over(partition, &segment, &mut |passed| {
                    records = records.saturating_add(1);
                    judge.learn(&passed.record, keys);
                    Ok(())
                })?;
                self.note_read(records, segment.bytes);
                self.phase = Phase::Learn(at.saturating_add(1));
                Ok(false)
            }
            Phase::Count(at) => {
                let Some(segment) = self.segments.get(at).cloned() else {
                    self.make_plan(partition);
                    return Ok(false);
                };
                self.count(partition, &segment)?;
                self.phase = Phase::Count(at.saturating_add(1));
                Ok(false)
            }
            Phase::Leave(at) => {
                let Some(segment) = self.segments.get(at).cloned() else {
                    self.phase = Phase::Act(0);
                    return Ok(false);
                };
                let is_left = self.treated.get(at) == Some(&false);
                let has_garbage = self.tallies.get(at).is_some_and(|t| t.garbage_bytes != 0);
                if is_left && has_garbage {
                    self.leave(partition, &segment)?;
                }
                self.phase = Phase::Leave(at.saturating_add(1));
                Ok(false)
            }
            Phase::Act(at) => {
                let Some(action) = self.actions.get(at).cloned() else {
                    return Ok(self.end_pass(partition));
                };
                self.act(partition, action)?;
                self.phase = Phase::Act(at.saturating_add(1));
                Ok(false)
            }
        }
    }

    fn note_read(&mut self, records: u64, bytes: u64) {
        let report = &mut self.report;
        report.records_read = report.records_read.saturating_add(records);
        report.bytes_read = report.bytes_read.saturating_add(bytes);
    }

    fn count(&mut self, partition: &Partition, segment: &Sealed) -> Result<()> {
        let mut tally = Tally {
            bytes: segment.bytes,
            ..Tally::default()
        };
        let mut records = 0_u64;
        let (judge, keys) = (&self.judge, &self.keys);
        let old_tombstones = &mut self.has_old_tombstones;
        let passage = pass::over(partition, segment, &mut |passed| {
            records = records.saturating_add(1);
            let verdict = judge.judge(&passed.record, passed.frame.run_s, keys);
            *old_tombstones |= matches!(verdict, Verdict::OldTombstone(_));
            let bytes = passed.bytes as u64;
            match verdict {
                Verdict::Keep => {
                    tally.kept_records = tally.kept_records.saturating_add(1);
                    tally.kept_bytes = tally.kept_bytes.saturating_add(bytes);
                }
                // An old tombstone goes with what it deleted, most likely in this compaction.
                Verdict::Drop | Verdict::Superseded(_) | Verdict::OldTombstone(_) => {
                    tally.garbage_bytes = tally.garbage_bytes.saturating_add(bytes);
                }
            }
            Ok(())
        })?;
        tally.damaged = passage != Passage::Whole;
        self.tallies.push(tally);
        self.note_read(records, segment.bytes);
        Ok(())
    }

    fn make_plan(&mut self, partition: &Partition) {
        let terms = Terms {
            segment_bytes: partition.segment_bytes(),
            min_garbage_percent: self.min_garbage_percent,
            has_successor: partition.has_file_behind(self.end_offset),
        };
        self.actions = plan::plan(&self.tallies, &terms);
        self.treated = vec![false; self.segments.len()];
        for action in &self.actions {
            let (Action::Remove(range) | Action::Rewrite(range)) = action;
            let treated = self.treated.get_mut(range.clone());
            treated.unwrap_or_default().fill(true);
        }
        self.phase = match self.has_old_tombstones {
            true => Phase::Leave(0),
            false => Phase::Act(0),
        };
    }

    /// Notes whose garbage is in a segment that is left alone: their tombstones stay.
    fn leave(&mut self, partition: &Partition, segment: &Sealed) -> Result<()> {
        let (judge, keys) = (&self.judge, &mut self.keys);
        let mut records = 0_u64;
        pass::over(partition, segment, &mut |passed| {
            records = records.saturating_add(1);
            let verdict = judge.judge(&passed.record, passed.frame.run_s, keys);
            if let Verdict::Superseded(id) = verdict {
                keys.note_remains(id);
            }
            Ok(())
        })?;
        self.note_read(records, segment.bytes);
        Ok(())
    }

    fn act(&mut self, partition: &Partition, action: Action) -> Result<()> {
        let (Action::Remove(range) | Action::Rewrite(range)) = &action;
        let segments = self.segments.get(range.clone()).unwrap_or(&[]).to_vec();
        let (count, before) = (segments.len() as u64, bytes_of(&segments));
        let records = |segments: &[Sealed]| {
            let each = segments.iter().map(|s| s.summary.records);
            each.fold(0_u64, u64::saturating_add)
        };
        let records_before = records(&segments);
        let (after, removed) = match action {
            Action::Remove(_) => {
                if !partition.remove(&segments)? {
                    return Ok(());
                }
                self.report.segments_removed = self.report.segments_removed.saturating_add(count);
                (0, records_before)
            }
            Action::Rewrite(_) => {
                let Some(written) = self.rewrite(partition, &segments)? else {
                    return Ok(());
                };
                self.report.segments_rewritten =
                    self.report.segments_rewritten.saturating_add(count);
                let (bytes, kept) = (written.bytes, written.summary.records);
                self.report.bytes_written = self.report.bytes_written.saturating_add(bytes);
                (bytes, records_before.saturating_sub(kept))
            }
        };
        let report = &mut self.report;
        report.records_removed = report.records_removed.saturating_add(removed);
        let freed = before.saturating_sub(after);
        report.bytes_freed = report.bytes_freed.saturating_add(freed);
        Ok(())
    }

    fn rewrite(&mut self, partition: &Partition, segments: &[Sealed]) -> Result<Option<Sealed>> {
        let (judge, keys) = (&self.judge, &self.keys);
        let (mut read, mut forgets) = (0_u64, false);
        let mut keeps = |passed: &Passed<'_>| {
            read = read.saturating_add(1);
            match judge.judge(&passed.record, passed.frame.run_s, keys) {
                Verdict::Keep => true,
                Verdict::Drop | Verdict::Superseded(_) => false,
                // Only when all that it deleted goes, too.
                Verdict::OldTombstone(id) => {
                    let stays = keys.remains(id);
                    forgets |= !stays;
                    stays
                }
            }
        };
        let mut written = rewrite(partition, segments, &mut keeps)?;
        if let Some(written) = &mut written {
            written.forgets = forgets;
        }
        self.note_read(read, bytes_of(segments));
        let Some(written) = written else {
            return Ok(None);
        };
        let replaced = partition.replace(segments, &written)?;
        Ok(replaced.then_some(written.sealed))
    }

    /// Goes on with the keys that are left; true when there are none.
    fn end_pass(&mut self, partition: &Partition) -> bool {
        let report = &mut self.report;
        report.keys_peak = report.keys_peak.max(self.keys.peak() as u64);
        let left_alone = self.treated.iter().filter(|is| !**is).count() as u64;
        report.segments_kept = left_alone;
        report.segments_damaged = self.tallies.iter().filter(|t| t.damaged).count() as u64;
        match self.keys.next_hash().filter(|_| self.judge.must_learn()) {
            Some(hash) => {
                self.keys = Keys::new(self.keys_max, hash);
                self.begin_pass(partition);
                false
            }
            None => true,
        }
    }
}

fn bytes_of(segments: &[Sealed]) -> u64 {
    let each = segments.iter().map(|segment| segment.bytes);
    each.fold(0, u64::saturating_add)
}
