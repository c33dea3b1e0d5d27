#include "event.h"

#include <math.h>

#include "times.h"

static enum EventKey field_of(Slice key) {
    switch (key.length) {
        case 2: return IS(key, "ph") ? KEY_PHASE : IS(key, "ts") ? KEY_START : IS(key, "id") ? KEY_ID : KEY_UNKNOWN;
        case 3: return IS(key, "cat") ? KEY_CATEGORY : IS(key, "pid") ? KEY_PROCESS : IS(key, "tid") ? KEY_THREAD
                     : IS(key, "dur") ? KEY_DURATION : KEY_UNKNOWN;
        case 4: return IS(key, "name") ? KEY_NAME : IS(key, "args") ? KEY_ARGS : KEY_UNKNOWN;
        default: return KEY_UNKNOWN;
    }
}

enum EventKey argument_of(Slice key) {
    switch (key.length) {
        case 3: return IS(key, "Seq") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 4: return IS(key, "grid") ? KEY_GRID : IS(key, "Addr") ? KEY_ADDRESS
                     : IS(key, "name") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 5: return IS(key, "bytes") ? KEY_BYTES : IS(key, "Bytes") ? KEY_ALLOCATED_BYTES
                     : IS(key, "dtype") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 6: return IS(key, "device") ? KEY_DEVICE : IS(key, "stream") ? KEY_STREAM : KEY_UNKNOWN;
        case 8: return IS(key, "Comms Id") || IS(key, "Src Rank") || IS(key, "Dst Rank") ? KEY_FOR_PYTHON
                      : KEY_UNKNOWN;
        case 9: return IS(key, "Device Id") ? KEY_MEMORY_DEVICE : KEY_UNKNOWN;
        case 10: return IS(key, "Input Dims") ? KEY_DIMS : IS(key, "Input dims") ? KEY_DIMS_OLD
                      : IS(key, "Input type") ? KEY_TYPES : IS(key, "Group size") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 11: return IS(key, "correlation") ? KEY_CORRELATION : IS(key, "Device Type") ? KEY_MEMORY_DEVICE_TYPE
                      : KEY_UNKNOWN;
        case 13: return IS(key, "blocks per SM") ? KEY_BLOCKS_PER_MULTIPROCESSOR
                      : IS(key, "In msg nelems") || IS(key, "In split size") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 14: return IS(key, "Total Reserved") ? KEY_TOTAL_RESERVED
                      : IS(key, "Out msg nelems") || IS(key, "Out split size") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 15: return IS(key, "Sequence number") ? KEY_SEQUENCE : IS(key, "Concrete Inputs") ? KEY_CONCRETE
                      : IS(key, "Total Allocated") ? KEY_TOTAL_ALLOCATED
                      : IS(key, "Collective name") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 18: return IS(key, "Process Group Name") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 19: return IS(key, "Process Group Ranks") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        case 25: return IS(key, "est. achieved occupancy %") ? KEY_OCCUPANCY
                      : IS(key, "Process Group Description") ? KEY_FOR_PYTHON : KEY_UNKNOWN;
        default: return KEY_UNKNOWN;
    }
}

/* Consumes the key if it is next. */
static inline bool take_kept(Cursor *cursor, const KeptKey *key) {
    uint64_t text[KEPT_WORDS], different = 0;
    if (key->length == 0 || !peek_bytes(cursor, text, sizeof text)) return false;
    for (unsigned word = 0; word < KEPT_WORDS; word++) different |= (text[word] ^ key->text[word]) & key->mask[word];
    if (different == 0) skip(cursor, key->length);
    return different == 0;
}

static void keep(KeptKey *key, Slice written, enum EventKey field) {
    *key = (KeptKey){0};
    if (written.length > sizeof key->text) return;
    memcpy(key->text, written.at, written.length);
    memset(key->mask, 0xFF, written.length);
    key->length = (unsigned)written.length;
    key->field = field;
}

