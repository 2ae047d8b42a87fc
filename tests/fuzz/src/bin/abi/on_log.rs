//! Calls on a log.

use crate::contents::{choice, Kept};
use crate::handles::{Kind, State};
use crate::judge::Call;
use crate::memory::Block;
use crate::Fuzz;
use edgelog::log::*;
use edgelog::names::*;
use edgelog::options::*;
use edgelog::report::*;
use edgelog::stats::*;
use edgelog::status::*;
use edgelog::topic::*;
use std::ffi::CString;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

impl Fuzz<'_> {
    pub fn open(&mut self) {
        let rng = &mut self.rng;
        let mut wrong = false;
        let mut options = Block::input(rng, size_of::<edgelog_options>());
        for (offset, values) in [
            (offset_of!(edgelog_options, mode), 3),
            (offset_of!(edgelog_options, on_damage), 2),
            (offset_of!(edgelog_options, create), 3),
        ] {
            let value = choice(rng, values, &mut wrong);
            options.set_u32(offset, value);
        }
        // Few with a thread of their own.
        let maintenance = match rng.percent(90) {
            true => EDGELOG_MAINTENANCE_MANUAL,
            false => choice(rng, 2, &mut wrong),
        };
        options.set_u32(offset_of!(edgelog_options, maintenance), maintenance);
        let wait_ms = rng.below(3) as u32;
        options.set_u32(offset_of!(edgelog_options, lock_timeout_ms), wait_ms);
        options.set_u32(offset_of!(edgelog_options, busy_timeout_ms), wait_ms);
        if rng.percent(10) {
            let most = rng.odd_number();
            options.set_u64(offset_of!(edgelog_options, log_bytes_max), most);
        }
        wrong |= options.wrong;
        if options.is_null() {
            // The defaults.
            wrong = false;
        }
        let mut place = Block::number(rng);
        let name: &[u8] = match rng.below(30) {
            0 => b"no/such",
            1 => b"caf\xe9",
            2 => b"second",
            _ => b"log",
        };
        let mut path = self.directory.as_os_str().as_bytes().to_vec();
        path.push(b'/');
        path.extend(name);
        match self.rng.below(60) {
            0 => path.clear(),
            1 => path.resize(4_096 + self.rng.below(1_000), b'p'),
            _ => {}
        }
        wrong |= path.is_empty() || path.len() > 4_095;
        let path = CString::new(path).unwrap();
        let mut at = path.as_ptr();
        if self.rng.percent(1) {
            (at, wrong) = (null(), true);
        }
        let call = Call {
            name: "edgelog_open",
            handle: None,
            wrong: wrong || place.wrong,
            outlives: false,
        };
        // SAFETY: each pointer is NULL, or to what the header says, or refused unread.
        let status = self.call(call, |error| unsafe {
            edgelog_open(at, options.at(), place.at(), error)
        });
        assert!(options.unchanged());
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles.add(place.word() as *mut _, Kind::Log, 0);
        }
    }

    pub fn on_log(&mut self) {
        let log = self.handles.pick(&mut self.rng, Kind::Log);
        let at = log.at.cast();
        // SAFETY, all: the handle is one of ours, NULL or misaligned.
        match self.rng.below(10) {
            0 => {
                let call = Call::new("edgelog_log_flush", log);
                self.call(call, |e| unsafe { edgelog_log_flush(at, e) });
            }
            1 => {
                let call = Call::new("edgelog_log_sync", log);
                self.call(call, |e| unsafe { edgelog_log_sync(at, e) });
            }
            2 => {
                let call = Call::new("edgelog_log_maintain", log);
                let budget_ms = self.rng.odd_number() as u32;
                self.call(call, |e| unsafe { edgelog_log_maintain(at, budget_ms, e) });
            }
            3 => {
                let mut stats = Block::sized(&mut self.rng, size_of::<edgelog_log_stats>());
                let call = Call::new("edgelog_log_stats_get", log).wrong_if(stats.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_log_stats_get(at, stats.at(), e)
                });
                self.structure(&stats, status);
            }
            4 => {
                let mut kept = Kept::default();
                let (name, size) = kept.name(&mut self.rng);
                let call = Call::new("edgelog_topic_delete", log).wrong_if(kept.wrong);
                self.call(call, |e| unsafe { edgelog_topic_delete(at, name, size, e) });
            }
            5 if self.rng.percent(50) => self.close(log.at, Kind::Log, log.state),
            choice => {
                let mut place = Block::number(&mut self.rng);
                let (name, kind) = match choice {
                    5 | 6 => ("edgelog_log_recovery", Kind::Report),
                    7 => ("edgelog_log_verify", Kind::Report),
                    _ => ("edgelog_log_topics", Kind::Names),
                };
                let call = Call::new(name, log).wrong_if(place.wrong);
                let status = self.call(call, |e| unsafe {
                    match choice {
                        5 | 6 => edgelog_log_recovery(at, place.at(), e),
                        7 => edgelog_log_verify(at, place.at(), e),
                        _ => edgelog_log_topics(at, place.at(), e),
                    }
                });
                self.output(&place, status);
                if status == EDGELOG_OK {
                    self.handles.add(place.word() as *mut _, kind, log.log);
                }
            }
        }
    }

    /// Closes a handle of whatever state, as one of this kind.
    pub fn close(&mut self, at: *mut std::ffi::c_void, kind: Kind, state: State) {
        let name = match kind {
            Kind::Log => "edgelog_close",
            Kind::Topic => "edgelog_topic_close",
            Kind::Reader => "edgelog_reader_close",
            Kind::Compaction => "edgelog_compaction_close",
            Kind::Group => "edgelog_group_close",
            Kind::Consumer => "edgelog_consumer_close",
            Kind::Report => "edgelog_report_close",
            Kind::Names => "edgelog_names_close",
            Kind::Pending => "edgelog_pending_close",
            Kind::Consumers => "edgelog_consumers_close",
            Kind::Leases => "edgelog_leases_close",
        };
        let handle = crate::handles::Argument {
            at,
            state,
            log: 0,
            cancelled: false,
        };
        let mut call = Call::new(name, handle).outliving();
        if state == State::Null {
            call.handle = None;
        }
        // SAFETY: the handle is one of ours, NULL or misaligned.
        let status = self.call(call, |e| unsafe {
            match kind {
                Kind::Log => edgelog_close(at.cast(), e),
                Kind::Topic => edgelog_topic_close(at.cast(), e),
                Kind::Reader => edgelog::reader::edgelog_reader_close(at.cast(), e),
                Kind::Compaction => edgelog::compaction::edgelog_compaction_close(at.cast(), e),
                Kind::Group => edgelog::group::edgelog_group_close(at.cast(), e),
                Kind::Consumer => edgelog::consumer::edgelog_consumer_close(at.cast(), e),
                Kind::Report => edgelog_report_close(at.cast(), e),
                Kind::Names => edgelog_names_close(at.cast(), e),
                Kind::Pending => edgelog::pending::edgelog_pending_close(at.cast(), e),
                Kind::Consumers => edgelog::consumers::edgelog_consumers_close(at.cast(), e),
                Kind::Leases => edgelog::leases::edgelog_leases_close(at.cast(), e),
            }
        });
        let flushes = matches!(kind, Kind::Log | Kind::Topic);
        let is_refused = |status| matches!(status, EDGELOG_INVALID | EDGELOG_MISUSE);
        match (state, status) {
            (State::Live | State::LogClosed, EDGELOG_OK) => self.handles.close(at),
            // Closed all the same: only what was buffered did not go out.
            (State::Live | State::LogClosed, status) if flushes && !is_refused(status) => {
                self.handles.close(at);
            }
            (State::Null, EDGELOG_OK) => {}
            _ => assert!(status < EDGELOG_OK),
        }
    }

    /// Closes all that is open, in any order; what was written then opens again.
    pub fn finish(&mut self) {
        while let Some((at, kind)) = self.handles.open_one(&mut self.rng) {
            self.close(at, kind, State::LogClosed);
        }
        let path = self.directory.join("log");
        if !path.exists() || self.is_tampered {
            return;
        }
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        let (mut log, mut report) = (null_mut(), null_mut());
        let (mut count, mut total) = (77, 77);
        // SAFETY: a path, NULL for what may be, and places.
        unsafe {
            let opened = edgelog_open(path.as_ptr(), null(), &mut log, null_mut());
            assert_eq!(opened, EDGELOG_OK);
            let verified = edgelog_log_verify(log, &mut report, null_mut());
            assert_eq!(verified, EDGELOG_OK);
            edgelog_report_count(report, &mut count, &mut total, null_mut());
            assert_eq!((count, total), (0, 0), "damage without a fault");
            assert_eq!(edgelog_report_close(report, null_mut()), EDGELOG_OK);
            assert_eq!(edgelog_close(log, null_mut()), EDGELOG_OK);
        }
    }
}
