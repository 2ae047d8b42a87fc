//! Compaction of this partition: when it is due, its steps, and the moment in which new segments
//! take the place of old ones.

use super::retain::lower;
use super::{Partition, Sealed, State};
use crate::compact::{CompactionReport, Job, Judge, Rewritten};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::names::SegmentName;
use crate::options::TopicOptions;
use crate::segment::header::ClockMark;
use crate::sys::wake::{Deadline, Waiters};
use crate::sys::Sys;
use crate::topic::Shared;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

/// Milliseconds until another look while somebody else compacts.
const BUSY_LOOK_MS: u64 = 1_000;
/// A segment that lacks less than this part of its size is full.
const FULL_LACKS_PART: u64 = 8;
/// Milliseconds until one who waits for a compaction looks whether the log is being closed.
const CLOSE_LOOK_MS: u64 = 50;

/// The steps of compactions, for those who wait for one.
#[derive(Default)]
pub(super) struct Steps {
    ended: Waiters,
    is_under_way: AtomicBool,
    /// The log's thread could not go on, and tries again later.
    is_stuck: AtomicBool,
}

/// A step under way.
struct Under<'a>(&'a Steps);

impl Steps {
    fn begin(&self) -> Under<'_> {
        self.is_under_way.store(true, Ordering::Release);
        Under(self)
    }

    fn note_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Release);
        if is_stuck {
            self.ended.notify();
        }
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.0.is_under_way.store(false, Ordering::Release);
        self.0.ended.notify();
    }
}

impl State {
    /// Bytes of sealed segments that no compaction has gone over. One in which there was no place
    /// for another record counts as a whole one: so a compaction that is due after a segment does
    /// not wait for a second.
    fn uncompacted_bytes(&self) -> u64 {
        let whole = self.limits.segment_bytes;
        let full = whole.saturating_sub(whole / FULL_LACKS_PART);
        let mut bytes = 0_u64;
        for segment in self.sealed.iter().rev() {
            if segment.name.base < self.compacted_to {
                break;
            }
            let least = if segment.bytes >= full { whole } else { 0 };
            bytes = bytes.saturating_add(segment.bytes.max(least));
        }
        bytes
    }

    /// Whether one segment more is more than compaction keeps up with: more than twice what lets
    /// it begin has not been gone over, and all is more than twice as much as that and what was
    /// kept. The second lets a topic of which much is kept grow by as much before it is gone over
    /// again.
    fn is_outrun(&self, trigger_bytes: u64) -> bool {
        let sealed = self.sealed.iter().map(|segment| segment.bytes);
        let next = self.limits.segment_bytes;
        let leaving = self.leaving.iter().map(|segment| segment.bytes);
        let all = sealed.chain(leaving).fold(next, u64::saturating_add);
        let kept_bytes = trigger_bytes.saturating_add(self.kept_bytes);
        let uncompacted = self.uncompacted_bytes();
        let is_behind = uncompacted >= trigger_bytes
            && uncompacted.saturating_add(next) > trigger_bytes.saturating_mul(2);
        (is_behind || !self.leaving.is_empty()) && all > kept_bytes.saturating_mul(2)
    }
}

impl Partition {
    pub(crate) fn shared(&self) -> &Shared {
        &self.topic
    }

    pub(crate) fn sys(&self) -> &dyn Sys {
        &*self.context.sys
    }

    pub(crate) fn shared_context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn clock_mark(&self) -> ClockMark {
        self.context.clock_mark()
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.state.lock().limits.segment_bytes
    }

    /// The segments that never change any more, oldest first.
    pub(crate) fn sealed_segments(&self) -> Vec<Sealed> {
        self.state.lock().sealed.to_vec()
    }

    /// Whether a file is there that holds offsets from this one on.
    pub(crate) fn has_file_behind(&self, offset: u64) -> bool {
        let state = self.state.lock();
        let is_behind = |name: &SegmentName| name.base >= offset;
        let last = state.sealed.last().map(|segment| segment.name);
        let active = state.active.as_ref().filter(|_| state.created);
        last.is_some_and(|name| is_behind(&name))
            || active.is_some_and(|writer| is_behind(&writer.name))
    }

    /// Whether so much was sealed that a compaction is due.
    pub(crate) fn needs_compaction(&self, options: &TopicOptions) -> bool {
        !options.keep.is_empty()
            && self.state.lock().uncompacted_bytes() >= options.compact_trigger_bytes
    }

    fn job(&self, options: &TopicOptions) -> Job {
        let judge = Judge::Rules {
            rules: options.keep.clone(),
            tombstone_ms: options.tombstone_ms,
            run_ms: self.context.run_ms(),
        };
        let keys_max = options.compaction_keys_max as usize;
        Job::new(self, judge, keys_max, options.min_garbage_percent)
    }

