//! What a group must be, record by record: the plainest model there is, with no runs, no indexes,
//! no journal. It knows what each call may do, and takes from the engine only what is left open.

use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};

pub type Place = (u32, u64);

/// A record of the topic, as a plain reader sees it.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    pub bytes: usize,
    pub timestamp_ms: u64,
}

/// The topic as plain readers see it.
#[derive(Debug, Default)]
pub struct Truth {
    pub live: BTreeMap<Place, Live>,
    /// All that there ever was.
    pub known: BTreeMap<Place, Live>,
    pub earliest: Vec<u64>,
    pub next: Vec<u64>,
}

/// A pending record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub owner: Option<String>,
    pub deliveries: u32,
    pub first_ms: u64,
    pub last_ms: u64,
    /// Of one that is nobody's.
    pub due_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Member {
    pub seen_ms: u64,
    pub delivered_ms: Option<u64>,
    pub deliveries: u64,
    pub redeliveries: u64,
}

/// The machine's boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    pub id: u128,
    pub ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    pub delivered: u64,
    pub redelivered: u64,
    pub acknowledged: u64,
    pub expired: u64,
    pub given_up: u64,
    pub skipped: u64,
}

/// A group.
#[derive(Debug, Clone)]
pub struct Naive {
    pub options: GroupOptions,
    pub cursors: Vec<u64>,
    pub pending: BTreeMap<Place, Pending>,
    pub members: BTreeMap<String, Member>,
    pub totals: Totals,
    /// Copies that the dead-letter topic has of this group.
    pub copies: u64,
    /// When this boot's time was tied to the group's: the boot, and the group's time then.
    tie: Option<(Boot, u64)>,
    /// The last moment that a change told of.
    known_ms: u64,
}

/// What a call was told to take, and what it gave.
pub struct Taken<'a> {
    pub rows: &'a [(u32, u64, u32)],
    pub delivery: Delivery,
    /// What the engine says is pending afterwards: tells which of equals it chose.
    pub left: &'a BTreeSet<Place>,
}

impl Naive {
    pub fn new(options: &GroupOptions, cursors: Vec<u64>) -> Naive {
        let mut naive = Naive {
            options: GroupOptions::default(),
            cursors,
            pending: BTreeMap::new(),
            members: BTreeMap::new(),
            totals: Totals::default(),
            copies: 0,
            tie: None,
            known_ms: 0,
        };
        naive.configure(options);
        naive
    }

    pub fn configure(&mut self, options: &GroupOptions) {
        self.options = options.clone();
        if options.ack_timeout_ms == 0 {
            self.options.ack_timeout_ms = limits::ACK_TIMEOUT_MS_DEFAULT;
        }
        if options.backoff_max_ms == 0 {
            let least = limits::BACKOFF_MAX_MS_DEFAULT;
            self.options.backoff_max_ms = least.max(options.backoff_ms);
        }
    }

    /// The group's time: that of its first change is 1; it stands still while the machine is off,
    /// and what no change told of before that is forgotten.
    pub fn now(&self, boot: Boot) -> u64 {
        match self.tie {
            Some((tied, ms)) if tied.id == boot.id => ms + (boot.ms - tied.ms),
            Some(_) => self.known_ms + boot.ms,
            None => 1,
        }
    }

    /// A change happens.
    pub fn changes(&mut self, boot: Boot) -> u64 {
        let now = self.now(boot);
        if self.tie.is_none_or(|(tied, _)| tied.id != boot.id) {
            self.tie = Some((boot, now));
            self.known_ms = now;
        }
        now
    }

    pub fn due_ms(&self, pending: &Pending) -> Option<u64> {
        if pending.owner.is_none() {
            return Some(pending.due_ms);
        }
        let timeout_ms = self.options.ack_timeout_ms;
        (timeout_ms != limits::NEVER_MS).then(|| pending.last_ms + u64::from(timeout_ms))
    }

    fn gives_up(&self, deliveries: u32) -> bool {
        self.options.max_deliveries != 0 && deliveries >= self.options.max_deliveries
    }

    pub fn owned(&self, name: &str) -> Vec<Place> {
        let own = self.pending.iter();
        let own = own.filter(|(_, pending)| pending.owner.as_deref() == Some(name));
        own.map(|(place, _)| *place).collect()
    }

