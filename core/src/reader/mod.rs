//! Reading a topic: forwards or backwards, all partitions or one, all records or one key's.
//!
//! - [`cursor`]: where a reader is in one partition.
//! - [`forward`], [`backward`]: from a cursor to records.
//! - [`control`]: waiting, and waking it from other threads.

mod backward;
mod control;
mod cursor;
mod forward;

pub use control::{ReaderControl, Wait};

use crate::error::{Error, Kind, Result};
use crate::limits::{BUFFER_BYTES_DEFAULT, BUFFER_BYTES_MAX, KEY_BYTES_MAX};
use crate::log::Inner as Log;
use crate::names::SegmentName;
use crate::options::{Direction, OnGap, ReaderOptions, Start};
use crate::partition::{Partition, View};
use crate::record::{partition_of, RecordView};
use crate::segment::Window;
use crate::topic::Inner as Topic;
use backward::Block;
use cursor::{Cursor, Gaps};
use std::sync::Arc;

/// Takes records as a reader comes to them. A closure is one.
pub trait Sink {
    /// The next record, which lies in the reader's buffer.
    fn record(&mut self, record: RecordView<'_>);
    /// Whether it takes this one. If not, the read ends, and the next one begins with it.
    #[inline]
    fn wants(&mut self, record: &RecordView<'_>) -> bool {
        let _ = record;
        true
    }
}

impl<F: FnMut(RecordView<'_>)> Sink for F {
    #[inline]
    fn record(&mut self, record: RecordView<'_>) {
        self(record);
    }
}

/// For reads that need not be fast: the code that reads is there once for all of them.
impl Sink for &mut dyn Sink {
    fn record(&mut self, record: RecordView<'_>) {
        (**self).record(record);
    }

    fn wants(&mut self, record: &RecordView<'_>) -> bool {
        (**self).wants(record)
    }
}

/// Reads a topic. One thread at a time; [`Reader::control`] reaches it from others. It keeps its
/// log from being dropped, not from being closed.
pub struct Reader {
    log: Arc<Log>,
    topic: Arc<Topic>,
    options: ReaderOptions,
    control: ReaderControl,
    cursors: Vec<Cursor>,
    /// The cursor that is read from.
    current: usize,
    window: Window,
    /// The segment that the window shows.
    loaded: Option<SegmentName>,
    /// What a reader that goes backwards has still to give.
    block: Block,
    gaps: Gaps,
    /// Looks for the newest record of a key, with a buffer of its own.
    newest: Option<Box<Reader>>,
}

impl Reader {
    pub(crate) fn open(
        log: Arc<Log>,
        topic: Arc<Topic>,
        options: &ReaderOptions,
    ) -> Result<Reader> {
        let buffer_bytes = match options.buffer_bytes {
            0 => BUFFER_BYTES_DEFAULT,
            bytes if bytes <= BUFFER_BYTES_MAX => bytes,
            bytes => {
                let text = format!("buffer_bytes {bytes}, at most {BUFFER_BYTES_MAX}");
                return Err(Error::invalid(text));
            }
        };
        if options
            .key
            .as_ref()
            .is_some_and(|key| key.len() > KEY_BYTES_MAX)
        {
            return Err(Error::new(
                Kind::TooLarge,
                format!("key over {KEY_BYTES_MAX} bytes"),
            ));
        }
        let numbers = match options.partition {
            Some(number) => number..number.saturating_add(1),
            None => 0..topic.shared.partitions,
        };
        let mut reader = Reader {
            log,
            topic,
            options: options.clone(),
            control: ReaderControl::default(),
            cursors: numbers.map(Cursor::new).collect(),
            current: 0,
            window: Window::new(usize::try_from(buffer_bytes).unwrap_or(usize::MAX)),
            loaded: None,
            block: Block::default(),
            gaps: Gaps::default(),
            newest: None,
        };
        for cursor in &reader.cursors {
            reader.topic.partition(cursor.partition)?;
        }
        reader.control.attach(&reader.topic);
        reader.seek(options.start)?;
        Ok(reader)
    }

    fn check(&self) -> Result<()> {
        self.log.context().check()?;
        self.topic.shared.check()?;
        self.control.check()
    }

    /// Gives the next records, at most `max` of them, one by one to `sink`; answers how many. 0 is
    /// the end for now. All that one call gives stays in place until the next call that takes the
    /// reader mutably.
    pub fn read_with(&mut self, max: usize, mut sink: impl Sink) -> Result<usize> {
        self.check()?;
        if max == 0 {
            return Ok(0);
        }
        match self.options.direction {
            Direction::Forward => self.read_forward(max, &mut sink),
            Direction::Backward => self.read_backward(max, &mut sink),
        }
    }

