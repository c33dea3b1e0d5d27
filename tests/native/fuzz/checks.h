/* What every result of the scanner must fulfil. */

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

static void set_categories(Scan *scan, Category categories[CATEGORIES]) {
    for (int number = 0; number < CATEGORIES; number++) {
        Slice text = {(const uint8_t *)KNOWN[number], strlen(KNOWN[number])};
        categories[number] = (Category){text, ROLES[number]};
    }
    scan->categories = categories;
    scan->category_count = CATEGORIES;
}

static void check_numbers(const Scan *scan) {
    CHECK(scan->events >= scan->complete.rows + scan->memory.rows);
    CHECK(scan->handed_count <= scan->complete.rows);
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
        CHECK(event->text.length >= 2 && *event->text.at == '{');
        CHECK(event->row < scan->complete.rows);
    }
}
