//! Layouts: the numbers that `tests/c/layout.c` repeats. They are the same on every machine; where
//! one changes, this does not compile.

use std::mem::{align_of, offset_of, size_of};

use crate::compaction::edgelog_compaction_report;
use crate::consumers::edgelog_consumer_stats;
use crate::error::edgelog_error;
use crate::group::edgelog_group_options;
use crate::keep::edgelog_keep_rule;
use crate::leases::edgelog_lease;
use crate::options::{edgelog_options, edgelog_reader_options, edgelog_topic_options};
use crate::pending::{edgelog_pending_filter, edgelog_pending_record};
use crate::record::{edgelog_bytes, edgelog_header, edgelog_position, edgelog_ptr, edgelog_record};
use crate::report::edgelog_damage;
use crate::settle::edgelog_nack_options;
use crate::stats::{
    edgelog_group_stats, edgelog_log_stats, edgelog_partition_stats, edgelog_topic_stats,
};
use crate::take::{edgelog_claim_options, edgelog_delivery, edgelog_take_options};

/// A structure's size, and where its fields begin.
macro_rules! layout {
    ($type:ident, $size:literal, $($field:ident $offset:literal),+) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            assert!(align_of::<$type>() == 8 || cfg!(target_arch = "x86"));
            $(assert!(offset_of!($type, $field) == $offset);)+
        };
    };
}

layout!(edgelog_ptr, 8, p 0, bits 0);
layout!(edgelog_bytes, 16, data 0, size 8, reserved 12);
layout!(edgelog_header, 32, name 0, value 16);
layout!(edgelog_keep_rule, 32, prefix 0, keep 16, reserved 20, value 24);
layout!(edgelog_compaction_report, 104, struct_size 0, reserved 4, records_read 8, bytes_read 16,
    records_removed 24, bytes_written 32, bytes_freed 40, segments_rewritten 48,
    segments_removed 56, segments_kept 64, segments_damaged 72, passes 80, keys_peak 88,
    duration_ms 96);
layout!(edgelog_position, 16, partition 0, reserved 4, offset 8);
layout!(edgelog_error, 312, struct_size 0, status 4, os_error 8, flags 12, partition 16,
    process_id 20, segment 24, position 32, offset 40, offset_end 48, text 56);
layout!(edgelog_record, 80, struct_size 0, flags 4, partition 8, header_count 12, offset 16,
    timestamp_ms 24, key 32, value 48, headers 64, deliveries 72, reserved 76);
layout!(edgelog_options, 40, struct_size 0, mode 4, maintenance 8, on_damage 12, create 16,
    lock_timeout_ms 20, log_bytes_max 24, busy_timeout_ms 32, reserved 36);
layout!(edgelog_topic_options, 104, struct_size 0, create 4, partitions 8, durability 12,
    when_full 16, linger_ms 20, sync_interval_ms 24, buffer_bytes 28, segment_bytes 32,
    max_bytes 40, max_age_ms 48, max_records 56, compaction_keys_max 64, min_garbage_percent 68,
    tombstone_ms 72, compact_trigger_bytes 80, keep 88, keep_count 96,
    hold_for_groups 100);
layout!(edgelog_reader_options, 56, struct_size 0, partition 4, start 8, direction 12, on_gap 16,
    buffer_bytes 20, start_value 24, key 32, flags 48, reserved 52);
layout!(edgelog_group_options, 80, struct_size 0, create 4, start 8, durability 12,
    start_value 16, ack_timeout_ms 24, backoff_ms 28, backoff_max_ms 32, max_deliveries 36,
    when_exhausted 40, consumer_ttl_ms 44, ordered 48, lease_ttl_ms 52, processing_timeout_ms 56,
    reserved 60, dead_letter 64);
layout!(edgelog_nack_options, 32, struct_size 0, flags 4, delay_ms 8, reserved 12, reason 16);
layout!(edgelog_take_options, 24, struct_size 0, take 4, flags 8, reserved 12, max_bytes 16);
layout!(edgelog_claim_options, 32, struct_size 0, flags 4, min_idle_ms 8, min_deliveries 16,
    reserved 20, max_bytes 24);
layout!(edgelog_delivery, 40, struct_size 0, records 4, redelivered 8, reserved 12, expired 16,
    skipped 24, given_up 32);
layout!(edgelog_pending_filter, 56, struct_size 0, flags 4, partition 8, min_deliveries 12,
    first_offset 16, last_offset 24, min_idle_ms 32, consumer 40);
layout!(edgelog_pending_record, 72, struct_size 0, flags 4, deliveries 8, reserved 12,
    position 16, age_ms 32, idle_ms 40, due_in_ms 48, consumer 56);
layout!(edgelog_consumer_stats, 72, struct_size 0, flags 4, name 8, pending 24,
    oldest_idle_ms 32, seen_ago_ms 40, delivered_ago_ms 48, deliveries 56, redeliveries 64);
layout!(edgelog_lease, 48, struct_size 0, flags 4, partition 8, reserved 12, epoch 16,
    ends_in_ms 24, consumer 32);
layout!(edgelog_group_stats, 96, struct_size 0, consumers 4, lag 8, pending 16, released 24,
    oldest_pending_ms 32, delivered 40, redelivered 48, acknowledged 56, expired 64, given_up 72,
    skipped 80, bytes 88);
layout!(edgelog_log_stats, 64, struct_size 0, topics 4, bytes 8, running_ms 16, open_files 24,
    foreign_files 28, lock 32, wait 48);
layout!(edgelog_topic_stats, 120, struct_size 0, partitions 4, records 8, bytes 16, segments 24,
    appended_records 32, appended_bytes 40, written_bytes 48, syncs 56, dropped_records 64,
    dropped_bytes 72, damaged_bytes 80, compactions 88, compacted_records 96,
    rewritten_bytes 104, buffered_bytes 112);
layout!(edgelog_partition_stats, 64, struct_size 0, partition 4, earliest_offset 8,
    next_offset 16, written_offset 24, durable_offset 32, records 40, bytes 48, segments 56);
layout!(edgelog_damage, 88, struct_size 0, kind 4, partition 8, reserved 12, segment 16,
    position 24, bytes 32, offset 40, offset_end 48, topic 56, group 72);
