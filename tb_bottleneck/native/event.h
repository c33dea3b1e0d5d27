/* Reads one event: an object of the Trace Event Format as Kineto writes it. */

#ifndef TB_BOTTLENECK_EVENT_H
#define TB_BOTTLENECK_EVENT_H

#include "json.h"

/* Longer names are cut by the Python code, which keeps no memory of them. */
enum { MAX_LABEL = 2000 };

/* Keys of an event, and of its arguments. KEY_FOR_PYTHON: arguments of collectives, and names of threads. */
enum EventKey {
    KEY_PHASE, KEY_CATEGORY, KEY_NAME, KEY_PROCESS, KEY_THREAD, KEY_START, KEY_DURATION, KEY_ID, KEY_ARGS,
    KEY_SEQUENCE, KEY_CONCRETE, KEY_TYPES, KEY_DIMS, KEY_DIMS_OLD, KEY_DEVICE, KEY_STREAM, KEY_CORRELATION, KEY_BYTES,
    KEY_BLOCKS_PER_MULTIPROCESSOR, KEY_OCCUPANCY, KEY_GRID, KEY_TOTAL_RESERVED, KEY_TOTAL_ALLOCATED, KEY_ALLOCATED_BYTES,
    KEY_MEMORY_DEVICE, KEY_MEMORY_DEVICE_TYPE, KEY_ADDRESS, KEY_FOR_PYTHON, KEY_UNKNOWN,
};

/* What is read of an event. A slice is empty and a number is 0 if it was not written. */
typedef struct {
    Slice phase, category, name, process, thread;
    Slice id; /* of a flow */
    Slice dims, dims_old, types, concrete;
    int64_t start, duration; /* ns */
    bool has_start, has_args, time_is_plain;
    bool too_fine; /* the start needs more digits than a float64 has */
    int64_t sequence, device, stream, correlation, bytes;
    int64_t blocks; /* of the grid */
    double blocks_per_multiprocessor;
    int64_t occupancy; /* percent plus one */
    int64_t label;   /* number of the label + 1 if it is known, from an event before it; then also its roles */
    unsigned roles;
    int64_t total_reserved, total_allocated, allocated_bytes, memory_device, memory_device_type, address;
} Event;

enum { KEPT_WORDS = 4, KEPT_KEYS = 16 };

/* A key as it was written, with the space before it, its colon and the space after it. Its mask has the bits of these
 * bytes, and the length is 0 if there is none. */
typedef struct {
    uint64_t text[KEPT_WORDS], mask[KEPT_WORDS];
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

/* What an argument of this name is read for. */
enum EventKey argument_of(Slice name);

/* The number that an argument sets; NULL if it sets something else. */
int64_t *integer_of(Event *event, enum EventKey key);

/* Reads the value of an argument. Returns false if it is not understood. */
bool read_argument(Cursor *cursor, enum EventKey key, Event *event);

/* Sets an argument that may have a fraction. Returns false if it is not one. */
bool set_fraction(Event *event, enum EventKey key, double value);

/* Multiplies the number of blocks by one side of the grid; false if the product is too large. */
bool add_side(int64_t *blocks, int64_t side);

#endif