    /// Does a step of the compaction that is due or under way; answers in how many milliseconds
    /// the next one is due, if there is one.
    pub(crate) fn compact_due(&self, options: &TopicOptions) -> Result<Option<u64>> {
        let Some(mut job) = self.compaction.try_lock() else {
            return Ok(Some(BUSY_LOOK_MS));
        };
        let done = self.compact_step(&mut job, options);
        let is_stuck = matches!(done, Err(_) | Ok(Some(BUSY_LOOK_MS)));
        self.steps.note_stuck(is_stuck);
        done
    }

    fn compact_step(
        &self,
        job: &mut Option<Box<Job>>,
        options: &TopicOptions,
    ) -> Result<Option<u64>> {
        if job.is_none() {
            if !self.needs_compaction(options) {
                return Ok(None);
            }
            if !self.context.peers.try_work(self.sys())? {
                return Ok(Some(BUSY_LOOK_MS));
            }
            match self.begin() {
                Ok(options) if self.needs_compaction(&options) => {
                    *job = Some(Box::new(self.job(&options)));
                }
                // Somebody else has done it.
                other => {
                    self.context.peers.end_work();
                    return other.map(|_| None);
                }
            }
        }
        let Some(under_way) = job.as_mut() else {
            return Ok(None);
        };
        let step = self.step(under_way);
        if let Ok(false) = step {
            return Ok(Some(0));
        }
        let ended = job.take();
        self.context.peers.end_work();
        if let (Some(ended), Ok(true)) = (ended, &step) {
            self.note_compacted(&ended);
        }
        step?;
        // What was sealed meanwhile may be enough for another, and nobody tells of it again.
        Ok(self.needs_compaction(options).then_some(0))
    }

    /// Compacts now, all of it, on this thread.
    pub(crate) fn compact_now(&self) -> Result<CompactionReport> {
        self.compact_as(|partition, options| partition.job(options))
    }

    /// Nobody else compacts from here on. What others did before counts: a segment that one of
    /// them replaced would be missing, and with it what it says of its keys; and the rules are
    /// everybody's.
    fn begin(&self) -> Result<TopicOptions> {
        self.topic.refresh_options(&self.context)?;
        let options = self.topic.options();
        self.refresh_names(&options)?;
        Ok(options)
    }

    /// Does a whole job; for the application's own, which gets the topic's least part of garbage.
    pub(crate) fn compact_as(
        &self,
        job: impl FnOnce(&Partition, &TopicOptions) -> Job,
    ) -> Result<CompactionReport> {
        self.context.check_writable()?;
        self.topic.check()?;
        // One that is under way goes on behind this one, with what is left.
        let mut slot = self.compaction.lock();
        let owns_work = slot.take().is_some();
        if !owns_work && !self.context.peers.try_work(self.sys())? {
            let text = "another compaction of the log is under way";
            return Err(Error::new(Kind::Busy, text).in_partition(self.number));
        }
        let answer = self.begin().and_then(|options| {
            let mut job = job(self, &options);
            while !self.step(&mut job)? {}
            Ok(job)
        });
        self.context.peers.end_work();
        drop(slot);
        let job = answer?;
        self.note_compacted(&job);
        Ok(job.report())
    }

    fn step(&self, job: &mut Job) -> Result<bool> {
        let _step = self.steps.begin();
        let started_ms = self.context.sys.boot_ms();
        let before = job.report();
        let done = job.step(self);
        job.took(self.context.sys.boot_ms().saturating_sub(started_ms));
        self.count(&before, &job.report());
        done
    }

    /// Counts what a step did: a job that never comes to its end, because another takes its place
    /// or an error ends it, has changed the files, too.
    fn count(&self, before: &CompactionReport, now: &CompactionReport) {
        let counters = &mut self.state.lock().counters;
        let add = |to: &mut u64, now: u64, before: u64| {
            *to = to.saturating_add(now.saturating_sub(before));
        };
        let (removed, written) = (now.records_removed, now.bytes_written);
        add(
            &mut counters.compacted_records,
            removed,
            before.records_removed,
        );
        add(&mut counters.rewritten_bytes, written, before.bytes_written);
    }

    fn note_compacted(&self, job: &Job) {
        let mut state = self.state.lock();
        state.compacted_to = state.compacted_to.max(job.end_offset());
        state.kept_bytes = job.kept_bytes();
        let counters = &mut state.counters;
        counters.compactions = counters.compactions.saturating_add(1);
    }

