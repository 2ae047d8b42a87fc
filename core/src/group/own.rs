//! What a consumer has already, handed out once more: after a restart, say.

use super::change::{Change, Range};
use super::clock::Now;
use super::consumer::Consumer;
use super::deliver::{Delivery, Receiver};
use super::fetch::{Found, Room};
use super::inner::{Entered, Inner};
use super::pending::Owner;
use crate::error::Result;

impl Consumer {
    pub(super) fn own(
        &mut self,
        room: &mut Room,
        receiver: &mut dyn Receiver,
        delivery: &mut Delivery,
    ) -> Result<()> {
        let inner = self.member.group.inner.clone();
        let mut held = inner.enter()?;
        let now = inner.now(&held.state);
        if inner.policy().ordered {
            self.member.check_fence(&held.state, &now)?;
        }
        let Some(me) = self.member.number(&held.state) else {
            return Ok(());
        };
        let mut begun = None;
        let done = self.own_runs(&inner, &mut held, me, room, &mut begun, &now, delivery);
        if let (Err(_), Some((partition, first))) = (&done, begun) {
            // What was not given comes in the next call.
            held.state.pending.go_back(me, partition, first);
        }
        done?;
        self.give_copies(delivery, receiver);
        Ok(())
    }

    /// Copies what comes next of the consumer's own, as far as there is room; tells where it began.
    #[expect(clippy::too_many_arguments, reason = "one call's variables")]
    fn own_runs(
        &mut self,
        inner: &Inner,
        held: &mut Entered<'_>,
        me: Owner,
        room: &mut Room,
        begun: &mut Option<(u32, u64)>,
        now: &Now,
        delivery: &mut Delivery,
    ) -> Result<()> {
        let mut found = Found::default();
        let is_ordered = inner.policy().ordered;
        'full: while self.fetch.count() == 0 {
            let runs = held.state.pending.next_of(me, room.records as u32);
            if runs.is_empty() {
                break;
            }
            for run in &runs {
                if is_ordered && !self.member.holds(&held.state, now, run.partition) {
                    continue;
                }
                begun.get_or_insert((run.partition, run.first));
                let range = Range::from(run);
                let to = self.fetch.get(range, run.deliveries, room, &mut found)?;
                if to < range.end {
                    held.state.pending.go_back(me, run.partition, to);
                    break 'full;
                }
            }
        }
        let mut changes = Vec::new();
        if !found.gone.is_empty() {
            changes.push(Change::Expire { ranges: found.gone });
        }
        let lost = delivery.with(&held.state, &changes);
        inner.commit(held, now, &changes)?;
        delivery.tell(&lost);
        Ok(())
    }
}
