#include "event.h"

#include "times.h"

/* Longer names are cut by the Python code, which keeps no memory of them. */
enum { MAX_LABEL = 2000 };

/* Numbers of keys, as bits: a key that is written twice is not understood. */
enum Field {
    PHASE, CATEGORY, NAME, PROCESS, THREAD, START, DURATION, ARGS,
    SEQUENCE, CONCRETE, TYPES, DIMS, DIMS_OLD, DEVICE, STREAM, CORRELATION, BYTES, BLOCKS_PER_MULTIPROCESSOR, OCCUPANCY, GRID,
    TOTAL_RESERVED, TOTAL_ALLOCATED, ALLOCATED_BYTES, MEMORY_DEVICE, MEMORY_DEVICE_TYPE, ADDRESS,
    FOR_PYTHON, UNKNOWN,
};

static enum Field field_of(Slice key) {
    switch (key.length) {
        case 4: return IS(key, "\"ph\"") ? PHASE : IS(key, "\"ts\"") ? START : UNKNOWN;
        case 5: return IS(key, "\"cat\"") ? CATEGORY : IS(key, "\"pid\"") ? PROCESS : IS(key, "\"tid\"") ? THREAD
                     : IS(key, "\"dur\"") ? DURATION : UNKNOWN;
        case 6: return IS(key, "\"name\"") ? NAME : IS(key, "\"args\"") ? ARGS : UNKNOWN;
        default: return UNKNOWN;
    }
}

/* FOR_PYTHON: arguments of collectives, and names of threads. */
static enum Field argument_of(Slice key) {
    switch (key.length) {
        case 5: return IS(key, "\"Seq\"") ? FOR_PYTHON : UNKNOWN;
        case 6: return IS(key, "\"grid\"") ? GRID : IS(key, "\"Addr\"") ? ADDRESS
                     : IS(key, "\"name\"") ? FOR_PYTHON : UNKNOWN;
        case 7: return IS(key, "\"bytes\"") ? BYTES : IS(key, "\"Bytes\"") ? ALLOCATED_BYTES
                     : IS(key, "\"dtype\"") ? FOR_PYTHON : UNKNOWN;
        case 8: return IS(key, "\"device\"") ? DEVICE : IS(key, "\"stream\"") ? STREAM : UNKNOWN;
        case 10: return IS(key, "\"Comms Id\"") || IS(key, "\"Src Rank\"") || IS(key, "\"Dst Rank\"") ? FOR_PYTHON
                      : UNKNOWN;
        case 11: return IS(key, "\"Device Id\"") ? MEMORY_DEVICE : UNKNOWN;
        case 12: return IS(key, "\"Input Dims\"") ? DIMS : IS(key, "\"Input dims\"") ? DIMS_OLD
                      : IS(key, "\"Input type\"") ? TYPES : IS(key, "\"Group size\"") ? FOR_PYTHON : UNKNOWN;
        case 13: return IS(key, "\"correlation\"") ? CORRELATION : IS(key, "\"Device Type\"") ? MEMORY_DEVICE_TYPE
                      : UNKNOWN;
        case 15: return IS(key, "\"blocks per SM\"") ? BLOCKS_PER_MULTIPROCESSOR
                      : IS(key, "\"In msg nelems\"") || IS(key, "\"In split size\"") ? FOR_PYTHON : UNKNOWN;
        case 16: return IS(key, "\"Total Reserved\"") ? TOTAL_RESERVED
                      : IS(key, "\"Out msg nelems\"") || IS(key, "\"Out split size\"") ? FOR_PYTHON : UNKNOWN;
        case 17: return IS(key, "\"Sequence number\"") ? SEQUENCE : IS(key, "\"Concrete Inputs\"") ? CONCRETE
                      : IS(key, "\"Total Allocated\"") ? TOTAL_ALLOCATED
                      : IS(key, "\"Collective name\"") ? FOR_PYTHON : UNKNOWN;
        case 20: return IS(key, "\"Process Group Name\"") ? FOR_PYTHON : UNKNOWN;
        case 21: return IS(key, "\"Process Group Ranks\"") ? FOR_PYTHON : UNKNOWN;
        case 27: return IS(key, "\"est. achieved occupancy %\"") ? OCCUPANCY
                      : IS(key, "\"Process Group Description\"") ? FOR_PYTHON : UNKNOWN;
        default: return UNKNOWN;
    }
}

/* Consumes the key if it is next. */
static inline bool take_kept(Cursor *cursor, const KeptKey *key) {
    uint64_t text[KEY_WORDS], different = 0;
    if (key->length == 0 || !peek_bytes(cursor, text, sizeof text)) return false;
    for (unsigned word = 0; word < KEY_WORDS; word++) different |= (text[word] ^ key->text[word]) & key->mask[word];
    if (different == 0) skip(cursor, key->length);
    return different == 0;
}

