//! Closing in any order, opening again, and what handles answer afterwards.

use crate::calls::{self, status_of};
use crate::records::Got;
use crate::run::{Run, Topic};
use edgelog::options::*;
use edgelog::reader::EDGELOG_WAIT_FOREVER;
use edgelog::status::*;

impl Run {
    pub fn open(&mut self) {
        let mut options = calls::options();
        options.mode = self
            .rng
            .pick(&[EDGELOG_MODE_SHARED, EDGELOG_MODE_EXCLUSIVE]);
        if !self.background {
            options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
            self.log_limited = self.rng.percent(15);
        }
        if self.log_limited {
            options.log_bytes_max = 60_000;
        }
        options.on_damage = self
            .rng
            .pick(&[EDGELOG_ON_DAMAGE_SALVAGE, EDGELOG_ON_DAMAGE_REFUSE]);
        let there = self.directory.exists();
        options.create = match there {
            true => EDGELOG_CREATE_NEW,
            false => EDGELOG_CREATE_NEVER,
        };
        let refused = match there {
            true => EDGELOG_EXISTS,
            false => EDGELOG_NOT_FOUND,
        };
        let opened = calls::open(&self.directory, &options);
        assert_eq!(status_of(&opened), refused);
        options.create = match there {
            true => self
                .rng
                .pick(&[EDGELOG_CREATE_IF_MISSING, EDGELOG_CREATE_NEVER]),
            false => self
                .rng
                .pick(&[EDGELOG_CREATE_IF_MISSING, EDGELOG_CREATE_NEW]),
        };
        options.mode = self
            .rng
            .pick(&[EDGELOG_MODE_SHARED, EDGELOG_MODE_EXCLUSIVE]);
        self.log = calls::open(&self.directory, &options).unwrap();
        let mut other = calls::options();
        other.mode = EDGELOG_MODE_EXCLUSIVE;
        let locked = calls::open(&self.directory, &other).unwrap_err();
        assert_eq!(locked.status, EDGELOG_LOCKED);
        assert_eq!(locked.process_id, Some(std::process::id()));
        assert_eq!(calls::damages(self.log, false).unwrap(), 0);
    }

    /// Closes everything, in any order. What is left when the log goes says that it is closed.
    pub fn close(&mut self) {
        let mut log_open = true;
        while log_open || !self.handles.is_empty() || !self.followers.is_empty() {
            let left = self.handles.len() + self.followers.len();
            if log_open && self.rng.index(left + 1) == 0 {
                calls::close(self.log).unwrap();
                log_open = false;
                assert_eq!(status_of(&calls::close(self.log)), EDGELOG_CLOSED);
                assert_eq!(status_of(&calls::names(self.log)), EDGELOG_CLOSED);
                self.all_left_are_closed();
            } else {
                self.close_one();
            }
        }
        for topic in self.topics.values_mut() {
            for partition in &mut topic.partitions {
                partition.written = partition.next;
            }
        }
    }

    pub fn all_left_are_closed(&mut self) {
        for handle in &self.handles {
            assert_gone(handle.at, &[EDGELOG_CLOSED, EDGELOG_DELETED]);
        }
        for follower in &self.followers {
            let read = calls::read(follower.at, 1, 0, EDGELOG_WAIT_FOREVER);
            let mut wanted = vec![EDGELOG_CLOSED];
            if follower.deleted {
                wanted.push(EDGELOG_DELETED);
            }
            if follower.cancelled {
                wanted.push(EDGELOG_CANCELLED);
            }
            assert!(wanted.contains(&status_of(&read)), "{read:?}");
        }
    }

    /// Closes a topic's handle or a reader; the others go on.
    pub fn close_one(&mut self) {
        let left = self.handles.len() + self.followers.len();
        if left == 0 {
            return;
        }
        let at = self.rng.index(left);
        if at < self.handles.len() {
            let closed = self.handles.swap_remove(at);
            let handle = closed.at;
            calls::close_topic(handle).unwrap();
            // It flushed, if its topic is there.
            let topic = self.topics.get_mut(&closed.name);
            for partition in topic.into_iter().flat_map(|t| &mut t.partitions) {
                if !closed.deleted {
                    partition.written = partition.next;
                }
            }
            assert_gone(handle, &[EDGELOG_CLOSED]);
            assert_eq!(status_of(&calls::close_topic(handle)), EDGELOG_CLOSED);
        } else {
            let at = at - self.handles.len();
            let reader = self.followers.swap_remove(at).at;
            calls::close_reader(reader).unwrap();
            assert_eq!(status_of(&calls::read(reader, 1, 0, 0)), EDGELOG_CLOSED);
            assert_eq!(status_of(&calls::wake(reader)), EDGELOG_CLOSED);
            assert_eq!(status_of(&calls::close_reader(reader)), EDGELOG_CLOSED);
        }
    }

    pub fn reopen(&mut self) {
        self.close();
        self.open();
        assert_eq!(calls::names(self.log).unwrap(), self.names());
        let stats = calls::log_stats(self.log).unwrap();
        assert_eq!(stats.topics as usize, self.topics.len());
        assert_eq!(stats.foreign_files, 0);
        for topic in self.topics.values_mut() {
            *topic = Topic {
                turn: None,
                appended_records: 0,
                appended_bytes: 0,
                dropped_records: 0,
                partitions: std::mem::take(&mut topic.partitions),
                options: topic.options,
            };
        }
        self.learn_all();
        assert_eq!(calls::damages(self.log, true).unwrap(), 0);
    }

    pub fn use_what_is_deleted(&mut self) {
        for handle in self.handles.iter().filter(|handle| handle.deleted) {
            assert_gone(handle.at, &[EDGELOG_DELETED]);
        }
        for follower in self.followers.iter().filter(|follower| follower.deleted) {
            let read = calls::read(follower.at, 1, 0, EDGELOG_WAIT_FOREVER);
            let wanted = match follower.cancelled {
                true => vec![EDGELOG_CANCELLED, EDGELOG_DELETED],
                false => vec![EDGELOG_DELETED],
            };
            assert!(wanted.contains(&status_of(&read)), "{read:?}");
        }
    }
}

/// Every call on a topic's handle answers that it, its log or its topic is gone.
fn assert_gone(topic: calls::Topic, wanted: &[edgelog_status]) {
    let batch = [Got {
        value: Some(Vec::new()),
        ..Got::default()
    }];
    let wishes = calls::Wishes {
        partition: false,
        timestamp: vec![false],
        extra: 0,
        durability: EDGELOG_DURABILITY_DEFAULT,
    };
    let answers = [
        status_of(&calls::append(topic, &batch, &wishes)),
        status_of(&calls::configure(topic, &calls::topic_options())),
        status_of(&calls::configuration(topic)),
        status_of(&calls::flush_topic(topic)),
        status_of(&calls::sync_topic(topic)),
        status_of(&calls::retain(topic)),
        status_of(&calls::topic_stats(topic)),
        status_of(&calls::partition_stats(topic, 0)),
        status_of(&calls::reader(topic, calls::reader_options(), None)),
    ];
    let right = answers.iter().all(|status| wanted.contains(status));
    assert!(right, "{answers:?}, not {wanted:?}");
}
