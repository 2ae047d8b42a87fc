//! The handles of an execution, open and closed ones, and how a call must answer to them.

use edgelog_fuzz::Rng;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A closed handle answers until 64 more were closed; some fewer, to be on the safe side.
const CLOSES_REMEMBERED: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Log,
    Topic,
    Reader,
    Compaction,
    Group,
    Consumer,
    Report,
    Names,
    Pending,
    Consumers,
    Leases,
}

impl Kind {
    /// It stays as it is when its log is closed.
    pub fn outlives(self) -> bool {
        use Kind::{Consumers, Leases, Names, Pending, Report};
        matches!(self, Report | Names | Pending | Consumers | Leases)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Live,
    /// It is open, and its log was closed.
    LogClosed,
    Closed,
    OtherKind,
    Null,
    Misaligned,
}

#[derive(Clone, Copy)]
struct Handle {
    at: *mut c_void,
    kind: Kind,
    /// The number of its log.
    log: u64,
    cancelled: bool,
    closed: Option<u64>,
}

/// A handle as an argument.
#[derive(Clone, Copy)]
pub struct Argument {
    pub at: *mut c_void,
    pub state: State,
    pub log: u64,
    pub cancelled: bool,
}

#[derive(Default)]
pub struct Handles {
    all: Vec<Handle>,
    closed_logs: BTreeSet<u64>,
    logs: u64,
    closes: u64,
    /// Where a misaligned handle points to.
    nothing: Box<Cell<[u64; 8]>>,
}

impl Handles {
    pub fn add(&mut self, at: *mut c_void, kind: Kind, log: u64) {
        assert!(!at.is_null());
        // The memory of a handle that still has to answer CLOSED is not given out again.
        assert!(self.all.iter().all(|handle| handle.at != at));
        self.logs += u64::from(kind == Kind::Log);
        let log = if kind == Kind::Log { self.logs } else { log };
        self.all.push(Handle {
            at,
            kind,
            log,
            cancelled: false,
            closed: None,
        });
    }

    /// Mostly one that the call wants.
    pub fn pick(&mut self, rng: &mut Rng, kind: Kind) -> Argument {
        let of_log = |at, state| Argument {
            at,
            state,
            log: 0,
            cancelled: false,
        };
        let wish = rng.below(100);
        let wanted = |handle: &&Handle| match wish {
            0..=3 => handle.kind != kind,
            4..=9 => handle.kind == kind && handle.closed.is_some(),
            _ => handle.kind == kind && handle.closed.is_none(),
        };
        let mut found: Vec<&Handle> = self.all.iter().filter(wanted).collect();
        if found.is_empty() {
            // None of those: better a closed one than none.
            found = self.all.iter().filter(|h| h.kind == kind).collect();
        }
        if wish == 10 || found.is_empty() {
            return of_log(null_mut(), State::Null);
        }
        if wish == 11 {
            let at = self.nothing.as_ptr().cast::<u8>().wrapping_add(1);
            return of_log(at.cast(), State::Misaligned);
        }
        let handle = **rng.pick(&found);
        let state = match handle.closed {
            _ if handle.kind != kind => State::OtherKind,
            Some(_) => State::Closed,
            None if self.closed_logs.contains(&handle.log) && !kind.outlives() => State::LogClosed,
            None => State::Live,
        };
        Argument {
            at: handle.at,
            state,
            log: handle.log,
            cancelled: handle.cancelled,
        }
    }

    pub fn cancel(&mut self, at: *mut c_void) {
        let found = self.all.iter_mut().find(|handle| handle.at == at);
        found.unwrap().cancelled = true;
    }

    /// Its close succeeded.
    pub fn close(&mut self, at: *mut c_void) {
        self.closes += 1;
        let closes = self.closes;
        let found = self.all.iter_mut().find(|handle| handle.at == at).unwrap();
        found.closed = Some(closes);
        if found.kind == Kind::Log {
            self.closed_logs.insert(found.log);
        }
        // What was closed too long ago must not be used any more.
        let kept = |handle: &Handle| {
            handle
                .closed
                .is_none_or(|at| closes - at < CLOSES_REMEMBERED)
        };
        self.all.retain(kept);
    }

    pub fn has(&self, kind: Kind) -> bool {
        let open = |handle: &Handle| handle.kind == kind && handle.closed.is_none();
        self.all.iter().any(open)
    }

    /// Some handle that is open.
    pub fn open_one(&self, rng: &mut Rng) -> Option<(*mut c_void, Kind)> {
        let open: Vec<&Handle> = self.all.iter().filter(|h| h.closed.is_none()).collect();
        (!open.is_empty()).then(|| {
            let handle = rng.pick(&open);
            (handle.at, handle.kind)
        })
    }
}