    pub fn join(&mut self, name: &str, boot: Boot) {
        if !self.members.contains_key(name) {
            let now = self.changes(boot);
            self.known_ms = now;
            let member = Member {
                seen_ms: now,
                ..Member::default()
            };
            self.members.insert(name.to_owned(), member);
        }
    }

    /// What any call for records does first.
    pub fn keep_house(&mut self, name: &str, truth: &Truth, boot: Boot) -> (u64, u64) {
        let now = self.now(boot);
        let ttl_ms = u64::from(self.options.consumer_ttl_ms);
        let outlived: Vec<String> = self
            .members
            .iter()
            .filter(|(other, member)| {
                let is_over = ttl_ms != 0 && now - member.seen_ms >= ttl_ms;
                *other != name && is_over && self.owned(other).is_empty()
            })
            .map(|(other, _)| other.clone())
            .collect();
        self.join(name, boot);
        let seen_ms = self.members[name].seen_ms;
        if ttl_ms != 0 && now - seen_ms >= ttl_ms / 3 {
            let now = self.changes(boot);
            self.known_ms = now;
            self.members.get_mut(name).unwrap().seen_ms = now;
        }
        let is_lost = |place: &Place| place.1 < truth.earliest[place.0 as usize];
        let lost: Vec<Place> = self
            .pending
            .keys()
            .filter(|place| is_lost(place))
            .copied()
            .collect();
        let mut skipped = 0;
        for (cursor, earliest) in self.cursors.iter_mut().zip(&truth.earliest) {
            skipped += earliest.saturating_sub(*cursor);
            *cursor = (*cursor).max(*earliest);
        }
        if !lost.is_empty() || skipped != 0 || !outlived.is_empty() {
            self.changes(boot);
        }
        for place in &lost {
            self.pending.remove(place);
        }
        self.totals.expired += lost.len() as u64;
        self.totals.skipped += skipped;
        outlived.iter().for_each(|name| {
            self.members.remove(name);
        });
        (lost.len() as u64, skipped)
    }

    /// What is due and was delivered too often is given up, all of it.
    fn give_up_due(&mut self, truth: &Truth, boot: Boot) -> (u64, u64) {
        let now = self.now(boot);
        let is_dead = |pending: &Pending| {
            let is_due = self.due_ms(pending).is_some_and(|due_ms| due_ms <= now);
            is_due && self.gives_up(pending.deliveries)
        };
        let dead: Vec<Place> = self
            .pending
            .iter()
            .filter(|(_, pending)| is_dead(pending))
            .map(|(place, _)| *place)
            .collect();
        if dead.is_empty() {
            return (0, 0);
        }
        self.changes(boot);
        let before = (self.totals.given_up, self.totals.expired);
        dead.iter().for_each(|place| self.give_up(*place, truth));
        (
            self.totals.given_up - before.0,
            self.totals.expired - before.1,
        )
    }

    fn give_up(&mut self, place: Place, truth: &Truth) {
        self.pending.remove(&place);
        let has_topic = self.options.dead_letter.is_some();
        if has_topic && !truth.live.contains_key(&place) {
            self.totals.expired += 1;
        } else {
            self.totals.given_up += 1;
            self.copies += u64::from(has_topic);
        }
    }

