#include "scan.h"

#include <math.h>
#include <stdlib.h>

/* A list with more of them is faster in Python. */
enum { MAX_HANDED = 4096, FIRST_ROWS = 1024 };
static const int64_t MAX_DURATION_NS = INT64_C(7) * 24 * 3600 * 1000000000;
static const int64_t MAX_DEVICE = INT64_C(1) << 31;
static const uint64_t FIRST_DEPENDENCY = UINT64_C(1) << 40;

/* Makes room for one more item of this size in an array, which may move; false if there is no memory. */
static bool make_room(void **items, size_t size, size_t count, size_t *capacity) {
    if (count < *capacity) return true;
    size_t wanted = *capacity == 0 ? FIRST_ROWS : *capacity * 2;
    if (wanted > SIZE_MAX / 2 / size) return false;
    void *moved = realloc(*items, wanted * size);
    if (moved == NULL) return false;
    *items = moved;
    *capacity = wanted;
    return true;
}

/* Appends a row of zeros; NULL if there is no memory. */
static int64_t *new_row(Rows *rows) {
    void *numbers = rows->numbers;
    if (!make_room(&numbers, rows->width * sizeof(int64_t), rows->rows, &rows->capacity)) return NULL;
    rows->numbers = numbers;
    int64_t *row = rows->numbers + rows->rows++ * rows->width;
    memset(row, 0, rows->width * sizeof(int64_t));
    return row;
}

bool scan_hand_over(Scan *scan, Slice text) {
    void *handed = scan->handed;
    if (!make_room(&handed, sizeof(Handed), scan->handed_count, &scan->handed_capacity)) return false;
    scan->handed = handed;
    scan->handed[scan->handed_count++] = (Handed){text, scan->complete.rows};
    int64_t *row = new_row(&scan->complete);
    if (row == NULL) return false;
    row[LABEL_ROW] = table_add_marker(&scan->labels);
    row[SIGNATURE_ROW] = table_add_marker(&scan->signatures);
    return row[LABEL_ROW] >= 0 && row[SIGNATURE_ROW] >= 0;
}

static void add_device_work(int64_t *row, const Event *event) {
    row[DEVICE_ID] = event->device > -MAX_DEVICE && event->device < MAX_DEVICE ? event->device : 0;
    row[STREAM_ID] = event->stream;
    row[SIZE] = event->bytes;
    row[BLOCKS] = event->blocks;
    double ratio = event->blocks_per_multiprocessor;
    row[OCCUPANCY_PERCENT] = event->occupancy;
    if (ratio >= 1) row[MULTIPROCESSORS] = (int64_t)rint((double)event->blocks / ratio);
}

static bool add_complete(Scan *scan, Event *event) {
    int64_t *row = new_row(&scan->complete);
    if (row == NULL) return false;
    row[START_NS] = event->start;
    row[DURATION_NS] = event->duration;
    if (event->label == 0) {
        Slice label[] = {event->category, event->name, event->process, event->thread};
        event->label = table_add(&scan->labels, label) + 1;
    }
    row[LABEL_ROW] = event->label - 1;
    row[SIGNATURE_ROW] = -1;
    if (event->roles & OPERATOR) {
        row[SEQUENCE_NUMBER] = event->sequence;
        if (event->dims.length > 0 || event->dims_old.length > 0) {
            Slice parts[] = {event->dims, event->dims_old, event->types, event->concrete};
            row[SIGNATURE_ROW] = table_add(&scan->signatures, parts);
            if (row[SIGNATURE_ROW] < 0) return false;
        }
    }
    if (event->roles & LINKED) row[CORRELATION_ID] = event->correlation;
    if (event->roles & ON_DEVICE) add_device_work(row, event);
    return row[LABEL_ROW] >= 0;
}

