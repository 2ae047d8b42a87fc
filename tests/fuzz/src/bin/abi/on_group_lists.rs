//! The lists of a group: what is pending, who its consumers are, and who has which partition.

use crate::contents::{choice, set_bytes, Kept};
use crate::handles::Kind;
use crate::judge::Call;
use crate::memory::Block;
use crate::taking::look_at_name;
use crate::Fuzz;
use edgelog::consumers::*;
use edgelog::leases::*;
use edgelog::pending::*;
use edgelog::status::*;
use std::mem::offset_of;

/// What a list is asked for.
#[derive(Clone, Copy)]
enum Ask {
    Count,
    Get(u32),
}

impl Fuzz<'_> {
    fn pending_filter(&mut self, kept: &mut Kept) -> Block {
        let rng = &mut self.rng;
        let mut block = Block::input(rng, size_of::<edgelog_pending_filter>());
        let flags = choice(rng, 8, &mut kept.wrong);
        block.set_u32(offset_of!(edgelog_pending_filter, flags), flags);
        let mut given = |flag| flags & flag != 0 || rng.percent(1);
        let has_partition = given(EDGELOG_PENDING_HAS_PARTITION);
        let has_last_offset = given(EDGELOG_PENDING_HAS_LAST_OFFSET);
        let has_consumer = given(EDGELOG_PENDING_HAS_CONSUMER);
        let is_forgotten = |flag| flags & flag == 0;
        if has_partition {
            let partition = rng.below(4) as u32;
            kept.wrong |= partition != 0 && is_forgotten(EDGELOG_PENDING_HAS_PARTITION);
            let at = offset_of!(edgelog_pending_filter, partition);
            block.set_u32(at, partition);
        }
        if has_last_offset {
            let offset = rng.odd_number();
            kept.wrong |= offset != 0 && is_forgotten(EDGELOG_PENDING_HAS_LAST_OFFSET);
            let at = offset_of!(edgelog_pending_filter, last_offset);
            block.set_u64(at, offset);
        }
        if has_consumer {
            let name = match rng.below(20) {
                0 => b"\xc3".to_vec(),
                n => format!("{}", n % 3).into_bytes(),
            };
            kept.wrong |= name[0] == 0xc3;
            let name = kept.bytes(rng, name);
            kept.wrong |= is_forgotten(EDGELOG_PENDING_HAS_CONSUMER);
            set_bytes(
                &mut block,
                offset_of!(edgelog_pending_filter, consumer),
                name,
            );
        }
        let deliveries = rng.below(3) as u32;
        block.set_u32(
            offset_of!(edgelog_pending_filter, min_deliveries),
            deliveries,
        );
        for at in [
            offset_of!(edgelog_pending_filter, first_offset),
            offset_of!(edgelog_pending_filter, min_idle_ms),
        ] {
            if rng.percent(20) {
                block.set_u64(at, rng.odd_number());
            }
        }
        block
    }

    fn group_pending(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let mut kept = Kept::default();
        let mut filter = self.pending_filter(&mut kept);
        let max = match self.rng.percent(70) {
            true => self.rng.below(20) as u32,
            false => self.rng.odd_number() as u32,
        };
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_group_pending", group)
            .wrong_if(place.wrong || ((filter.wrong || kept.wrong) && !filter.is_null()));
        // SAFETY: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or to
        // what the header says, or refused unread; so in all of this file.
        let status = self.call(call, |e| unsafe {
            edgelog_group_pending(group.at.cast(), filter.at(), max, place.at(), e)
        });
        assert!(filter.unchanged());
        self.output(&place, status);
        if status == EDGELOG_OK {
            let mut count = 0;
            // SAFETY: the list was just made.
            let told = unsafe {
                let list = place.word() as *const _;
                edgelog_pending_count(list, &mut count, std::ptr::null_mut())
            };
            assert_eq!(told, EDGELOG_OK);
            assert!(count <= max, "{count} where {max} were asked for");
            self.handles
                .add(place.word() as *mut _, Kind::Pending, group.log);
        }
    }

    fn group_consumers(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_group_consumers", group).wrong_if(place.wrong);
        let status = self.call(call, |e| unsafe {
            edgelog_group_consumers(group.at.cast(), place.at(), e)
        });
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles
                .add(place.word() as *mut _, Kind::Consumers, group.log);
        }
    }

    fn group_leases(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let mut kept = Kept::default();
        let (mut name, mut size) = kept.name(&mut self.rng);
        if self.rng.percent(40) {
            (name, size) = (std::ptr::null(), 0);
        }
        // All of them.
        kept.wrong &= !(name.is_null() && size == 0);
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_group_leases", group).wrong_if(kept.wrong || place.wrong);
        let status = self.call(call, |e| unsafe {
            edgelog_group_leases(group.at.cast(), name, size, place.at(), e)
        });
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles
                .add(place.word() as *mut _, Kind::Leases, group.log);
        }
    }

    /// One of the calls on a list of this kind.
    fn ask(&mut self, kind: Kind, ask: Ask) {
        let list = self.handles.pick(&mut self.rng, kind);
        let at = list.at;
        let (count_name, get_name, size) = match kind {
            Kind::Pending => (
                "edgelog_pending_count",
                "edgelog_pending_get",
                size_of::<edgelog_pending_record>(),
            ),
            Kind::Consumers => (
                "edgelog_consumers_count",
                "edgelog_consumers_get",
                size_of::<edgelog_consumer_stats>(),
            ),
            _ => (
                "edgelog_leases_count",
                "edgelog_leases_get",
                size_of::<edgelog_lease>(),
            ),
        };
        match ask {
            Ask::Count => {
                let mut count = Block::number(&mut self.rng);
                let call = Call::new(count_name, list).wrong_if(count.wrong);
                let status = self.call(call, |e| unsafe {
                    match kind {
                        Kind::Pending => edgelog_pending_count(at.cast(), count.at(), e),
                        Kind::Consumers => edgelog_consumers_count(at.cast(), count.at(), e),
                        _ => edgelog_leases_count(at.cast(), count.at(), e),
                    }
                });
                self.output(&count, status);
            }
            Ask::Get(index) => {
                let mut entry = Block::sized(&mut self.rng, size);
                let call = Call::new(get_name, list).wrong_if(entry.wrong);
                let status = self.call(call, |e| unsafe {
                    match kind {
                        Kind::Pending => edgelog_pending_get(at.cast(), index, entry.at(), e),
                        Kind::Consumers => edgelog_consumers_get(at.cast(), index, entry.at(), e),
                        _ => edgelog_leases_get(at.cast(), index, entry.at(), e),
                    }
                });
                self.structure(&entry, status);
                if status == EDGELOG_OK {
                    let entry = entry.bytes_ptr();
                    // SAFETY: the call filled a structure of this kind.
                    let name = unsafe {
                        match kind {
                            Kind::Pending => (*entry.cast::<edgelog_pending_record>()).consumer,
                            Kind::Consumers => (*entry.cast::<edgelog_consumer_stats>()).name,
                            _ => (*entry.cast::<edgelog_lease>()).consumer,
                        }
                    };
                    look_at_name(name);
                }
            }
        }
    }

    pub fn on_group_lists(&mut self) {
        let kind = *self
            .rng
            .pick(&[Kind::Pending, Kind::Consumers, Kind::Leases]);
        if !self.handles.has(kind) || self.rng.percent(30) {
            match kind {
                Kind::Pending => self.group_pending(),
                Kind::Consumers => self.group_consumers(),
                _ => self.group_leases(),
            }
        }
        match self.rng.below(8) {
            0 | 1 => self.ask(kind, Ask::Count),
            2..=5 => {
                let index = match self.rng.percent(80) {
                    true => self.rng.below(4) as u32,
                    false => self.rng.odd_number() as u32,
                };
                self.ask(kind, Ask::Get(index));
            }
            _ => {
                let list = self.handles.pick(&mut self.rng, kind);
                self.close(list.at, kind, list.state);
            }
        }
    }
}