    /// An append that has outrun the compaction waits until that has caught up, so that what a
    /// topic takes is bounded; but not for ever, and not when nobody is at it.
    pub(crate) fn wait_for_compaction(&self, options: &TopicOptions) {
        let trigger_bytes = options.compact_trigger_bytes;
        let must_wait = || self.is_compacted() && self.state.lock().is_outrun(trigger_bytes);
        if options.keep.is_empty() || !must_wait() {
            return;
        }
        let deadline = Deadline::after(Some(self.context.peers.busy_timeout()));
        while !deadline.has_passed() && must_wait() {
            let until = deadline.within_ms(CLOSE_LOOK_MS);
            let _ = self.steps.ended.wait_unless(until, || Ok(!must_wait()));
        }
    }

    /// Whether somebody compacts this now, or is about to.
    fn is_compacted(&self) -> bool {
        let is_stuck = self.steps.is_stuck.load(Ordering::Acquire);
        let is_next = self.context.has_thread && !is_stuck && !self.context.signal.is_stopped();
        (is_next || self.steps.is_under_way.load(Ordering::Acquire)) && self.topic.check().is_ok()
    }

    /// Puts a new segment in the place of old ones; false when they are not what they were, and
    /// then nothing was changed. `forgets`: old tombstones are left out of it.
    pub(crate) fn replace(&self, old: &[Sealed], new: &Rewritten, forgets: bool) -> Result<bool> {
        if forgets {
            // A tombstone is left out: what it deleted was removed before, and must not come back
            // after a power cut.
            self.topic.sync_dir(&self.context)?;
        }
        let answer = self.swap(old, Some(new));
        if !matches!(answer, Ok(true)) {
            let _ = self.context.sys.unlink(&new.temporary);
            return answer;
        }
        // The new name is on the medium before the old ones go.
        self.see_off(old, false)?;
        Ok(true)
    }

    /// Removes the oldest segments, of which nothing stays; false when they are not what they
    /// were. `forgets`: an old tombstone is in them, and must not go before what it deleted.
    pub(crate) fn remove(&self, old: &[Sealed], forgets: bool) -> Result<bool> {
        if !self.swap(old, None)? {
            return Ok(false);
        }
        // Some name of the partition is always on the medium.
        self.see_off(old, forgets)?;
        Ok(true)
    }

    /// Puts the names that there are now on the medium and removes the files of segments that are
    /// no longer known, one after the other even on the medium when they have to go in order.
    fn see_off(&self, old: &[Sealed], in_order: bool) -> Result<()> {
        let remove = || {
            self.topic.sync_dir(&self.context)?;
            old.iter().try_for_each(|segment| {
                self.unlink(segment)?;
                match in_order {
                    true => self.topic.sync_dir(&self.context),
                    false => Ok(()),
                }
            })
        };
        let removed = remove();
        self.state.lock().leaving = Vec::new();
        removed
    }

    fn unlink(&self, segment: &Sealed) -> Result<()> {
        let path = self.path(&segment.name);
        self.context.files.forget(&path);
        match self.context.sys.unlink(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                let what = "the compacted segment cannot be removed";
                Err(self.io_error(what, segment.name, e))
            }
            _ => Ok(()),
        }
    }

    fn swap(&self, old: &[Sealed], new: Option<&Rewritten>) -> Result<bool> {
        let mut state = self.enter()?;
        self.look_at_lock(&mut state)?;
        self.context.peers.look_at_work()?;
        if self.context.peers.are_shared() {
            // Others may have removed some.
            self.see_sealed(&mut state)?;
        }
        let Some(first) = old.first() else {
            return Ok(false);
        };
        let at = state
            .sealed
            .partition_point(|segment| segment.name < first.name);
        let is_same = |(a, b): (&Sealed, &Sealed)| a.name == b.name;
        let present = state.sealed.iter().skip(at).take(old.len());
        if present.len() != old.len() || !present.zip(old).all(is_same) {
            return Ok(false);
        }
        let is_last = state.sealed.len() == old.len() && !state.created;
        if new.is_none() && (at != 0 || is_last) {
            return Ok(false);
        }
        if let Some(new) = new {
            let path = self.path(&new.sealed.name);
            let sys = &*self.context.sys;
            sys.rename(&new.temporary, &path).map_err(|e| {
                self.io_error(
                    "the compacted segment cannot get its name",
                    new.sealed.name,
                    e,
                )
            })?;
        }
        let end = at.saturating_add(old.len());
        let before = state.bytes();
        state.leaving = state.sealed.drain(at..end).collect();
        if let Some(new) = new {
            state.sealed.insert(at, new.sealed.clone());
            // Who syncs what was in the old ones before the directory is synced owes this name.
            state.new_name_from = lower(state.new_name_from, Some(new.sealed.name.base));
        }
        self.resized(before, state.bytes());
        Ok(true)
    }
}
