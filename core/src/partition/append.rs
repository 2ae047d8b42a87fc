//! From a record to the file: admit, encode into the active segment, hand to the system.

use super::{Entered, Limits, Partition, Sealed, State};
use crate::context::plausible;
use crate::error::{Error, Kind, Result};
use crate::frame::RECORDS_HEAD_BYTES_MAX;
use crate::limits::{
    BATCH_RECORDS_MAX, FRAME_BYTES_MAX, GATHER_BYTES, INDEX_STEP_BYTES_MIN, KEEP_MS,
};
use crate::names::SegmentName;
use crate::options::Durability;
use crate::record::{Record, Size};
use crate::reserve::Reserve;
use crate::segment::writer::{Extent, Mark, Stamp};
use crate::segment::Header;
use crate::segment::Writer;
use crate::sys::OpenHow;
use std::slice;

/// Whether the topic's room is to be looked at before a new segment starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Check,
    Made,
}

/// What became of an append.
pub(crate) enum Appended {
    /// The offset of its first record.
    At(u64),
    /// A new segment is due and there must be room for this many bytes first.
    NeedsRoom(u64),
}

/// What a batch takes in one frame.
fn batch_size(records: &[Record<'_>]) -> Result<Size> {
    if records.len() > BATCH_RECORDS_MAX {
        let text = format!(
            "batch of {} records, at most {BATCH_RECORDS_MAX}",
            records.len()
        );
        return Err(Error::new(Kind::TooLarge, text));
    }
    let mut sum = Size::default();
    for record in records {
        let size = record.size()?;
        sum.payload = sum.payload.saturating_add(size.payload);
        sum.bound = sum.bound.saturating_add(size.bound);
    }
    Ok(sum)
}

impl Partition {
    /// Appends one record; while it is only buffered it may share its frame with others. Fails
    /// without having used an offset.
    pub(crate) fn append(
        &self,
        record: &Record<'_>,
        durability: Durability,
        room: Room,
    ) -> Result<Appended> {
        if durability != Durability::Buffered {
            return self.append_batch(slice::from_ref(record), durability, room);
        }
        let size = record.size()?;
        let coarse_ms = self.context.sys.wall_coarse_ms();
        let trusted = record.timestamp_ms.is_some() || plausible(coarse_ms);
        let mut state = self.enter()?;
        if let Some(writer) = &mut state.active {
            if writer.gathers(size.bound, trusted) {
                let timestamp_ms = record.timestamp_ms;
                let timestamp_ms = timestamp_ms.unwrap_or_else(|| writer.since_start(coarse_ms));
                let offset = writer.push(record, timestamp_ms);
                state.counters.count(1, size);
                return Ok(Appended::At(offset));
            }
        }
        let wall_ms = self.context.sys.wall_ms();
        let timestamp_ms = record.timestamp_ms.unwrap_or(wall_ms);
        let bound = framed(size.bound)?;
        if let Some(needs_room) = self.admit(&mut state, 1, bound, room)? {
            return Ok(needs_room);
        }
        let run_s = self.make_ready(&mut state, bound)?;
        // One page over, so that the buffer leaves in whole pages wherever they start.
        let buffer_bytes = state.limits.buffer_bytes.saturating_add(GATHER_BYTES);
        let end = state.rotates_at();
        let Some(writer) = &mut state.active else {
            return Err(no_active());
        };
        writer.start_frame(Stamp { wall_ms, trusted }, run_s);
        writer.gather_within(buffer_bytes, end);
        let offset = writer.push(record, timestamp_ms);
        state.counters.count(1, size);
        self.note_buffered(state);
        Ok(Appended::At(offset))
    }

    /// Appends records as one atomic batch, in a frame of their own. Fails without having used an
    /// offset.
    pub(crate) fn append_batch(
        &self,
        records: &[Record<'_>],
        durability: Durability,
        room: Room,
    ) -> Result<Appended> {
        let size = batch_size(records)?;
        let bound = framed(size.bound)?;
        let mut state = self.enter()?;
        if let Some(needs_room) = self.admit(&mut state, records.len(), bound, room)? {
            return Ok(needs_room);
        }
        let first = state.next_offset();
        self.batch(&mut state, records, bound, durability)?;
        state.counters.count(records.len(), size);
        let next = state.next_offset();
        match durability {
            Durability::Buffered => self.note_buffered(state),
            Durability::Written => {}
            Durability::Synced => {
                drop(state);
                self.sync_to(next)?;
            }
        }
        Ok(Appended::At(first))
    }

    /// Sees to an active segment that has a place for so much more.
    fn admit(
        &self,
        state: &mut State,
        records: usize,
        bound: usize,
        room: Room,
    ) -> Result<Option<Appended>> {
        if state.next_offset().checked_add(records as u64).is_none() {
            let text = "the partition has no offsets left";
            return Err(Error::new(Kind::Full, text).in_partition(self.number));
        }
        if state.is_due_to_rotate(bound) {
            let needed = state.limits.segment_bytes.max(bound as u64);
            if room == Room::Check && self.topic.lacks_room(&self.context, needed) {
                return Ok(Some(Appended::NeedsRoom(needed)));
            }
            self.rotate(state)?;
        }
        Ok(None)
    }

    /// Records of one frame of their own.
    fn batch(
        &self,
        state: &mut State,
        records: &[Record<'_>],
        bound: usize,
        durability: Durability,
    ) -> Result<()> {
        let wall_ms = self.context.sys.wall_ms();
        let trusted =
            plausible(wall_ms) || records.iter().all(|record| record.timestamp_ms.is_some());
        let run_s = self.make_ready(state, bound)?;
        let Some(writer) = &mut state.active else {
            return Err(no_active());
        };
        let mark = writer.mark();
        writer.start_frame(Stamp { wall_ms, trusted }, run_s);
        for record in records {
            writer.push(record, record.timestamp_ms.unwrap_or(wall_ms));
        }
        if writer.open_body_bytes() > FRAME_BYTES_MAX {
            writer.roll_back(mark);
            return Err(Error::new(Kind::Internal, "a frame outgrew its bound"));
        }
        writer.close_frame();
        if durability == Durability::Buffered {
            return Ok(());
        }
        let written = self.write_out(state, Extent::All);
        if written.is_err() {
            self.take_back(state, mark);
        }
        written
    }

    /// Makes the active segment ready for another frame: what waits goes out when it has waited
    /// long enough or the new frame would not fit beside it, and the segment learns of this boot.
    /// Answers the running time in seconds.
    fn make_ready(&self, state: &mut State, bound: usize) -> Result<u64> {
        let clock = self.context.clock_mark();
        if let Err(error) = self.context.peers.look_at(clock.boot_ms) {
            state.barred = true;
            return Err(error);
        }
        let Limits {
            buffer_bytes,
            linger_ms,
            ..
        } = state.limits;
        let buffer_bytes = buffer_bytes.saturating_add(GATHER_BYTES);
        let since = state.buffered_since_ms;
        let lingers = since.is_some_and(|ms| clock.boot_ms.saturating_sub(ms) >= linger_ms);
        let waiting = state.active.as_ref().map_or(0, Writer::waiting_bytes);
        if waiting != 0 && lingers {
            self.write_out(state, Extent::All)?;
        } else if waiting != 0 && waiting.saturating_add(bound) > buffer_bytes {
            self.write_out(state, Extent::Pages)?;
        }
        let Some(writer) = &mut state.active else {
            return Err(no_active());
        };
        if state.clock.boot_id != clock.boot_id && clock.boot_id != 0 {
            writer.push_clock(&clock);
            state.clock = clock;
        }
        Ok(clock.run_ms / 1000)
    }

    fn note_buffered(&self, mut state: Entered<'_>) {
        if state.turn.taken {
            state.give_way(self.context.sys.boot_ms());
        }
        if state.has_new_records() && state.buffered_since_ms.is_none() {
            state.buffered_since_ms = Some(self.context.sys.boot_ms());
            let look_ms = self.look_in(state.limits.linger_ms);
            drop(state);
            self.context.signal.due_in(look_ms);
        }
    }

    /// When to look again at what is buffered: it keeps the partition from other processes, which
    /// may ask for it.
    fn look_in(&self, left_ms: u64) -> u64 {
        match self.context.peers.are_shared() {
            true => left_ms.min(KEEP_MS),
            false => left_ms,
        }
    }

    /// There is more to read, and more to sync.
    pub(super) fn note_written(&self, state: &mut State) {
        self.topic.waiters.notify();
        let interval_ms = state.limits.sync_interval_ms;
        if interval_ms != 0 && state.unsynced_since_ms.is_none() {
            state.unsynced_since_ms = Some(self.context.sys.boot_ms());
            self.context.signal.due_in(interval_ms);
        }
    }

    /// Hands what waits to the system, unless the room on the medium is kept for others.
    pub(super) fn write_out(&self, state: &mut State, extent: Extent) -> Result<()> {
        if self.context.reserve.is_missing() && state.has_new_records() {
            Reserve::restore(&self.context)?;
        }
        self.hand_out(state, extent)
    }

    /// Hands what waits to the system.
    fn hand_out(&self, state: &mut State, extent: Extent) -> Result<()> {
        self.context.peers.check()?;
        let keep = state.limits.buffer_bytes.saturating_mul(2);
        let Some(writer) = &mut state.active else {
            return Ok(());
        };
        if writer.waiting_bytes() == 0 {
            return Ok(());
        }
        let name = writer.name;
        let how = if state.created {
            OpenHow::Write
        } else {
            OpenHow::CreateNew
        };
        let file = self
            .context
            .files
            .get(&writer.path, how)
            .map_err(|e| self.io_error("the segment cannot be opened for writing", name, e))?;
        if !state.created {
            state.created = true;
            state.new_name_from.get_or_insert(name.base);
        }
        let (before, readable) = (writer.file_end(), writer.written());
        let answer = writer.write_out(&*file, extent);
        let written = writer.file_end().saturating_sub(before);
        let is_readable = writer.written() != readable;
        writer.shrink(keep);
        if writer.waiting_bytes() == 0 {
            state.buffered_since_ms = None;
        }
        state.counters.written_bytes = state.counters.written_bytes.saturating_add(written);
        self.resized(0, written);
        if is_readable {
            self.note_written(state);
        }
        answer.map_err(|e| {
            let error = self.io_error("the segment cannot be written", name, e);
            if error.kind() == Kind::NoSpace {
                Reserve::note_full(&self.context);
            }
            error.at_position(before)
        })
    }

    /// Takes back what was added since the mark, from the file too.
    #[cold]
    fn take_back(&self, state: &mut State, mark: Mark) {
        let Some(writer) = &mut state.active else {
            return;
        };
        let before = writer.file_end();
        writer.roll_back(mark);
        if let Ok(file) = self.context.files.get(&writer.path, OpenHow::Write) {
            writer.trim(&*file);
        }
        let cut = before.saturating_sub(writer.file_end());
        self.resized(cut, 0);
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&self) -> Result<()> {
        if !self.look()?.has_new_records() {
            return Ok(());
        }
        let mut state = self.enter()?;
        self.look_at_lock(&mut state)?;
        self.write_out(&mut state, Extent::All)
    }

    /// Writes out what is buffered, of a log that is closed already.
    pub(crate) fn flush_last(&self) -> Result<()> {
        let mut state = self.state.lock();
        let flushed = match state.has_new_records() {
            _ if state.poisoned => Err(self.poisoned()),
            // The last chance that these records have.
            true => self
                .look_at_lock(&mut state)
                .and_then(|()| self.hand_out(&mut state, Extent::All)),
            false => Ok(()),
        };
        self.give_last(&mut state);
        flushed
    }

    /// Writes out what has been buffered for long enough; answers when the next is due, in
    /// milliseconds from now.
    pub(crate) fn flush_due(&self) -> Result<Option<u64>> {
        let Some(mut state) = self.enter_buffered()? else {
            return Ok(None);
        };
        let Some(since_ms) = state.buffered_since_ms else {
            return Ok(None);
        };
        let now_ms = self.context.sys.boot_ms();
        let waited = now_ms.saturating_sub(since_ms);
        let left = state.limits.linger_ms.saturating_sub(waited);
        if left != 0 {
            state.give_way(now_ms);
            return Ok(state.buffered_since_ms.map(|_| self.look_in(left)));
        }
        self.look_at_lock(&mut state)?;
        let answer = self.write_out(&mut state, Extent::All);
        if answer.is_err() {
            // It stays buffered; the next look is one linger away.
            state.buffered_since_ms = Some(self.context.sys.boot_ms());
        }
        let again = state.buffered_since_ms.map(|_| state.limits.linger_ms);
        answer.map(|()| again)
    }

    /// Seals the active segment, if it has records, and begins the next one. Nothing of the new
    /// one touches the medium before its first frame does.
    pub(super) fn rotate(&self, state: &mut State) -> Result<()> {
        self.look_at_lock(state)?;
        self.seal(state)?;
        let clock = self.context.clock_mark();
        let name = SegmentName {
            partition: self.number,
            base: state.next_offset(),
            generation: 0,
        };
        let header = Header {
            name,
            topic_uid: self.topic.uid,
            partitions: self.topic.partitions,
            wall_ms: self.context.sys.wall_ms(),
            clock,
            topic: self.topic.name.clone(),
        };
        let place = self.topic.place(&name);
        let path = name.path(&self.topic.dir);
        state.active = Some(Writer::new(
            &header,
            path,
            place,
            state.limits.segment_bytes,
        ));
        state.created = false;
        state.clock = clock;
        Ok(())
    }

    /// Ends the active segment with its footer.
    pub(super) fn seal(&self, state: &mut State) -> Result<()> {
        let Some(writer) = &mut state.active else {
            return Ok(());
        };
        let mark = writer.mark();
        writer.push_footer();
        let (name, summary) = (writer.name, writer.summary);
        if let Err(error) = self.hand_out(state, Extent::All) {
            self.take_back(state, mark);
            return Err(error);
        }
        let Some(writer) = state.active.take() else {
            return Ok(());
        };
        state.next_offset = summary.next_offset;
        state.sealed.push(Sealed {
            name,
            summary,
            bytes: writer.written(),
        });
        state.created = false;
        if state.limits.compacts {
            // A compaction may be due.
            self.context.signal.due_in(0);
        }
        Ok(())
    }
}

#[cold]
fn no_active() -> Error {
    Error::new(Kind::Internal, "no active segment")
}

impl State {
    /// Whether the active segment has no place for this much more.
    #[inline]
    fn is_due_to_rotate(&self, bound: usize) -> bool {
        let Some(writer) = &self.active else {
            return true;
        };
        let end = writer.end().saturating_add(bound as u64);
        writer.summary.records != 0 && end > self.rotates_at()
    }

    /// Where in its file the active segment has to end so that its footer fits behind: the
    /// footer is little more than its index, which has an entry for every few KiB.
    fn rotates_at(&self) -> u64 {
        let segment_bytes = self.limits.segment_bytes;
        let entries = (segment_bytes / INDEX_STEP_BYTES_MIN).min(256);
        segment_bytes.saturating_sub(entries.saturating_mul(16).saturating_add(64))
    }

    /// Whether anything but a new segment's header waits to be written.
    pub(super) fn has_new_records(&self) -> bool {
        self.active
            .as_ref()
            .is_some_and(|writer| writer.summary.next_offset != writer.written_offset())
    }
}

impl super::Counters {
    #[inline]
    fn count(&mut self, records: usize, size: Size) {
        self.appended_records = self.appended_records.saturating_add(records as u64);
        self.appended_bytes = self.appended_bytes.saturating_add(size.payload as u64);
    }
}

/// The bound of a frame whose records have this bound.
#[inline]
fn framed(records: usize) -> Result<usize> {
    let bound = records.saturating_add(RECORDS_HEAD_BYTES_MAX);
    if bound > FRAME_BYTES_MAX {
        return Err(over_frame(bound));
    }
    Ok(bound)
}

#[cold]
fn over_frame(bound: usize) -> Error {
    Error::new(
        Kind::TooLarge,
        format!("frame of {bound} bytes, at most {FRAME_BYTES_MAX}"),
    )
}
