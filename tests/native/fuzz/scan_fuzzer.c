/* A target for libFuzzer: scans any bytes, and checks what every result must fulfil. See README.md. */

#include <stdio.h>
#include <stdlib.h>

#include "scan.h"

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);   \
            abort();                                                            \
        }                                                                       \
    } while (0)

static const char *const KNOWN[] = {"\"cpu_op\"", "\"kernel\"", "\"cuda_runtime\"", "\"gpu_memcpy\"", "\"ac2g\""};
static const unsigned ROLES[] = {OPERATOR, LINKED | ON_DEVICE, LINKED, LINKED | ON_DEVICE, 0};
enum { CATEGORIES = sizeof ROLES / sizeof *ROLES };

static bool inside(Slice part, const uint8_t *data, size_t size) {
    return part.length == 0 || (part.at >= data && part.at <= data + size && part.length <= (size_t)(data + size - part.at));
}

static void check_table(const Table *table, const uint8_t *data, size_t size) {
    for (size_t number = 0; number < table->count; number++) {
        for (int part = 0; part < PARTS; part++) CHECK(inside(table->keys[number].parts[part], data, size));
    }
}

static void check_scan(const Scan *scan, const uint8_t *data, size_t size) {
    CHECK(scan->events >= scan->complete.rows + scan->memory.rows);
    CHECK(scan->handed_count <= scan->complete.rows);
    check_table(&scan->labels, data, size);
    check_table(&scan->signatures, data, size);
    check_table(&scan->callers, data, size);
    for (size_t row = 0; row < scan->complete.rows; row++) {
        const int64_t *numbers = scan->complete.numbers + row * COLUMNS;
        CHECK(numbers[LABEL_ROW] >= 0 && (size_t)numbers[LABEL_ROW] < scan->labels.count);
        CHECK(numbers[SIGNATURE_ROW] >= -1 && numbers[SIGNATURE_ROW] < (int64_t)scan->signatures.count);
        CHECK(numbers[START_NS] >= 0 && numbers[DURATION_NS] >= 0 && numbers[BLOCKS] >= 0);
        CHECK(numbers[MULTIPROCESSORS] >= 0 && (double)numbers[MULTIPROCESSORS] <= (double)numbers[BLOCKS]);
    }
    for (size_t row = 0; row < scan->memory.rows; row++) {
        const int64_t *numbers = scan->memory.numbers + row * MEMORY_COLUMNS;
        CHECK(numbers[CALLER_ROW] >= 0 && (size_t)numbers[CALLER_ROW] < scan->callers.count);
    }
    for (size_t number = 0; number < scan->handed_count; number++) {
        const Handed *event = &scan->handed[number];
        CHECK(inside(event->text, data, size) && event->text.length >= 2 && *event->text.at == '{');
        CHECK(event->row < scan->complete.rows);
    }
}

/* The first byte selects how times are read and where the text is cut into two lists. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Category categories[CATEGORIES];
    Scan scan;
    if (size == 0) return 0;
    for (int number = 0; number < CATEGORIES; number++) {
        Slice text = {(const uint8_t *)KNOWN[number], strlen(KNOWN[number])};
        categories[number] = (Category){text, ROLES[number]};
    }
    uint8_t choice = *data++;
    size--;
    size_t cut = choice & 2 ? size * (choice >> 2) / 64 : 0;
    scan_begin(&scan, choice);
    scan.exact = choice & 1;
    scan.categories = categories;
    scan.category_count = CATEGORIES;
    if (cut == 0 || scan_list(&scan, (Slice){data, cut}) == SCANNED) {
        if (scan_list(&scan, (Slice){data + cut, size - cut}) == SCANNED) check_scan(&scan, data, size);
    }
    scan_free(&scan);
    return 0;
}