static void keep(KeptKey *key, Slice written, enum Field field) {
    *key = (KeptKey){0};
    if (written.length > sizeof key->text) return;
    memcpy(key->text, written.at, written.length);
    memset(key->mask, 0xFF, written.length);
    key->length = (unsigned)written.length;
    key->field = field;
}

/* Reads a key and its colon. `kept` is the key that an earlier event had in this position, and is replaced by this one. */
static bool read_key(Cursor *cursor, KeptKey *kept, enum Field (*field_of_key)(Slice), enum Field *field) {
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
    *field = field_of_key(key);
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

/* Reads the number of blocks in a grid, which is a list of up to three sizes, or a text of a compiler. */
static bool read_grid(Cursor *cursor, int64_t *blocks) {
    Slice text;
    int64_t product = 1, size;
    unsigned count = 0;
    *blocks = 0;
    if (peek(cursor) == '"') return read_string(cursor, &text, false);
    if (!take(cursor, '[')) return false;
    skip_space(cursor);
    if (take(cursor, ']')) return true;
    do {
        skip_space(cursor);
        if (++count > 3 || !read_integer(cursor, &size)) return false;
        skip_space(cursor);
        if (size < 0) size = 0;
        if (size > 0 && product >= (INT64_C(1) << 62) / size) return false;
        product *= size;
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

static bool read_argument(Cursor *cursor, enum Field field, Event *event) {
    Slice ignored;
    switch (field) {
        case SEQUENCE: return read_integer(cursor, &event->sequence);
        case DEVICE: return read_integer(cursor, &event->device);
        case STREAM: return read_integer(cursor, &event->stream);
        case CORRELATION: return read_integer(cursor, &event->correlation);
        case BYTES: return read_integer(cursor, &event->bytes);
        case TOTAL_RESERVED: return read_integer(cursor, &event->total_reserved);
        case TOTAL_ALLOCATED: return read_integer(cursor, &event->total_allocated);
        case ALLOCATED_BYTES: return read_integer(cursor, &event->allocated_bytes);
        case MEMORY_DEVICE: return read_integer(cursor, &event->memory_device);
        case MEMORY_DEVICE_TYPE: return read_integer(cursor, &event->memory_device_type);
        case ADDRESS: return read_integer(cursor, &event->address);
        case GRID: return read_grid(cursor, &event->blocks);
        case BLOCKS_PER_MULTIPROCESSOR: return read_ratio(cursor, &event->blocks_per_multiprocessor);
        case OCCUPANCY: return read_occupancy(cursor, &event->occupancy);
        case DIMS: return read_value(cursor, &event->dims);
        case DIMS_OLD: return read_value(cursor, &event->dims_old);
        case TYPES: return read_value(cursor, &event->types);
        case CONCRETE: return read_value(cursor, &event->concrete);
        case UNKNOWN: return read_value(cursor, &ignored);
        default: return false;
    }
}

/* Reads the members of an object of arguments; notes the fields that it has in `written`. */
static bool read_arguments(Cursor *cursor, KeptKeys *keys, Event *event, uint64_t *written) {
    Slice null;
    enum Field field;
    unsigned position = 0;
    if (peek(cursor) == 'n') return read_scalar(cursor, &null);
    if (!take(cursor, '{')) return false;
    event->has_args = true;
    skip_space(cursor);
    if (take(cursor, '}')) return true;
    do {
        if (!read_key(cursor, &keys->arguments[position], argument_of, &field)) return false;
        if (position < KEPT_KEYS - 1) position++;
        if (field != UNKNOWN && *written >> field & 1) return false;
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

static bool read_field(Cursor *cursor, enum Field field, bool exact, KeptKeys *keys, Event *event, uint64_t *written) {
    Slice ignored;
    switch (field) {
        case PHASE: return read_string(cursor, &event->phase, false);
        case CATEGORY: return peek(cursor) == '"' && read_label(cursor, &event->category);
        case NAME: return read_label(cursor, &event->name);
        case PROCESS: return read_label(cursor, &event->process);
        case THREAD: return read_label(cursor, &event->thread);
        case START: return event->has_start = read_time(cursor, exact, event, &event->start);
        case DURATION: return read_time(cursor, exact, event, &event->duration);
        case ARGS: return read_arguments(cursor, keys, event, written);
        default: return read_value(cursor, &ignored);
    }
}

bool read_event(Cursor *cursor, bool exact, KeptKeys *keys, Event *event) {
    enum Field field;
    unsigned position = 0;
    uint64_t written = 0;
    *event = (Event){.time_is_plain = true};
    if (!take(cursor, '{')) return false;
    do {
        if (!read_key(cursor, &keys->own[position], field_of, &field)) return false;
        if (position < KEPT_KEYS - 1) position++;
        if (field != UNKNOWN && written >> field & 1) return false;
        written |= UINT64_C(1) << field;
        if (!read_field(cursor, field, exact, keys, event, &written)) return false;
        skip_space(cursor);
    } while (take(cursor, ','));
    return take(cursor, '}');
}
