//! Taking over what others have pending.

use super::consumer::Consumer;
use super::decide::{self, By, Wanted};
use super::deliver::{Delivery, Receiver};
use super::fetch::Room;
use super::handle::check_count;
use super::pending::Run;
use super::state::State;
use crate::error::{Error, Result};
use crate::limits::POSITIONS_MAX;
use crate::record::Position;

/// Which pending records a consumer takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim<'a> {
    /// These.
    Positions(&'a [Position]),
    /// What this consumer has, the longest idle first.
    From(&'a str),
    /// What anybody has, the longest idle first.
    Idle,
}

/// How they are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClaimOptions {
    /// Only those that were delivered so long ago, in milliseconds.
    pub min_idle_ms: u64,
    /// Only those that were delivered so often.
    pub min_deliveries: u32,
    /// At most so many records.
    pub max: usize,
    /// At most so many bytes of keys and values, but at least one record; 0: no limit.
    pub max_bytes: usize,
    /// It does not count as a delivery.
    pub uncounted: bool,
}

impl Consumer {
    /// Takes over pending records, of whoever has them.
    pub fn claim(
        &mut self,
        claim: Claim<'_>,
        options: &ClaimOptions,
        receiver: &mut dyn Receiver,
    ) -> Result<Delivery> {
        self.check()?;
        self.fetch.clear();
        self.telling(|consumer, delivery| consumer.claim_into(claim, options, receiver, delivery))
    }

    fn claim_into(
        &mut self,
        claim: Claim<'_>,
        options: &ClaimOptions,
        receiver: &mut dyn Receiver,
        delivery: &mut Delivery,
    ) -> Result<()> {
        let max = options.max.min(POSITIONS_MAX);
        let mut room = Room::new(max, options.max_bytes);
        let inner = self.member.group.inner.clone();
        let mut held = inner.enter()?;
        let policy = inner.policy();
        if policy.ordered {
            let text = "an ordered group's records are their partition's holder's";
            return Err(Error::invalid(text));
        }
        let me = self.keep_house(&inner, &mut held, &policy, delivery)?;
        let now = inner.now(&held.state);
        let wanted = Wanted {
            min_idle_ms: options.min_idle_ms,
            min_deliveries: options.min_deliveries,
        };
        let runs = claimed(&held.state, claim, &wanted, now.ms, max)?;
        let mut changes = Vec::new();
        self.again(
            &runs,
            me,
            now.ms,
            !options.uncounted,
            &mut room,
            &mut changes,
        )?;
        let lost = delivery.with(&held.state, &changes);
        inner.commit(&mut held, &now, &changes)?;
        delivery.tell(&lost);
        self.give_copies(delivery, receiver);
        Ok(())
    }
}

fn claimed(
    state: &State,
    claim: Claim<'_>,
    wanted: &Wanted,
    now_ms: u64,
    max: usize,
) -> Result<Vec<Run>> {
    let takes = |run: &Run| wanted.takes(run, now_ms);
    Ok(match claim {
        Claim::Positions(positions) => {
            check_count(positions.len())?;
            let by = By::Anybody;
            let ranges = decide::judge(state, by, positions, &mut Vec::new());
            let runs = ranges
                .iter()
                .flat_map(|range| state.pending.range(range.partition, range.first, range.end));
            decide::first(&mut runs.filter(takes), max)
        }
        Claim::From(name) => match state.consumers.find(name) {
            Some(owner) => {
                let runs = decide::idle_of(state, owner, wanted, now_ms);
                decide::first(&mut runs.filter(takes), max)
            }
            None => Vec::new(),
        },
        Claim::Idle => decide::idle(state, wanted, now_ms, max),
    })
}