    /// Judges what a call for records gave, and makes it so.
    pub fn take(
        &mut self,
        name: &str,
        options: &TakeOptions,
        taken: &Taken<'_>,
        truth: &Truth,
        boot: Boot,
    ) {
        let mut given_up = 0;
        let mut expired = 0;
        if options.take == Take::Due {
            (given_up, expired) = self.give_up_due(truth, boot);
        }
        let (lost, skipped) = self.keep_house(name, truth, boot);
        expired += lost;
        let now = self.now(boot);
        let (again, fresh) = taken.rows.split_at(taken.delivery.redelivered);
        let mut candidates = Vec::new();
        if options.take == Take::Due {
            let due = self.pending.iter().filter_map(|(place, pending)| {
                let due_ms = self.due_ms(pending)?;
                (due_ms <= now).then_some((due_ms, *place))
            });
            candidates = due.collect();
            candidates.sort_unstable();
        }
        let mut touched = BTreeSet::new();
        for (_, place) in &candidates {
            let is_in = |rows: &[(u32, u64, u32)]| rows.iter().any(|row| (row.0, row.1) == *place);
            // Met by the cursor again, and done at once, is not gone either.
            let is_done = options.at_most_once && is_in(fresh);
            if taken.left.contains(place) || is_in(again) || is_done {
                continue;
            }
            assert!(
                !truth.live.contains_key(place),
                "{place:?} is gone for no reason"
            );
            touched.insert(*place);
            self.pending.remove(place);
            self.totals.expired += 1;
            expired += 1;
        }
        let told = &taken.delivery;
        let counted = (told.expired, told.skipped, told.given_up);
        assert_eq!(
            counted,
            (expired, skipped, given_up),
            "told of what is gone"
        );
        for row in again {
            let pending = &self.pending[&(row.0, row.1)];
            assert!(
                !self.gives_up(pending.deliveries),
                "{row:?} is to be given up"
            );
            touched.insert((row.0, row.1));
        }
        let order =
            |row: &(u32, u64, u32)| candidates.iter().position(|(_, p)| *p == (row.0, row.1));
        // What comes again was due.
        let dues: Vec<u64> = again
            .iter()
            .map(|row| candidates[order(row).unwrap()].0)
            .collect();
        assert!(
            dues.is_sorted(),
            "the oldest due first: {again:?}, {dues:?}"
        );
        assert_first(&candidates, &touched, options.max, options.max_bytes);
        self.redeliver(name, again, true, now, boot);
        if touched.len() > again.len() {
            self.changes(boot);
        }
        if options.at_most_once {
            for row in again {
                self.pending.remove(&(row.0, row.1));
                self.totals.acknowledged += 1;
            }
        }
        self.check_room(taken.rows, options.max, options.max_bytes, truth);
        let has_room = taken.rows.len() < options.max && options.max_bytes == 0;
        let is_new = |(place, _): &(&Place, &Live)| place.1 >= self.cursors[place.0 as usize];
        let mut new = truth.live.iter().filter(is_new);
        if has_room && fresh.is_empty() {
            let missed = new.find(|(place, _)| !touched.contains(place));
            assert_eq!(
                missed.map(|(place, _)| place),
                None,
                "nothing new was given"
            );
        }
        self.deliver(name, fresh, &touched, options.at_most_once, truth, boot);
    }

    /// New records: of each partition those that follow the cursor.
    fn deliver(
        &mut self,
        name: &str,
        fresh: &[(u32, u64, u32)],
        touched: &BTreeSet<Place>,
        at_most_once: bool,
        truth: &Truth,
        boot: Boot,
    ) {
        for row in fresh {
            let place = (row.0, row.1);
            let now = self.changes(boot);
            self.known_ms = now;
            let cursor = &mut self.cursors[row.0 as usize];
            // Nothing is left out, but for what became of records in the same call: they do not
            // come twice. What compaction has just removed may have been read before.
            let ahead = truth.live.range((row.0, *cursor)..place);
            let missed = ahead
                .map(|(place, _)| *place)
                .find(|p| !touched.contains(p));
            assert_eq!(missed, None, "left out before {place:?}");
            assert!(
                place.1 >= *cursor && !touched.contains(&place),
                "{place:?} comes twice"
            );
            *cursor = row.1 + 1;
            let before = self.pending.remove(&place);
            let deliveries = before.as_ref().map_or(0, |before| before.deliveries) + 1;
            assert_eq!(row.2, deliveries, "{place:?}: deliveries");
            if at_most_once {
                self.totals.acknowledged += 1;
            } else {
                let pending = Pending {
                    owner: Some(name.to_owned()),
                    deliveries,
                    first_ms: before.as_ref().map_or(now / 1000 * 1000, |b| b.first_ms),
                    last_ms: now,
                    due_ms: 0,
                };
                self.pending.insert(place, pending);
            }
            let member = self.members.get_mut(name).unwrap();
            member.seen_ms = now;
            member.delivered_ms = Some(now);
            member.deliveries += 1;
            if before.is_some() {
                self.totals.redelivered += 1;
                member.redeliveries += 1;
            } else {
                self.totals.delivered += 1;
            }
        }
    }

