/* Reads one event: an object of the Trace Event Format as Kineto writes it. */

#ifndef TB_BOTTLENECK_EVENT_H
#define TB_BOTTLENECK_EVENT_H

#include "json.h"

/* What is read of an event. A slice is empty and a number is 0 if it was not written. */
typedef struct {
    Slice phase, category, name, process, thread;
    Slice dims, dims_old, types, concrete;
    int64_t start, duration; /* ns */
    bool has_start, has_args, time_is_plain;
    bool too_fine; /* the start needs more digits than a float64 has */
    int64_t sequence, device, stream, correlation, bytes;
    int64_t blocks; /* of the grid */
    double blocks_per_multiprocessor;
    int64_t occupancy; /* percent plus one */
    int64_t total_reserved, total_allocated, allocated_bytes, memory_device, memory_device_type, address;
} Event;

enum { KEY_WORDS = 4, KEPT_KEYS = 16 };

/* A key as it was written, with the space before it, its colon and the space after it. Its mask has the bits of these
 * bytes, and the length is 0 if there is none. */
typedef struct {
    uint64_t text[KEY_WORDS], mask[KEY_WORDS];
    unsigned length, field;
} KeptKey;

/* The keys of earlier events by their position. Kineto writes the keys of a category in one order, so the next event
 * probably has the same ones. All zeros at first. */
typedef struct {
    KeptKey own[KEPT_KEYS], arguments[KEPT_KEYS];
} KeptKeys;

/* Reads the event at the cursor. Returns false if it is not wholly understood. `exact`: times are decimals, otherwise
 * they are float64. */
bool read_event(Cursor *cursor, bool exact, KeptKeys *keys, Event *event);

#endif
