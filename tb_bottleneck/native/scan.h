/* Scans lists of events into columns. */

#ifndef TB_BOTTLENECK_SCAN_H
#define TB_BOTTLENECK_SCAN_H

#include "event.h"
#include "table.h"

/* What the arguments of a category's events are read for, as bits. */
enum Role { OPERATOR = 1, LINKED = 2, ON_DEVICE = 4 };

typedef struct {
    Slice text; /* as written, with quotes */
    unsigned roles;
} Category;

/* Columns of complete events. */
enum Column {
    START_NS, DURATION_NS, LABEL_ROW, SEQUENCE_NUMBER, SIGNATURE_ROW, CORRELATION_ID, DEVICE_ID, STREAM_ID, SIZE, BLOCKS,
    MULTIPROCESSORS, OCCUPANCY_PERCENT, COLUMNS,
};

/* Columns of allocations and frees. */
enum MemoryColumn {
    MEMORY_TIME_NS, CALLER_ROW, MEMORY_ADDRESS, MEMORY_SIZE, ALLOCATED, RESERVED, DEVICE_TYPE, DEVICE_INDEX, MEMORY_COLUMNS,
};

/* Rows of `width` numbers, one after the other. */
typedef struct {
    int64_t *numbers;
    size_t width, rows, capacity;
} Rows;

/* An event that is left to Python, and its row, which is all zeros but for label and signature. */
typedef struct {
    Slice text;
    size_t row;
} Handed;

typedef struct {
    bool exact;
    const Category *categories;
    size_t category_count;
    size_t events; /* all that were read, also those without a row */
    Rows complete, memory;
    Table labels, signatures, callers;
    KeptKeys keys;
    Handed *handed;
    size_t handed_count, handed_capacity;
} Scan;

enum Outcome { SCANNED, REFUSED, NO_MEMORY };

/* `copies` keeps the texts of new keys; NULL if the texts of all events stay where they are. */
void scan_begin(Scan *scan, uint64_t seed, Arena *copies);

/* Adds an event that was read, and sets its label if it is complete; `*mine` is false if it is left to Python. Returns
 * false if there is no memory. */
bool scan_event(Scan *scan, Event *event, bool *mine);

/* Leaves an event to Python. Returns false if there is no memory. */
bool scan_hand_over(Scan *scan, Slice text);

/* Appends the events of one list. REFUSED: it is not a list of events, or a matter for Python as a whole; the rows so far
 * are incomplete then. */
enum Outcome scan_list(Scan *scan, Slice text);

void scan_free(Scan *scan);

#endif
