/* Initialisers: structures with their size and defaults set, and a short way to write bytes.
 *
 *     edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
 *     options.max_bytes = 8 * 1024 * 1024;
 */

#define EDGELOG_PTR_INIT {0}
#define EDGELOG_BYTES_INIT {EDGELOG_PTR_INIT, 0, 0}
#define EDGELOG_ERROR_INIT {sizeof(edgelog_error), 0, 0, 0, 0, 0, 0, 0, 0, 0, ""}
#define EDGELOG_RECORD_INIT                                                                        \
  {sizeof(edgelog_record), 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT, EDGELOG_BYTES_INIT,                  \
   EDGELOG_PTR_INIT}
#define EDGELOG_OPTIONS_INIT {sizeof(edgelog_options), 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_TOPIC_OPTIONS_INIT                                                                 \
  {sizeof(edgelog_topic_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, EDGELOG_PTR_INIT,   \
   0, 0}
#define EDGELOG_READER_OPTIONS_INIT                                                                \
  {sizeof(edgelog_reader_options), EDGELOG_PARTITION_ALL, 0, 0, 0, 0, 0,                           \
   EDGELOG_BYTES_INIT, 0, 0}
#define EDGELOG_LOG_STATS_INIT {sizeof(edgelog_log_stats), 0, 0, 0, 0, 0, "", ""}
#define EDGELOG_TOPIC_STATS_INIT                                                                   \
  {sizeof(edgelog_topic_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_COMPACTION_REPORT_INIT                                                             \
  {sizeof(edgelog_compaction_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_PARTITION_STATS_INIT                                                               \
  {sizeof(edgelog_partition_stats), 0, 0, 0, 0, 0, 0, 0, 0}
#define EDGELOG_DAMAGE_INIT                                                                        \
  {sizeof(edgelog_damage), 0, 0, 0, 0, 0, 0, 0, 0, EDGELOG_BYTES_INIT}

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
