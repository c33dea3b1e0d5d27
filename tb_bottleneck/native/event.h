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

/* Reads the event at the cursor. Returns false if it is not wholly understood. `exact`: times are decimals, otherwise
 * they are float64. */
bool read_event(Cursor *cursor, bool exact, Event *event);

#endif
