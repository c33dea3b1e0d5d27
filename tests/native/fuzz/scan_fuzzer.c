/* A target for libFuzzer: scans any bytes, and checks what every result must fulfil. See README.md. */

#include "checks.h"

static bool inside(Slice part, const uint8_t *data, size_t size) {
    return part.length == 0 || (part.at >= data && part.at <= data + size && part.length <= (size_t)(data + size - part.at));
}

static void check_table(const Table *table, const uint8_t *data, size_t size) {
    for (size_t number = 0; number < table->count; number++) {
        for (int part = 0; part < PARTS; part++) CHECK(inside(table->keys[number].parts[part], data, size));
    }
}

static void check_scan(const Scan *scan, const uint8_t *data, size_t size) {
    check_numbers(scan);
    check_table(&scan->labels, data, size);
    check_table(&scan->signatures, data, size);
    check_table(&scan->callers, data, size);
    for (size_t number = 0; number < scan->handed_count; number++) CHECK(inside(scan->handed[number].text, data, size));
}

/* The first byte selects how times are read and where the text is cut into two lists. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Category categories[CATEGORIES];
    Scan scan;
    if (size == 0) return 0;
    uint8_t choice = *data++;
    size--;
    size_t cut = choice & 2 ? size * (choice >> 2) / 64 : 0;
    scan_begin(&scan, choice, NULL);
    scan.exact = choice & 1;
    set_categories(&scan, categories);
    if (cut == 0 || scan_list(&scan, (Slice){data, cut}) == SCANNED) {
        if (scan_list(&scan, (Slice){data + cut, size - cut}) == SCANNED) check_scan(&scan, data, size);
    }
    scan_free(&scan);
    return 0;
}
