//! What comes next of a partition of an ordered group: its records in their order, and nothing
//! behind one that was refused, or not acknowledged in time, until it is settled.

use super::decide::{self, Policy};
use super::pending::{Held, Owner, Run};
use super::state::State;

/// What its holder gets of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// New records.
    New,
    /// These again.
    Again(Vec<Run>),
    /// Nothing before this one is given up.
    GiveUp(Run),
    /// Nothing until this moment, or until something is settled.
    Nothing(Option<u64>),
}

/// Looks at what is pending, from the lowest offset on.
pub(crate) fn next(
    state: &State,
    policy: &Policy,
    partition: u32,
    me: Owner,
    now_ms: u64,
    max: usize,
) -> Next {
    // One that is suspected is delivered alone, so that those behind it do not share its fate.
    let is_alone = |deliveries: u32| policy.max_deliveries != 0 && deliveries > 1;
    let is_mine = |run: &Run| run.held == Held::By(me) && policy.is_under_way(run, now_ms);
    let mut runs = state.pending.range(partition, 0, u64::MAX).peekable();
    let mut due_ms: Option<u64> = None;
    while let Some(run) = runs.next_if(is_mine) {
        if is_alone(run.deliveries) {
            return Next::Nothing(policy.due_ms(&run));
        }
        due_ms = match (due_ms, policy.due_ms(&run)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    let Some(first) = runs.peek().copied() else {
        return Next::New;
    };
    if policy.halts(first.deliveries) {
        return Next::Nothing(due_ms);
    }
    if let Held::Released { due_ms: at_ms } = first.held {
        if at_ms > now_ms {
            return Next::Nothing(Some(due_ms.map_or(at_ms, |due_ms| due_ms.min(at_ms))));
        }
    }
    if policy.gives_up(first.deliveries) {
        return Next::GiveUp(Run { count: 1, ..first });
    }
    if policy.max_deliveries != 0 {
        return Next::Again(vec![Run { count: 1, ..first }]);
    }
    let waits = |run: &Run| matches!(run.held, Held::Released { due_ms } if due_ms > now_ms);
    Next::Again(decide::first(&mut runs.take_while(|run| !waits(run)), max))
}

/// When something of a partition comes again, or can be new, after a look at what comes next.
pub(crate) fn due_ms(
    state: &State,
    policy: &Policy,
    partition: u32,
    me: Owner,
    now_ms: u64,
    next: &Next,
) -> Option<u64> {
    match next {
        Next::Again(_) | Next::GiveUp(_) => Some(now_ms),
        Next::Nothing(due_ms) => *due_ms,
        Next::New => {
            let own = state.pending.range(partition, 0, u64::MAX);
            let own = own.filter(|run| run.held == Held::By(me));
            own.filter_map(|run| policy.due_ms(&run)).min()
        }
    }
}