    /// The next record; `None` is the end for now.
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends from the reader's buffer"
    )]
    pub fn next(&mut self) -> Result<Option<RecordView<'_>>> {
        let mut place = None;
        let mut note = |record: RecordView<'_>| place = Some((record.partition, record.offset));
        let note: &mut dyn Sink = &mut note;
        self.read_with(1, note)?;
        // What was given is in the buffer: taking it apart again is cheap and keeps this safe.
        Ok(place.and_then(|(partition, offset)| self.last_given(partition, offset)))
    }

    /// Goes to another place, in the same direction.
    pub fn seek(&mut self, start: Start) -> Result<()> {
        self.check()?;
        self.block = Block::default();
        self.current = 0;
        for at in 0..self.cursors.len() {
            let Some(number) = self.cursors.get(at).map(|cursor| cursor.partition) else {
                break;
            };
            let placed = match self.options.direction {
                Direction::Forward => self.place_forward(number, start)?,
                Direction::Backward => self.place_backward(number, start)?,
            };
            if let Some(cursor) = self.cursors.get_mut(at) {
                *cursor = placed;
            }
        }
        Ok(())
    }

    /// Goes to an offset of one of its partitions; the others stay where they are.
    pub(crate) fn set_offset(&mut self, partition: u32, offset: u64) -> Result<()> {
        let placed = self.place_forward(partition, Start::Offset(offset))?;
        let number = |cursor: &&mut Cursor| cursor.partition == partition;
        if let Some(cursor) = self.cursors.iter_mut().find(number) {
            *cursor = placed;
        }
        Ok(())
    }

    /// Gives nothing of a partition until its offset is set again.
    pub(crate) fn leave_out(&mut self, partition: u32) {
        let number = |cursor: &&mut Cursor| cursor.partition == partition;
        if let Some(cursor) = self.cursors.iter_mut().find(number) {
            *cursor = Cursor {
                left_out: true,
                ..Cursor::at(partition, cursor.offset)
            };
        }
    }

    /// Reads one partition from here on, from an offset on.
    pub(crate) fn go_to(&mut self, partition: u32, offset: u64) -> Result<()> {
        self.partition(partition)?
            .refresh(&self.topic.shared.options())?;
        let placed = self.place_forward(partition, Start::Offset(offset))?;
        self.cursors.clear();
        self.cursors.push(placed);
        self.current = 0;
        Ok(())
    }

    /// The offset of the record that comes next in a partition; backwards: the one behind it.
    pub fn position(&self, partition: u32) -> Result<u64> {
        self.log.context().check()?;
        let cursor = self
            .cursors
            .iter()
            .find(|cursor| cursor.partition == partition);
        cursor.map(|cursor| cursor.offset).ok_or_else(|| {
            Error::invalid("the reader does not read this partition").in_partition(partition)
        })
    }

    /// How often damage was met, and how many records were lost in it.
    pub fn gaps(&self) -> (u64, u64) {
        (self.gaps.count, self.gaps.records)
    }

    /// The newest record of a key, a tombstone if it was deleted; `None` when there is none. Looks
    /// in the reader's partition, or else in the key's. Does not move the reader.
    pub fn latest(&mut self, key: &[u8]) -> Result<Option<RecordView<'_>>> {
        self.check()?;
        let partition = self
            .options
            .partition
            .unwrap_or_else(|| partition_of(key, self.topic.shared.partitions));
        self.partition(partition)?
            .refresh(&self.topic.shared.options())?;
        let options = ReaderOptions {
            partition: Some(partition),
            start: Start::Latest,
            direction: Direction::Backward,
            on_gap: OnGap::Skip,
            buffer_bytes: self.options.buffer_bytes,
            key: Some(key.to_vec()),
        };
        let newest = Reader::open(self.log.clone(), self.topic.clone(), &options)?;
        self.newest.insert(Box::new(newest)).next()
    }

    /// A handle that wakes or cancels the reader's waits from any thread.
    pub fn control(&self) -> ReaderControl {
        self.control.clone()
    }

    fn partition(&self, number: u32) -> Result<&Partition> {
        self.topic.partition(number)
    }

    /// Whether a segment whose file is gone is one of the partition's all the same. If it is not,
    /// compaction or retention took it, and what took its place is known from here on.
    fn is_still_listed(&self, view: &View) -> Result<bool> {
        let partition = self.partition(view.name.partition)?;
        partition.refresh_names(&self.topic.shared.options())?;
        Ok(partition.view_again(&view.name).is_some())
    }

    /// What looks like damage may be another topic's: this one was deleted, and another has its
    /// directory's name. Fails then.
    fn met_damage(&self) -> Result<()> {
        let _ = self.topic.shared.refresh_options(self.log.context());
        self.topic.shared.check()
    }

    fn fail(&self, view: &SegmentName, source: std::io::Error) -> Error {
        if let Err(closed) = self.log.context().check() {
            return closed;
        }
        Error::io("the segment cannot be read", source)
            .in_partition(view.partition)
            .in_segment(view.base)
    }
}
