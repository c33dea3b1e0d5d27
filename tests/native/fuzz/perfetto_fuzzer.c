/* A target for libFuzzer: reads any bytes as packets of Perfetto and scans their events. What the scanner understands of an
 * event must be what it understands of the JSON of this event. See README.md. */

#include "checks.h"
#include "perfetto_parts.h"

enum { COMPARED = 48 };

/* Begins a scan of one or all events. */
static void begin(Scan *scan, Arena *copies, Category categories[CATEGORIES]) {
    scan_begin(scan, 1, copies);
    scan->exact = true;
    set_categories(scan, categories);
}

static void check_keys(const Table *table, const Table *other, int64_t row, int64_t other_row) {
    CHECK((row < 0) == (other_row < 0));
    for (int part = 0; row >= 0 && part < PARTS; part++) {
        Slice one = table->keys[row].parts[part], two = other->keys[other_row].parts[part];
        CHECK(one.length == two.length && (one.length == 0 || memcmp(one.at, two.at, one.length) == 0));
    }
}

/* Compares the row of one event that both understood. */
static void check_same(const Scan *scan, const Scan *other) {
    if (scan->handed_count > 0 || other->handed_count > 0) return;
    CHECK(scan->complete.rows == other->complete.rows && scan->memory.rows == other->memory.rows);
    for (size_t row = 0; row < scan->complete.rows; row++) {
        const int64_t *one = scan->complete.numbers + row * COLUMNS, *two = other->complete.numbers + row * COLUMNS;
        for (int column = 0; column < COLUMNS; column++) {
            if (column != LABEL_ROW && column != SIGNATURE_ROW) CHECK(one[column] == two[column]);
        }
        check_keys(&scan->labels, &other->labels, one[LABEL_ROW], two[LABEL_ROW]);
        check_keys(&scan->signatures, &other->signatures, one[SIGNATURE_ROW], two[SIGNATURE_ROW]);
    }
    for (size_t row = 0; row < scan->memory.rows; row++) {
        const int64_t *one = scan->memory.numbers + row * MEMORY_COLUMNS, *two = other->memory.numbers + row * MEMORY_COLUMNS;
        for (int column = 0; column < MEMORY_COLUMNS; column++) CHECK(column == CALLER_ROW || one[column] == two[column]);
        check_keys(&scan->callers, &other->callers, one[CALLER_ROW], two[CALLER_ROW]);
    }
}

/* Scans one item, and its JSON. */
static void compare(const Perfetto *trace, size_t number) {
    const Item *item = &trace->items[number];
    size_t next = trace->track_count + number, size = 1;
    Arena copies = {0};
    Category categories[CATEGORIES];
    Scan scan, other;
    Text text = {0};
    begin(&scan, &copies, categories);
    begin(&other, NULL, categories);
    PUT(&text, "[");
    put_item(&text, trace, item);
    PUT(&text, "]");
    if (scan_packets(trace, &copies, &scan, &next, next + 1, &size) == SCANNED && scan.events > 0 && !text.failed) {
        if (scan_list(&other, text_slice(&text)) == SCANNED) check_same(&scan, &other);
        else CHECK(scan.handed_count > 0 || scan.memory.rows > 0);
    }
    free(text.at);
    scan_free(&scan);
    scan_free(&other);
    arena_free(&copies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Perfetto trace = {0};
    size_t cut = size == 0 ? 0 : data[size - 1] * size / 256;
    if (read_packets(&trace, (Slice){data, cut}) && read_packets(&trace, (Slice){data + cut, size - cut}) &&
        end_packets(&trace)) {
        Text head = {0};
        put_head(&head, &trace);
        free(head.at);
        for (size_t next = 0, before = SIZE_MAX, bytes = 1 << 10; next < event_count(&trace); bytes = 1 << 10) {
            Arena copies = {0};
            Category categories[CATEGORIES];
            Scan scan;
            CHECK(next != before);
            before = next;
            begin(&scan, &copies, categories);
            if (scan_packets(&trace, &copies, &scan, &next, SIZE_MAX, &bytes) == SCANNED) check_numbers(&scan);
            else next = event_count(&trace);
            scan_free(&scan);
            arena_free(&copies);
        }
        for (size_t number = 0; number < trace.item_count && number < COMPARED; number++) {
            if (trace.items[number].phase != BEGIN || trace.items[number].has_end) compare(&trace, number);
        }
    }
    perfetto_free(&trace);
    return 0;
}
