//! What `CHECKPOINT` says.

use crate::partition::recover::Watermarks;
use crate::segment::header::ClockMark;
use crate::varint::Input;

/// What `CHECKPOINT` says: where a topic stood at its last orderly close.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckpointBody {
    pub topic_uid: u64,
    pub clock: ClockMark,
    /// One for each partition.
    pub watermarks: Vec<Watermarks>,
}

impl CheckpointBody {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.topic_uid.to_le_bytes().to_vec();
        out.extend_from_slice(&self.clock.run_ms.to_le_bytes());
        out.extend_from_slice(&self.clock.boot_ms.to_le_bytes());
        out.extend_from_slice(&self.clock.boot_id.to_le_bytes());
        out.extend_from_slice(&(self.watermarks.len() as u32).to_le_bytes());
        for marks in &self.watermarks {
            out.extend_from_slice(&marks.next_offset.to_le_bytes());
            out.extend_from_slice(&marks.durable.to_le_bytes());
        }
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Option<CheckpointBody> {
        let mut input = Input::new(body);
        let topic_uid = input.u64()?;
        let (run_ms, boot_ms, boot_id) = (input.u64()?, input.u64()?, input.u128()?);
        let count = input.u32()?.min(crate::limits::PARTITIONS_MAX);
        let mut watermarks = Vec::new();
        for _ in 0..count {
            watermarks.push(Watermarks {
                next_offset: input.u64()?,
                durable: input.u64()?,
            });
        }
        Some(CheckpointBody {
            topic_uid,
            clock: ClockMark {
                boot_id,
                boot_ms,
                run_ms,
            },
            watermarks,
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test")]
    use super::*;

    #[test]
    fn a_checkpoint_comes_back() {
        let body = CheckpointBody {
            topic_uid: 1,
            clock: ClockMark {
                boot_id: 1 << 100,
                boot_ms: 3,
                run_ms: 4,
            },
            watermarks: vec![
                Watermarks {
                    next_offset: 5,
                    durable: 6
                };
                3
            ],
        };
        let back = CheckpointBody::decode(&body.encode()).unwrap();
        assert_eq!((back.topic_uid, back.clock), (1, body.clock));
        assert_eq!(back.watermarks.len(), 3);
        assert_eq!(back.watermarks[2].next_offset, 5);
    }
}