/* Reads a key and its colon. `kept` is the key that an earlier event had in this position, and is replaced by this one. */
static bool read_key(Cursor *cursor, KeptKey *kept, enum EventKey (*field_of_key)(Slice), enum EventKey *field) {
    const uint8_t *begin = cursor->at;
    Slice key;
    if (take_kept(cursor, kept)) {
        *field = kept->field;
        return true;
    }
    skip_space(cursor);
    if (!read_string(cursor, &key, false)) return false;
    skip_space(cursor);
    if (!take(cursor, ':')) return false;
    skip_space(cursor);
    *field = field_of_key((Slice){key.at + 1, key.length - 2});
    keep(kept, since(cursor, begin), *field);
    return true;
}

/* Reads a part of the label: it becomes a part of a key. */
static bool read_label(Cursor *cursor, Slice *slice) { return read_scalar(cursor, slice) && slice->length <= MAX_LABEL; }

static bool read_integer(Cursor *cursor, int64_t *value) {
    Number number;
    if (!read_number(cursor, &number) || number.fraction > 0) return false;
    *value = number.negative ? -(int64_t)number.whole : (int64_t)number.whole;
    return true;
}

bool add_side(int64_t *blocks, int64_t side) {
    if (side < 0) side = 0;
    if (side > 0 && *blocks >= (INT64_C(1) << 62) / side) return false;
    *blocks *= side;
    return true;
}

/* Reads the number of blocks in a grid, which is a list of up to three sizes, or a text of a compiler. */
static bool read_grid(Cursor *cursor, int64_t *blocks) {
    Slice text;
    int64_t product = 1, side;
    unsigned count = 0;
    *blocks = 0;
    if (peek(cursor) == '"') return read_string(cursor, &text, false);
    if (!take(cursor, '[')) return false;
    skip_space(cursor);
    if (take(cursor, ']')) return true;
    do {
        skip_space(cursor);
        if (++count > 3 || !read_integer(cursor, &side) || !add_side(&product, side)) return false;
        skip_space(cursor);
    } while (take(cursor, ','));
    *blocks = product;
    return take(cursor, ']');
}

static bool read_ratio(Cursor *cursor, double *ratio) {
    Number number;
    if (!read_number(cursor, &number)) return false;
    if (number.negative || number.whole == 0) return true; /* below one it is not used */
    return to_double(&number, ratio);
}

/* Reads a percentage. A fraction with many digits may be rounded up as a float64, so it is not understood. */
static bool read_occupancy(Cursor *cursor, int64_t *occupancy) {
    Number number;
    if (!read_number(cursor, &number) || (number.fraction > 0 && number.digits > 15)) return false;
    bool valid = number.whole <= 100 && (number.whole == 0 || !number.negative);
    *occupancy = valid ? (int64_t)number.whole + 1 : 0;
    return true;
}

int64_t *integer_of(Event *event, enum EventKey key) {
    switch (key) {
        case KEY_SEQUENCE: return &event->sequence;
        case KEY_DEVICE: return &event->device;
        case KEY_STREAM: return &event->stream;
        case KEY_CORRELATION: return &event->correlation;
        case KEY_BYTES: return &event->bytes;
        case KEY_TOTAL_RESERVED: return &event->total_reserved;
        case KEY_TOTAL_ALLOCATED: return &event->total_allocated;
        case KEY_ALLOCATED_BYTES: return &event->allocated_bytes;
        case KEY_MEMORY_DEVICE: return &event->memory_device;
        case KEY_MEMORY_DEVICE_TYPE: return &event->memory_device_type;
        case KEY_ADDRESS: return &event->address;
        default: return NULL;
    }
}

bool set_fraction(Event *event, enum EventKey key, double value) {
    if (!isfinite(value) || (key != KEY_BLOCKS_PER_MULTIPROCESSOR && key != KEY_OCCUPANCY)) return false;
    if (key == KEY_OCCUPANCY) event->occupancy = trunc(value) >= 0 && trunc(value) <= 100 ? (int64_t)value + 1 : 0;
    else if (value >= 1) event->blocks_per_multiprocessor = value; /* below one it is not used */
    return true;
}

