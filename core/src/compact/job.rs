//! A compaction of one partition, in steps that take about as long as one segment takes.

use super::keys::Keys;
use super::marks::Marks;
use super::pass::{self, Passage, Passed};
use super::plan::{self, Action, Tally, Terms};
use super::rewrite::rewrite;
use super::verdict::{Judge, Verdict};
use crate::error::Result;
use crate::partition::{Partition, Sealed};
use crate::reserve::Reserve;
use std::ops::Range;

/// Bytes of marks for each key that fits.
const MARK_BYTES_PER_KEY: usize = 64;

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
    /// Marking what goes, from this segment on.
    Mark(usize),
    /// Doing the plan, from this action on.
    Act(usize),
}

/// A compaction under way.
///
/// Segments are treated in windows, as many at a time as can be marked in bounded memory; most
/// often there is one. For each window every key is treated, in as many passes as that takes; then
/// it is planned and written, once.
pub(crate) struct Job {
    judge: Judge,
    keys: Keys,
    keys_max: usize,
    min_garbage_percent: u32,
    /// What is compacted: all sealed segments up to this offset.
    end_offset: u64,
    /// All of them, those that were treated too.
    segments: Vec<Sealed>,
    /// The first segment of the window, and the first one behind it.
    window: Range<usize>,
    /// Of the window.
    marks: Marks,
    tallies: Vec<Tally>,
    actions: Vec<Action>,
    /// Old tombstones are marked.
    forgets: bool,
    phase: Phase,
    /// What is kept of the windows that were planned.
    kept_bytes: u64,
    report: CompactionReport,
}

impl Job {
    /// Compacts what is sealed now.
    pub(crate) fn new(
        partition: &Partition,
        judge: Judge,
        keys_max: usize,
        min_garbage_percent: u32,
    ) -> Job {
        let segments = partition.sealed_segments();
        let end_offset = segments.last().map_or(0, |last| last.summary.next_offset);
        let keys = Keys::new(keys_max, 0);
        Job::over(
            partition,
            judge,
            keys,
            keys_max,
            min_garbage_percent,
            end_offset,
        )
    }