static bool add_memory(Scan *scan, const Event *event) {
    int64_t *row = new_row(&scan->memory);
    if (row == NULL) return false;
    row[MEMORY_TIME_NS] = event->start;
    row[CALLER_ROW] = table_add(&scan->callers, (Slice[]){{0}, {0}, event->process, event->thread});
    row[MEMORY_ADDRESS] = event->address;
    row[MEMORY_SIZE] = event->allocated_bytes;
    row[ALLOCATED] = event->total_allocated;
    row[RESERVED] = event->total_reserved;
    row[DEVICE_TYPE] = event->memory_device_type;
    row[DEVICE_INDEX] = event->memory_device;
    return row[CALLER_ROW] >= 0;
}

static const Category *category_of(const Scan *scan, Slice text) {
    for (size_t number = 0; number < scan->category_count; number++) {
        const Category *category = &scan->categories[number];
        if (category->text.length == text.length && memcmp(category->text.at, text.at, text.length) == 0) return category;
    }
    return NULL;
}

/* Returns true for a dependency of work in a CUDA graph, which torch 2.15 writes as a flow: torch/profiler/_cuspy/trace.py,
 * _GRAPH_DEP_FLOW_ID_BASE. */
static bool is_dependency(const Event *event) {
    Cursor cursor = cursor_of(event->id);
    Number number;
    return (IS(event->phase, "\"s\"") || IS(event->phase, "\"f\"")) && read_number(&cursor, &number) &&
           cursor.at == cursor.end && number.whole >= FIRST_DEPENDENCY;
}

bool scan_event(Scan *scan, Event *event, bool *mine) {
    bool complete = IS(event->phase, "\"X\""), timed = event->has_start && event->time_is_plain;
    *mine = false;
    if (event->phase.length <= 2 || IS(event->phase, "\"M\"")) return true;
    if (!complete) {
        if (IS(event->phase, "\"C\"") || is_dependency(event)) return true;
        bool memory = IS(event->name, "\"[memory]\"") && event->has_args;
        if (memory && !timed) return true;
        *mine = true;
        return !memory || add_memory(scan, event);
    }
    if (!timed || event->duration > MAX_DURATION_NS) return true;
    if (event->label == 0) {
        if (IS(event->name, "\"record_param_comms\"") || event->category.length == 0) return true;
        const Category *category = category_of(scan, event->category);
        if (category == NULL) return true;
        event->roles = category->roles;
    }
    *mine = true;
    return add_complete(scan, event);
}

void scan_begin(Scan *scan, uint64_t seed, Arena *copies) {
    *scan = (Scan){.complete.width = COLUMNS, .memory.width = MEMORY_COLUMNS};
    scan->labels.seed = scan->signatures.seed = scan->callers.seed = seed;
    scan->labels.copies = scan->signatures.copies = scan->callers.copies = copies;
}

enum Outcome scan_list(Scan *scan, Slice text) {
    Cursor cursor = {text.at, text.at + text.length};
    size_t handed_before = scan->handed_count;
    Event event;
    skip_space(&cursor);
    if (!take(&cursor, '[')) return REFUSED;
    do {
        skip_space(&cursor);
        const uint8_t *begin = cursor.at;
        bool mine = false;
        if (read_event(&cursor, scan->exact, &scan->keys, &event)) {
            if (event.too_fine) return REFUSED;
            if (!scan_event(scan, &event, &mine)) return NO_MEMORY;
        }
        if (!mine) {
            cursor.at = begin;
            if (scan->handed_count - handed_before >= MAX_HANDED || peek(&cursor) != '{') return REFUSED;
            if (!skip_brackets(&cursor)) return REFUSED;
            if (!scan_hand_over(scan, since(&cursor, begin))) return NO_MEMORY;
        }
        scan->events++;
        skip_space(&cursor);
    } while (take(&cursor, ','));
    if (!take(&cursor, ']')) return REFUSED;
    skip_space(&cursor);
    return peek(&cursor) == -1 ? SCANNED : REFUSED;
}

void scan_free(Scan *scan) {
    free(scan->complete.numbers);
    free(scan->memory.numbers);
    free(scan->handed);
    table_free(&scan->labels);
    table_free(&scan->signatures);
    table_free(&scan->callers);
}
