/* The smallest program that needs the header, the library and a topic on disk. */
#include <edgelog.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what, const edgelog_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->text);
    return 1;
}

int main(int argc, char **argv)
{
    edgelog_error error;
    edgelog_log *log = NULL;
    edgelog_topic *topic = NULL;
    edgelog_record record;
    edgelog_position position;

    if (argc != 2) {
        fprintf(stderr, "usage: hello DIRECTORY\n");
        return 2;
    }
    if (edgelog_version() != (uint32_t)(EDGELOG_VERSION_MAJOR << 16 | EDGELOG_VERSION_MINOR << 8 |
                                        EDGELOG_VERSION_PATCH)) {
        fprintf(stderr, "the header and the library are of different versions\n");
        return 1;
    }
    edgelog_error_init(&error, sizeof error);
    edgelog_record_init(&record, sizeof record);
    record.flags = EDGELOG_RECORD_HAS_VALUE;
    record.value.data.p = "hello";
    record.value.size = 5;
    if (edgelog_open(argv[1], NULL, &log, &error) != EDGELOG_OK)
        return failed("open", &error);
    if (edgelog_topic_open(log, "t", 1, NULL, &topic, &error) != EDGELOG_OK)
        return failed("topic", &error);
    if (edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_DEFAULT, &position, &error) !=
        EDGELOG_OK)
        return failed("append", &error);
    if (edgelog_topic_close(topic, &error) != EDGELOG_OK ||
        edgelog_close(log, &error) != EDGELOG_OK)
        return failed("close", &error);
    printf("edgelog %s appended offset %llu\n", edgelog_version_text(),
           (unsigned long long)position.offset);
    return 0;
}