    fn redeliver(
        &mut self,
        name: &str,
        rows: &[(u32, u64, u32)],
        counts: bool,
        now: u64,
        boot: Boot,
    ) {
        for row in rows {
            self.changes(boot);
            self.known_ms = now;
            let pending = self.pending.get_mut(&(row.0, row.1)).unwrap();
            pending.owner = Some(name.to_owned());
            pending.last_ms = now;
            pending.deliveries += u32::from(counts);
            assert_eq!(row.2, pending.deliveries, "{row:?}: deliveries");
            let member = self.members.get_mut(name).unwrap();
            member.seen_ms = now;
            if counts {
                member.delivered_ms = Some(now);
                member.deliveries += 1;
                member.redeliveries += 1;
                self.totals.redelivered += 1;
            }
        }
    }

    fn check_room(&self, rows: &[(u32, u64, u32)], max: usize, max_bytes: usize, truth: &Truth) {
        assert!(rows.len() <= max);
        let size = |row: &(u32, u64, u32)| truth.known[&(row.0, row.1)].bytes;
        let bytes: usize = rows.iter().map(size).sum();
        // The first may be larger than all that is allowed; what follows must be nothing then.
        let is_first = bytes == rows.first().map_or(0, size);
        let fits = max_bytes == 0 || bytes <= max_bytes || is_first;
        assert!(fits, "more bytes than were allowed: {bytes}");
    }

    /// Judges what a claim gave, and makes it so.
    pub fn claim(
        &mut self,
        name: &str,
        claim: Claim<'_>,
        options: &ClaimOptions,
        taken: &Taken<'_>,
        truth: &Truth,
        boot: Boot,
    ) {
        let (mut expired, skipped) = self.keep_house(name, truth, boot);
        let now = self.now(boot);
        let is_claimed = |place: &Place, pending: &Pending| {
            let is_asked = match claim {
                Claim::Positions(positions) => {
                    positions.iter().any(|p| (p.partition, p.offset) == *place)
                }
                Claim::From(other) => pending.owner.as_deref() == Some(other),
                Claim::Idle => pending.owner.is_some() || pending.due_ms <= now,
            };
            is_asked
                && now - pending.last_ms >= options.min_idle_ms
                && pending.deliveries >= options.min_deliveries
        };
        let rank = |pending: &Pending| match claim {
            Claim::Positions(_) => 0,
            Claim::From(_) => pending.last_ms,
            // What nobody has comes first, by when it was due.
            Claim::Idle if pending.owner.is_none() => pending.due_ms,
            Claim::Idle => (1 << 50) + pending.last_ms,
        };
        let mut candidates: Vec<(u64, Place)> = self
            .pending
            .iter()
            .filter(|(place, pending)| is_claimed(place, pending))
            .map(|(place, pending)| (rank(pending), *place))
            .collect();
        candidates.sort_unstable();
        let mut touched: BTreeSet<Place> = taken.rows.iter().map(|row| (row.0, row.1)).collect();
        for (_, place) in &candidates {
            if !taken.left.contains(place) {
                assert!(
                    !truth.live.contains_key(place),
                    "{place:?} is gone for no reason"
                );
                self.pending.remove(place);
                touched.insert(*place);
                self.totals.expired += 1;
                expired += 1;
                self.changes(boot);
            }
        }
        let ranks: Vec<u64> = taken
            .rows
            .iter()
            .map(|row| {
                let at = candidates
                    .iter()
                    .find(|(_, place)| *place == (row.0, row.1));
                at.unwrap().0
            })
            .collect();
        assert!(ranks.is_sorted(), "the longest idle first: {ranks:?}");
        assert_first(&candidates, &touched, options.max, options.max_bytes);
        let told = &taken.delivery;
        assert_eq!(
            (told.expired, told.skipped, told.given_up),
            (expired, skipped, 0)
        );
        assert_eq!(told.redelivered, taken.rows.len());
        self.check_room(taken.rows, options.max, options.max_bytes, truth);
        self.redeliver(name, taken.rows, !options.uncounted, now, boot);
    }

