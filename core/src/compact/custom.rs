//! The application decides record by record: it goes over them, says what goes, and commits.

use super::job::{CompactionReport, Job};
use super::keys::Keys;
use super::verdict::Judge;
use crate::error::{Error, Kind, Result};
use crate::limits::{COMPACTION_DROPS_MAX, KEY_BYTES_MAX};
use crate::options::ReaderOptions;
use crate::reader::{Reader, Sink};
use crate::record::RecordView;
use crate::topic::Topic;

/// A compaction that the application decides. It covers the sealed segments of one partition as
/// they are when it begins. Dropping it changes nothing.
pub struct Compaction {
    topic: Topic,
    partition: u32,
    end_offset: u64,
    reader: Reader,
    keys_max: usize,
    /// What was said; it is used up by the commit.
    said: Option<Said>,
}

struct Said {
    keys: Keys,
    drops: Vec<u64>,
}

/// Passes on what lies before an offset.
struct Before<'a> {
    end_offset: u64,
    given: usize,
    sink: &'a mut dyn Sink,
}

impl Sink for Before<'_> {
    fn record(&mut self, record: RecordView<'_>) {
        if record.offset < self.end_offset {
            self.given = self.given.saturating_add(1);
            self.sink.record(record);
        }
    }
}

impl Compaction {
    pub(crate) fn begin(topic: Topic, partition: u32, keys_max: usize) -> Result<Compaction> {
        let reader = topic.reader(&ReaderOptions {
            partition: Some(partition),
            ..ReaderOptions::default()
        })?;
        let segments = topic.partition(partition)?.sealed_segments();
        Ok(Compaction {
            partition,
            end_offset: segments.last().map_or(0, |last| last.summary.next_offset),
            reader,
            keys_max,
            said: Some(Said {
                keys: Keys::new(keys_max, 0),
                drops: Vec::new(),
            }),
            topic,
        })
    }

    /// All records below this offset are gone over; those behind it are not touched.
    pub fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// Gives the next records, at most `max` of them, to `sink`; answers how many. 0 is the end.
    pub fn read_with(&mut self, max: usize, mut sink: impl Sink) -> Result<usize> {
        self.said()?;
        if self.reader.position(self.partition)? >= self.end_offset {
            return Ok(0);
        }
        let mut before = Before {
            end_offset: self.end_offset,
            given: 0,
            sink: &mut sink,
        };
        let sink: &mut dyn Sink = &mut before;
        self.reader.read_with(max, sink)?;
        Ok(before.given)
    }

    /// Goes back to the first record, for another pass. What was decided stays.
    pub fn rewind(&mut self) -> Result<()> {
        self.said()?;
        self.reader.seek(crate::options::Start::Earliest)
    }

    fn said(&mut self) -> Result<&mut Said> {
        self.said.as_mut().ok_or_else(committed)
    }

    /// Of this key, records before this offset go. Said again, the last one counts. Fails with
    /// `TooLarge` for more keys, or more bytes of them, than fit by the topic's
    /// `compaction_keys_max`: commit, and begin again.
    pub fn keep_from(&mut self, key: &[u8], offset: u64) -> Result<()> {
        let keys_max = self.keys_max;
        if key.len() > KEY_BYTES_MAX {
            let text = format!("a key of {} bytes, at most {KEY_BYTES_MAX}", key.len());
            return Err(Error::new(Kind::TooLarge, text));
        }
        if self.said()?.keys.set(key, offset) {
            return Ok(());
        }
        let text = format!("more than {keys_max} keys, or long ones, in one compaction");
        Err(Error::new(Kind::TooLarge, text))
    }

    /// This record goes.
    pub fn drop_record(&mut self, offset: u64) -> Result<()> {
        let drops = &mut self.said()?.drops;
        if drops.len() >= COMPACTION_DROPS_MAX {
            let text = format!("more than {COMPACTION_DROPS_MAX} single records in one compaction");
            return Err(Error::new(Kind::TooLarge, text));
        }
        drops.push(offset);
        Ok(())
    }

    /// Removes what was said, and ends the compaction. Where that is too little of a segment to be
    /// worth it, it stays for now (see `min_garbage_percent`). `Busy` while another compaction of
    /// the log is under way: nothing has ended then, and it may be tried again.
    pub fn commit(&mut self) -> Result<CompactionReport> {
        let topic = self.topic.clone();
        let partition = topic.partition(self.partition)?;
        let (keys_max, end_offset) = (self.keys_max, self.end_offset);
        let said = &mut self.said;
        if said.is_none() {
            return Err(committed());
        }
        partition.compact_as(|partition, options| {
            let (keys, mut drops) = match said.take() {
                Some(said) => (said.keys, said.drops),
                None => (Keys::new(0, 0), Vec::new()),
            };
            drops.sort_unstable();
            Job::over(
                partition,
                Judge::Application { drops },
                keys,
                keys_max,
                options.min_garbage_percent,
                end_offset,
            )
        })
    }
}

#[cold]
fn committed() -> Error {
    Error::new(Kind::Closed, "the compaction was committed")
}
