/* Initialisers: structures with their size and defaults set, names, and a short way to write bytes.
 *
 *     edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
 *     options.max_bytes = 8 * 1024 * 1024;
 */

#define EDGELOG_PTR_INIT {0}
#define EDGELOG_BYTES_INIT {EDGELOG_PTR_INIT, 0, 0}
#define EDGELOG_ERROR_INIT {sizeof(edgelog_error), 0, 0, 0, 0, 0, 0, 0, 0, 0, ""}
#define EDGELOG_RECORD_INIT                                                                        \
  {sizeof(edgelog_record), 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT, EDGELOG_BYTES_INIT,                  \
   EDGELOG_PTR_INIT, 0, 0}
#define EDGELOG_OPTIONS_INIT {sizeof(edgelog_options), 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_TOPIC_OPTIONS_INIT                                                                 \
  {sizeof(edgelog_topic_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, EDGELOG_PTR_INIT,   \
   0, 0}
#define EDGELOG_READER_OPTIONS_INIT                                                                \
  {sizeof(edgelog_reader_options), EDGELOG_PARTITION_ALL, 0, 0, 0, 0, 0,                           \
   EDGELOG_BYTES_INIT, 0, 0}
#define EDGELOG_GROUP_OPTIONS_INIT                                                                 \
  {sizeof(edgelog_group_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT}
#define EDGELOG_NACK_OPTIONS_INIT {sizeof(edgelog_nack_options), 0, 0, 0, EDGELOG_BYTES_INIT}
#define EDGELOG_TAKE_OPTIONS_INIT {sizeof(edgelog_take_options), 0, 0, 0, 0}
#define EDGELOG_CLAIM_OPTIONS_INIT {sizeof(edgelog_claim_options), 0, 0, 0, 0, 0}
#define EDGELOG_DELIVERY_INIT {sizeof(edgelog_delivery), 0, 0, 0, 0, 0, 0}
#define EDGELOG_PENDING_FILTER_INIT                                                                \
  {sizeof(edgelog_pending_filter), 0, 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT}
#define EDGELOG_PENDING_RECORD_INIT                                                                \
  {sizeof(edgelog_pending_record), 0, 0, 0, {0, 0, 0}, 0, 0, 0, EDGELOG_BYTES_INIT}
#define EDGELOG_CONSUMER_STATS_INIT                                                                \
  {sizeof(edgelog_consumer_stats), 0, EDGELOG_BYTES_INIT, 0, 0, 0, 0, 0, 0}
#define EDGELOG_LEASE_INIT {sizeof(edgelog_lease), 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT}
#define EDGELOG_GROUP_STATS_INIT                                                                   \
  {sizeof(edgelog_group_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_LOG_STATS_INIT {sizeof(edgelog_log_stats), 0, 0, 0, 0, 0, "", ""}
#define EDGELOG_TOPIC_STATS_INIT                                                                   \
  {sizeof(edgelog_topic_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_COMPACTION_REPORT_INIT                                                             \
  {sizeof(edgelog_compaction_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_PARTITION_STATS_INIT                                                               \
  {sizeof(edgelog_partition_stats), 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_DAMAGE_INIT                                                                        \
  {sizeof(edgelog_damage), 0, 0, 0, 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT, EDGELOG_BYTES_INIT}

/** The header of a dead letter with the name of the topic that it came from. */
#define EDGELOG_DEAD_TOPIC "edgelog.topic"
/** The header of a dead letter with its partition there, in decimal. */
#define EDGELOG_DEAD_PARTITION "edgelog.partition"
/** The header of a dead letter with its offset there, in decimal. */
#define EDGELOG_DEAD_OFFSET "edgelog.offset"
/** The header of a dead letter with the name of the group that gave it up. */
#define EDGELOG_DEAD_GROUP "edgelog.group"
/** The header of a dead letter with how often it was delivered, in decimal. */
#define EDGELOG_DEAD_DELIVERIES "edgelog.deliveries"
/** The header of a dead letter with the reason. */
#define EDGELOG_DEAD_REASON "edgelog.reason"

/** Bytes of the caller, which must live until the call that they are passed to returns. */
static inline edgelog_bytes edgelog_bytes_of(const void *data, uint32_t size) {
  edgelog_bytes bytes = EDGELOG_BYTES_INIT;
  bytes.data.p = data;
  bytes.size = size;
  return bytes;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* EDGELOG_H */