    /// The same for the segments up to an offset, with what is known of keys.
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
            window: 0..0,
            marks: Marks::default(),
            tallies: Vec::new(),
            actions: Vec::new(),
            forgets: false,
            phase: Phase::Act(0),
            kept_bytes: 0,
            report: CompactionReport::default(),
        };
        job.begin_window(partition, 0);
        job
    }

    /// All up to this offset has been gone over, when the job is done.
    pub(crate) fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// What the records that stay take, when the job is done.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    pub(crate) fn report(&self) -> CompactionReport {
        self.report
    }

    /// Adds to the time that it took.
    pub(crate) fn took(&mut self, ms: u64) {
        self.report.duration_ms = self.report.duration_ms.saturating_add(ms);
    }

    /// The window that starts at an offset.
    fn begin_window(&mut self, partition: &Partition, offset: u64) {
        let end = self.end_offset;
        let segments = partition.sealed_segments().into_iter();
        let within = |segment: &Sealed| segment.summary.next_offset <= end;
        self.segments = segments.take_while(within).collect();
        let first = self
            .segments
            .partition_point(|segment| segment.name.base < offset);
        let rest = self.segments.get(first..).unwrap_or(&[]);
        let records = || rest.iter().map(|segment| segment.summary.records);
        let bytes_max = self.keys_max.saturating_mul(MARK_BYTES_PER_KEY);
        let count = Marks::fit(records(), bytes_max);
        self.window = first..first.saturating_add(count);
        self.marks = Marks::new(records().take(count));
        self.tallies = rest.iter().take(count).map(tally_of).collect();
        self.forgets = false;
        self.begin_pass();
    }

    fn begin_pass(&mut self) {
        self.report.passes = self.report.passes.saturating_add(1);
        self.phase = match self.judge.must_learn() {
            true => Phase::Learn(0),
            false => Phase::Mark(0),
        };
    }

    /// Does a step; true when nothing is left to do.
    pub(crate) fn step(&mut self, partition: &Partition) -> Result<bool> {
        match self.phase {
            Phase::Learn(at) => match self.segments.get(at).cloned() {
                Some(segment) => {
                    self.learn(partition, &segment)?;
                    self.phase = Phase::Learn(at.saturating_add(1));
                }
                None => self.phase = Phase::Mark(0),
            },
            Phase::Mark(at) => match self
                .segments
                .get(at)
                .filter(|_| at < self.window.end)
                .cloned()
            {
                Some(segment) => {
                    self.mark(partition, at, &segment)?;
                    self.phase = Phase::Mark(at.saturating_add(1));
                }
                None => self.end_pass(partition),
            },
            Phase::Act(at) => match self.actions.get(at).cloned() {
                Some(action) => {
                    self.act(partition, action)?;
                    self.phase = Phase::Act(at.saturating_add(1));
                }
                None => return Ok(self.end_window(partition)),
            },
        }
        Ok(false)
    }

    fn note_read(&mut self, records: u64, bytes: u64) {
        let report = &mut self.report;
        report.records_read = report.records_read.saturating_add(records);
        report.bytes_read = report.bytes_read.saturating_add(bytes);
    }

    fn learn(&mut self, partition: &Partition, segment: &Sealed) -> Result<()> {
        let (judge, keys) = (&self.judge, &mut self.keys);
        let mut records = 0_u64;
        pass::over(partition, segment, &mut |passed| {
            records = records.saturating_add(1);
            judge.learn(&passed.record, keys);
            Ok(())
        })?;
        self.note_read(records, segment.bytes);
        Ok(())
    }

    /// Marks what goes of a segment. Those before the window only tell whose garbage is there.
    fn mark(&mut self, partition: &Partition, at: usize, segment: &Sealed) -> Result<()> {
        if at < self.window.start && !self.judge.must_learn() {
            return Ok(());
        }
        let (judge, keys) = (&self.judge, &mut self.keys);
        let (marks, forgets) = (&mut self.marks, &mut self.forgets);
        let own = at.checked_sub(self.window.start);
        let mut tally = own.and_then(|own| self.tallies.get_mut(own));
        let mut records = 0_u64;
        let passage = pass::over(partition, segment, &mut |passed| {
            records = records.saturating_add(1);
            let verdict = judge.judge(&passed.record, passed.frame.run_s, keys);
            let goes = match verdict {
                Verdict::Keep => false,
                Verdict::Drop => true,
                Verdict::Superseded(id) => {
                    keys.note_garbage(id);
                    true
                }
                Verdict::OldTombstone(id) => !keys.has_garbage(id),
            };
            let Some((own, tally)) = own.zip(tally.as_mut()).filter(|_| goes) else {
                return Ok(());
            };
            if marks.set(own, passed.number) {
                tally.drop_one(passed.bytes as u64);
                *forgets |= matches!(verdict, Verdict::OldTombstone(_));
            }
            Ok(())
        })?;
        if let Some(tally) = tally {
            tally.damaged |= passage != Passage::Whole || records != segment.summary.records;
        }
        self.note_read(records, segment.bytes);
        Ok(())
    }

    /// Goes on with the keys that are left, or plans.
    fn end_pass(&mut self, partition: &Partition) {
        let report = &mut self.report;
        report.keys_peak = report.keys_peak.max(self.keys.peak() as u64);
        if let Some(hash) = self.keys.next_hash().filter(|_| self.judge.must_learn()) {
            self.keys = Keys::new(self.keys_max, hash);
            return self.begin_pass();
        }
        let behind = self.segments.get(self.window.end);
        let end_offset = behind.map_or(self.end_offset, |segment| segment.name.base);
        let terms = Terms {
            segment_bytes: partition.segment_bytes(),
            min_garbage_percent: self.min_garbage_percent,
            is_first: self.window.start == 0,
            has_successor: partition.has_file_behind(end_offset),
        };
        self.actions = plan::plan(&self.tallies, &terms);
        let window = self.segments.get(self.window.clone()).unwrap_or(&[]);
        let kept = window.iter().zip(&self.tallies).map(kept_part);
        self.kept_bytes = kept.fold(self.kept_bytes, u64::saturating_add);
        self.phase = Phase::Act(0);
    }

    fn act(&mut self, partition: &Partition, action: Action) -> Result<()> {
        let (Action::Remove(range) | Action::Rewrite(range)) = &action;
        let from = self.window.start;
        let within = from.saturating_add(range.start)..from.saturating_add(range.end);
        let segments = self.segments.get(within).unwrap_or(&[]);
        let count = segments.len() as u64;
        let sum = |of: fn(&Sealed) -> u64| segments.iter().map(of).fold(0, u64::saturating_add);
        let (bytes, records) = (sum(|s| s.bytes), sum(|s| s.summary.records));
        let written = match &action {
            Action::Remove(_) => {
                let removed = partition.remove(segments, self.forgets)?;
                removed.then_some((0, 0))
            }
            Action::Rewrite(range) => {
                let (marks, first) = (&self.marks, range.start);
                let mut keeps = |at: usize, passed: &Passed<'_>| {
                    !marks.is_set(first.saturating_add(at), passed.number)
                };
                let write = || rewrite(partition, segments, &mut keeps);
                // What it frees is more than what it takes.
                match Reserve::retry(partition.shared_context(), write)? {
                    Some(new) if partition.replace(segments, &new, self.forgets)? => {
                        Some((new.sealed.bytes, new.sealed.summary.records))
                    }
                    _ => None,
                }
            }
        };
        // None: they are not what they were.
        let Some((bytes_now, records_now)) = written else {
            return Ok(());
        };
        let report = &mut self.report;
        let add = |to: &mut u64, figure: u64| *to = to.saturating_add(figure);
        match action {
            Action::Remove(_) => add(&mut report.segments_removed, count),
            Action::Rewrite(_) => {
                add(&mut report.segments_rewritten, count);
                add(&mut report.bytes_written, bytes_now);
                add(&mut report.records_read, records);
                add(&mut report.bytes_read, bytes);
            }
        }
        add(
            &mut report.records_removed,
            records.saturating_sub(records_now),
        );
        add(&mut report.bytes_freed, bytes.saturating_sub(bytes_now));
        Ok(())
    }

    /// Goes on behind the window; true when nothing is there.
    fn end_window(&mut self, partition: &Partition) -> bool {
        let treated = self.actions.iter().map(|action| {
            let (Action::Remove(range) | Action::Rewrite(range)) = action;
            range.len()
        });
        let treated = treated.fold(0, usize::saturating_add);
        let left_alone = self.window.len().saturating_sub(treated) as u64;
        let damaged = self.tallies.iter().filter(|tally| tally.damaged).count() as u64;
        let report = &mut self.report;
        report.segments_kept = report.segments_kept.saturating_add(left_alone);
        report.segments_damaged = report.segments_damaged.saturating_add(damaged);
        let Some(next) = self
            .segments
            .get(self.window.end)
            .map(|next| next.name.base)
        else {
            return true;
        };
        if self.judge.must_learn() {
            self.keys = Keys::new(self.keys_max, 0);
        }
        self.begin_window(partition, next);
        false
    }
}

/// A segment of which nothing is marked yet.
fn tally_of(segment: &Sealed) -> Tally {
    Tally {
        kept_records: segment.summary.records,
        kept_bytes: segment.bytes,
        garbage_bytes: 0,
        damaged: false,
    }
}

/// What the records that stay take, without what a segment takes in any case.
fn kept_part((segment, tally): (&Sealed, &Tally)) -> u64 {
    let bytes = segment.bytes.saturating_mul(tally.kept_records);
    bytes.checked_div(segment.summary.records).unwrap_or(0)
}