bool read_argument(Cursor *cursor, enum EventKey key, Event *event) {
    Slice ignored;
    int64_t *integer = integer_of(event, key);
    if (integer != NULL) return read_integer(cursor, integer);
    switch (key) {
        case KEY_GRID: return read_grid(cursor, &event->blocks);
        case KEY_BLOCKS_PER_MULTIPROCESSOR: return read_ratio(cursor, &event->blocks_per_multiprocessor);
        case KEY_OCCUPANCY: return read_occupancy(cursor, &event->occupancy);
        case KEY_DIMS: return read_value(cursor, &event->dims);
        case KEY_DIMS_OLD: return read_value(cursor, &event->dims_old);
        case KEY_TYPES: return read_value(cursor, &event->types);
        case KEY_CONCRETE: return read_value(cursor, &event->concrete);
        case KEY_UNKNOWN: return read_value(cursor, &ignored);
        default: return false;
    }
}

/* Reads the members of an object of arguments; notes the fields that it has in `written`. */
static bool read_arguments(Cursor *cursor, KeptKeys *keys, Event *event, uint64_t *written) {
    Slice null;
    enum EventKey field;
    unsigned position = 0;
    if (peek(cursor) == 'n') return read_scalar(cursor, &null);
    if (!take(cursor, '{')) return false;
    event->has_args = true;
    skip_space(cursor);
    if (take(cursor, '}')) return true;
    do {
        if (!read_key(cursor, &keys->arguments[position], argument_of, &field)) return false;
        if (position < KEPT_KEYS - 1) position++;
        if (field != KEY_UNKNOWN && *written >> field & 1) return false;
        *written |= UINT64_C(1) << field;
        if (!read_argument(cursor, field, event)) return false;
        skip_space(cursor);
    } while (take(cursor, ','));
    return take(cursor, '}');
}

static bool read_time(Cursor *cursor, bool exact, Event *event, int64_t *ns) {
    Number number;
    if (!read_number(cursor, &number)) return false;
    if (!to_nanoseconds(&number, exact, ns, &event->too_fine)) event->time_is_plain = false;
    return true;
}

static bool read_field(Cursor *cursor, enum EventKey field, bool exact, KeptKeys *keys, Event *event, uint64_t *written) {
    Slice ignored;
    switch (field) {
        case KEY_PHASE: return read_string(cursor, &event->phase, false);
        case KEY_CATEGORY: return peek(cursor) == '"' && read_label(cursor, &event->category);
        case KEY_NAME: return read_label(cursor, &event->name);
        case KEY_PROCESS: return read_label(cursor, &event->process);
        case KEY_THREAD: return read_label(cursor, &event->thread);
        case KEY_START: return event->has_start = read_time(cursor, exact, event, &event->start);
        case KEY_DURATION: return read_time(cursor, exact, event, &event->duration);
        case KEY_ARGS: return read_arguments(cursor, keys, event, written);
        case KEY_ID: return read_value(cursor, &event->id);
        default: return read_value(cursor, &ignored);
    }
}

bool read_event(Cursor *cursor, bool exact, KeptKeys *keys, Event *event) {
    enum EventKey field;
    unsigned position = 0;
    uint64_t written = 0;
    *event = (Event){.time_is_plain = true};
    if (!take(cursor, '{')) return false;
    do {
        if (!read_key(cursor, &keys->own[position], field_of, &field)) return false;
        if (position < KEPT_KEYS - 1) position++;
        if (field != KEY_UNKNOWN && written >> field & 1) return false;
        written |= UINT64_C(1) << field;
        if (!read_field(cursor, field, exact, keys, event, &written)) return false;
        skip_space(cursor);
    } while (take(cursor, ','));
    return take(cursor, '}');
}
