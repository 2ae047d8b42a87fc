//! Calls on reports and lists of names, and those without a handle.

use crate::contents::Kept;
use crate::handles::Kind;
use crate::judge::Call;
use crate::memory::Block;
use crate::Fuzz;
use edgelog::error::*;
use edgelog::group::*;
use edgelog::library::*;
use edgelog::names::*;
use edgelog::options::*;
use edgelog::pending::*;
use edgelog::record::*;
use edgelog::report::*;
use edgelog::settle::*;
use edgelog::status::*;
use edgelog::take::*;

impl Fuzz<'_> {
    pub fn on_lists(&mut self) {
        let index = match self.rng.percent(80) {
            true => self.rng.below(4) as u32,
            false => self.rng.odd_number() as u32,
        };
        let report = self.handles.pick(&mut self.rng, Kind::Report);
        let names = self.handles.pick(&mut self.rng, Kind::Names);
        // SAFETY, all: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or
        // to what the header says, or refused unread.
        match self.rng.below(6) {
            0 => {
                let mut count = Block::number(&mut self.rng);
                let mut total = Block::number(&mut self.rng);
                let call = Call::new("edgelog_report_count", report);
                let call = call.wrong_if(count.wrong || (total.wrong && !total.is_null()));
                let status = self.call(call, |e| unsafe {
                    edgelog_report_count(report.at.cast(), count.at(), total.at(), e)
                });
                self.output(&count, status);
                self.output(&total, status);
            }
            1 => {
                let mut damage = Block::sized(&mut self.rng, size_of::<edgelog_damage>());
                let call = Call::new("edgelog_report_get", report).wrong_if(damage.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_report_get(report.at.cast(), index, damage.at(), e)
                });
                self.structure(&damage, status);
            }
            2 => {
                let mut count = Block::number(&mut self.rng);
                let call = Call::new("edgelog_names_count", names).wrong_if(count.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_names_count(names.at.cast(), count.at(), e)
                });
                self.output(&count, status);
            }
            3 => {
                let mut name = Block::bytes(size_of::<edgelog_bytes>());
                let call = Call::new("edgelog_names_get", names);
                let status = self.call(call, |e| unsafe {
                    edgelog_names_get(names.at.cast(), index, name.at(), e)
                });
                self.output(&name, status);
            }
            4 => self.close(report.at, Kind::Report, report.state),
            _ => self.close(names.at, Kind::Names, names.state),
        }
    }

    /// A call that has no handle.
    fn plain(&mut self, name: &'static str, wrong: bool) -> Call {
        self.last = name;
        Call {
            name,
            handle: None,
            wrong,
            outlives: false,
        }
    }

    pub fn others(&mut self) {
        // SAFETY, all: each pointer is NULL, or to what the header says, or refused unread.
        match self.rng.below(4) {
            0 => {
                let status = self.rng.odd_number() as i32;
                assert_eq!(
                    edgelog_status_name(status).is_null(),
                    edgelog_status_text(status).is_null()
                );
                let mut place = Block::number(&mut self.rng);
                let index = self.rng.odd_number() as u32;
                let answer = unsafe { edgelog_status_at(index, place.at()) };
                self.last = "edgelog_status_at";
                self.output(&place, answer);
                let wanted = match place.wrong {
                    true => vec![EDGELOG_INVALID, EDGELOG_END],
                    false => vec![EDGELOG_OK, EDGELOG_END],
                };
                assert!(wanted.contains(&answer), "row {index}: {answer}");
            }
            1 => {
                let entity = self.rng.odd_number();
                let mut key = Block::bytes(8);
                let call = self.plain("edgelog_key", entity >= 1 << 56);
                let status = self.call(call, |e| unsafe { edgelog_key(9, entity, key.at(), e) });
                self.output(&key, status);
            }
            2 => {
                let mut kept = Kept::default();
                let (key, size) = kept.key(&mut self.rng);
                let mut place = Block::number(&mut self.rng);
                let partitions = self.rng.odd_number() as u32;
                let wrong = !(1..=EDGELOG_PARTITIONS_MAX).contains(&partitions);
                let wrong = wrong || place.wrong || (key.is_null() && size != 0);
                let call = self.plain("edgelog_partition_of", wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_partition_of(key, size, partitions, place.at(), e)
                });
                self.output(&place, status);
                assert!(status != EDGELOG_OK || place.half(0) < partitions);
            }
            _ => self.initialise(),
        }
    }

    fn initialise(&mut self) {
        let which = self.rng.below(10);
        let first = [
            size_of::<edgelog_error>(),
            size_of::<edgelog_record>(),
            size_of::<edgelog_options>(),
            size_of::<edgelog_topic_options>(),
            size_of::<edgelog_reader_options>(),
            size_of::<edgelog_group_options>(),
            size_of::<edgelog_nack_options>(),
            size_of::<edgelog_take_options>(),
            size_of::<edgelog_claim_options>(),
            size_of::<edgelog_pending_filter>(),
        ][which];
        let mut block = Block::sized(&mut self.rng, first);
        let said = block.half(0);
        let at = block.at::<u8>();
        let status = unsafe {
            match which {
                0 => edgelog_error_init(at.cast(), said),
                1 => edgelog_record_init(at.cast(), said),
                2 => edgelog_options_init(at.cast(), said),
                3 => edgelog_topic_options_init(at.cast(), said),
                4 => edgelog_reader_options_init(at.cast(), said),
                5 => edgelog_group_options_init(at.cast(), said),
                6 => edgelog_nack_options_init(at.cast(), said),
                7 => edgelog_take_options_init(at.cast(), said),
                8 => edgelog_claim_options_init(at.cast(), said),
                _ => edgelog_pending_filter_init(at.cast(), said),
            }
        };
        let wanted = match block.wrong {
            true => EDGELOG_INVALID,
            false => EDGELOG_OK,
        };
        assert_eq!(status, wanted);
        self.last = "edgelog_*_init";
        self.structure(&block, status);
    }
}