    /// What becomes of positions, in their order; `by` is nobody for whoever may do all.
    pub fn judge(&self, by: Option<&str>, positions: &[Position]) -> Vec<Outcome> {
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by_key(|at| positions[*at]);
        let mut outcomes = vec![Outcome::Unknown; positions.len()];
        let mut done = BTreeSet::new();
        for at in order {
            let place = (positions[at].partition, positions[at].offset);
            let cursor = self.cursors.get(place.0 as usize).copied().unwrap_or(0);
            outcomes[at] = match self.pending.get(&place) {
                Some(_) if done.contains(&place) => Outcome::Already,
                Some(pending) if by.is_none_or(|by| pending.owner.as_deref() == Some(by)) => {
                    done.insert(place);
                    Outcome::Done
                }
                Some(_) => Outcome::NotOwner,
                None if place.1 < cursor => Outcome::Already,
                None => Outcome::Unknown,
            };
        }
        outcomes
    }

    pub fn acknowledge(&mut self, places: impl IntoIterator<Item = Place>, boot: Boot) {
        for place in places {
            self.changes(boot);
            self.pending.remove(&place).unwrap();
            self.totals.acknowledged += 1;
        }
    }

    pub fn nack(&mut self, places: &[Place], nack: &Nack<'_>, truth: &Truth, boot: Boot) {
        for place in places {
            let now = self.changes(boot);
            let pending = self.pending[place].clone();
            let deliveries = pending.deliveries.saturating_sub(u32::from(nack.uncount));
            if self.gives_up(deliveries) {
                self.give_up(*place, truth);
                continue;
            }
            let doubled = u64::from(self.options.backoff_ms)
                .saturating_mul(1 << deliveries.saturating_sub(1).min(30));
            let backoff_ms = doubled.min(u64::from(self.options.backoff_max_ms));
            let delay_ms = nack.delay_ms.map_or(backoff_ms, u64::from);
            let released = Pending {
                owner: None,
                deliveries,
                due_ms: now + delay_ms,
                ..pending
            };
            self.pending.insert(*place, released);
        }
    }

    pub fn extend(&mut self, name: &str, places: &[Place], boot: Boot) {
        for place in places {
            let now = self.changes(boot);
            self.known_ms = now;
            self.pending.get_mut(place).unwrap().last_ms = now;
            self.members.get_mut(name).unwrap().seen_ms = now;
        }
    }

    pub fn remove(&mut self, name: &str, removal: Removal, boot: Boot) {
        let own = self.owned(name);
        self.changes(boot);
        match removal {
            Removal::Acknowledge => self.acknowledge(own, boot),
            _ => {
                for place in own {
                    let known_ms = self.known_ms;
                    let pending = self.pending.get_mut(&place).unwrap();
                    pending.owner = None;
                    pending.due_ms = known_ms;
                }
            }
        }
        self.members.remove(name);
    }

    /// Records that lie ahead.
    pub fn lag(&self, truth: &Truth) -> u64 {
        let ahead = |place: &&Place| place.1 >= self.cursors[place.0 as usize];
        truth.live.keys().filter(ahead).count() as u64
    }
}

/// Of those that a call could have touched, in order, it touched the first so many; among equals
/// it may choose, and where bytes are bounded it may stop early, but not before the first.
fn assert_first(
    candidates: &[(u64, Place)],
    touched: &BTreeSet<Place>,
    max: usize,
    max_bytes: usize,
) {
    let is_touched = |(_, place): &&(u64, Place)| touched.contains(place);
    if max_bytes != 0 {
        assert!(touched.len() <= max);
        assert!(candidates.is_empty() || max == 0 || !touched.is_empty());
        return;
    }
    assert_eq!(
        touched.len(),
        max.min(candidates.len()),
        "as many as there are"
    );
    let last = candidates
        .iter()
        .filter(is_touched)
        .map(|(rank, _)| *rank)
        .max();
    let first_left = candidates
        .iter()
        .filter(|candidate| !is_touched(candidate))
        .map(|(rank, _)| *rank)
        .min();
    if let (Some(last), Some(first_left)) = (last, first_left) {
        assert!(
            last <= first_left,
            "{first_left} was passed over for {last}"
        );
    }
}
