//! Keep or drop, for one record: a pure function of the record, the rules and what was folded.

use super::keys::{KeyId, Keys};
use super::rules::{keep_of, Keep, KeepRule};
use crate::record::RecordView;

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop,
    /// It goes; a tombstone of its key that is behind it stays for as long as it is there.
    Superseded(KeyId),
    /// A tombstone that has stayed for long enough: it goes when all that it deleted has gone.
    OldTombstone(KeyId),
}

/// Who decides.
pub(crate) enum Judge {
    /// The topic's rules.
    Rules {
        rules: Vec<KeepRule>,
        tombstone_ms: u64,
        /// The log's running time when the compaction began.
        run_ms: u64,
    },
    /// The application: offsets below a key's go, and these single ones, in order.
    Application { drops: Vec<u64> },
}

impl Judge {
    /// Learns of a record that there is. In the order of offsets.
    pub(crate) fn learn(&self, record: &RecordView<'_>, keys: &mut Keys) {
        let (Judge::Rules { rules, .. }, Some(key)) = (self, record.key) else {
            return;
        };
        if let Keep::Last(count) = keep_of(rules, Some(key)) {
            keys.note(key, record.offset, record.value.is_none(), count);
        }
    }

    /// Whether there is anything to learn before records can be judged.
    pub(crate) fn must_learn(&self) -> bool {
        match self {
            Judge::Rules { rules, .. } => {
                let mut rules = rules.iter();
                rules.any(|rule| matches!(rule.keep, Keep::Last(_)))
            }
            Judge::Application { .. } => false,
        }
    }

    /// Judges a record of a frame with this running time. The first pass alone judges what needs
    /// no key: others have it behind them.
    pub(crate) fn judge(&self, record: &RecordView<'_>, run_s: u64, keys: &Keys) -> Verdict {
        let below = |id: KeyId| record.offset < keys.keep_from(id);
        let found = || record.key.and_then(|key| keys.find(key));
        match self {
            Judge::Application { drops } => {
                if drops.binary_search(&record.offset).is_ok() || found().is_some_and(below) {
                    return Verdict::Drop;
                }
                Verdict::Keep
            }
            Judge::Rules {
                rules,
                tombstone_ms,
                run_ms,
            } => {
                // The record came within the second that ends here.
                let made_ms = run_s.saturating_add(1).saturating_mul(1000);
                let age_ms = run_ms.saturating_sub(made_ms);
                match keep_of(rules, record.key) {
                    Keep::All => Verdict::Keep,
                    Keep::Nothing => Verdict::Drop,
                    Keep::For(ms) if age_ms > ms => Verdict::Drop,
                    Keep::For(_) => Verdict::Keep,
                    Keep::Last(_) => match found() {
                        Some(id) if below(id) => Verdict::Superseded(id),
                        Some(id) if record.value.is_none() && age_ms > *tombstone_ms => {
                            Verdict::OldTombstone(id)
                        }
                        _ => Verdict::Keep,
                    },
                }
            }
        }
    }
}
