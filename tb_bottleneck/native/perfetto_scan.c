#include <stdlib.h>

#include "perfetto_parts.h"

/* More render stages that one waits for are left out: a node of a CUDA graph has a few. */
enum { MAX_WAITS = 1024 };
/* Longer values are left to Python, and stages with longer arguments are not waited for: bytes of JSON and of packets. */
enum { MAX_VALUE = 1 << 20, MAX_AWAITED = 1 << 16 };
static const uint64_t FIRST_NUMBER = UINT64_C(1) << 40; /* of a flow: see is_dependency */
static const int64_t MAX_INTEGER = INT64_C(1000000000000000000); /* the numbers that JSON is read with: MAX_DIGITS */

/* A label that an event before had, by its interned texts and its thread. */
typedef struct {
    Part name, category;
    uint64_t place;
    int64_t label;
    unsigned roles;
} KnownLabel;

/* A value that an event before had, as written in the packets and as JSON. */
typedef struct {
    uint32_t sequence; /* that gives interned texts their meaning */
    Slice message, json;
} KnownValue;

enum { MOST_KNOWN = 1 << 12 }; /* labels, and values; each has one place, where a later one replaces it */

/* The event that is read, and the memory of its texts. */
typedef struct {
    const Perfetto *trace;
    Event event;
    uint64_t written; /* the keys of its arguments */
    size_t size;      /* of all texts that were made */
    Text category, name, process, thread, value;
    Slice stream; /* of a render stage, as text */
    Arena *copies;
    Scan *scan;
    KnownLabel *labels;
    KnownValue *values;
    size_t known; /* how many of both there can be: a power of two */
} Reader;

/* The text as it is written in JSON. Returns false if it needs escapes, which the scanner leaves to Python. */
static bool quote(Reader *reader, Text *text, Slice raw, Slice *quoted) {
    if (raw.length > MAX_LABEL) return false;
    text->length = 0;
    PUT(text, "\"");
    put(text, (const char *)raw.at, raw.length);
    PUT(text, "\"");
    reader->size += text->length;
    Cursor cursor = cursor_of(text_slice(text));
    return !text->failed && read_string(&cursor, quoted, false) && cursor.at == cursor.end;
}

static Slice integer_text(Reader *reader, Text *text, int64_t value) {
    text->length = 0;
    put_integer(text, value);
    reader->size += text->length;
    return text_slice(text);
}

/* Notes that an argument is read; false if it was before. */
static bool is_new(Reader *reader, enum EventKey key) {
    if (reader->written >> key & 1) return false;
    reader->written |= UINT64_C(1) << key;
    return true;
}

/* Reads an argument from its value in JSON. */
static bool read_json(Reader *reader, enum EventKey key, Slice value) {
    Cursor cursor = cursor_of(value);
    return read_argument(&cursor, key, &reader->event) && cursor.at == cursor.end;
}

/* Reads an argument that is an integer. */
static bool set_integer(Reader *reader, enum EventKey key, int64_t value) {
    *integer_of(&reader->event, key) = value;
    return value > -MAX_INTEGER && value < MAX_INTEGER;
}

/* Writes the value of an argument as JSON and reads it. */
static bool read_text(Reader *reader, enum EventKey key, Text *text) {
    reader->size += text->length;
    return !text->failed && read_json(reader, key, text_slice(text));
}

/* --- Slices of the host --- */

/* Reads an argument that is a list, or a text. Few of them are different. */
static bool read_known(Reader *reader, const Item *item, enum EventKey key, Slice message) {
    size_t hash = 0;
    uint64_t word;
    Cursor cursor = cursor_of(message);
    for (; peek_bytes(&cursor, &word, sizeof word); skip(&cursor, sizeof word)) hash = mixed(hash ^ word);
    for (int byte = next(&cursor); byte >= 0; byte = next(&cursor)) hash = hash * 257 + (size_t)byte;
    KnownValue *known = &reader->values[mixed(hash) & (reader->known - 1)];
    if (known->json.length == 0 || known->sequence != item->sequence ||
        known->message.length != message.length || memcmp(known->message.at, message.at, message.length) != 0) {
        reader->value.length = 0;
        put_annotation(&reader->value, reader->trace, item->sequence, message, 0);
        Slice json = text_slice(&reader->value);
        if (reader->value.failed || json.length > MAX_VALUE || !arena_keep(reader->copies, &json)) return false;
        *known = (KnownValue){item->sequence, message, json};
    }
    reader->size += known->json.length;
    return read_json(reader, key, known->json);
}

static bool read_annotation(Reader *reader, const Item *item, Slice message) {
    enum EventKey key = argument_of(annotation_name(reader->trace, item->sequence, message));
    if (key == KEY_UNKNOWN) return true;
    if (key == KEY_FOR_PYTHON || !is_new(reader, key)) return false;
    Cursor cursor = cursor_of(message);
    Field field;
    double fraction;
    bool is_integer = integer_of(&reader->event, key) != NULL;
    while (read_field(&cursor, &field)) {
        if (field.number == 1 || field.number == 10) continue; /* its name */
        if (is_integer && field.number == 3 && field.value < (uint64_t)MAX_INTEGER) {
            return set_integer(reader, key, (int64_t)field.value);
        }
        if (is_integer && field.number == 4) return set_integer(reader, key, (int64_t)field.value);
        if (field.number == 5) {
            memcpy(&fraction, &field.value, sizeof fraction);
            if (set_fraction(&reader->event, key, fraction)) return true;
        }
        break;
    }
    return read_known(reader, item, key, message);
}

static bool read_host(Reader *reader, const Item *item) {
    Cursor cursor = cursor_of(text_at(reader->trace, item->message));
    Field field;
    while (read_field(&cursor, &field)) {
        if (field.number == 4 && field.type == BYTES && !read_annotation(reader, item, field.bytes)) return false;
    }
    return true;
}

/* --- Render stages of the device --- */

static bool read_extra(Reader *reader, Slice message) {
    Slice value, name = extra_of(message, &value);
    enum EventKey key = argument_of(name);
    if (IS(name, "stream") && value.length > 0) reader->stream = value;
    if (key == KEY_UNKNOWN) return true;
    return key != KEY_FOR_PYTHON && is_json(value) && is_new(reader, key) && read_json(reader, key, value);
}

static bool read_launch_argument(Reader *reader, const Item *item, Slice message) {
    enum EventKey key = argument_of(launch_name(reader->trace, item->sequence, message));
    if (key == KEY_UNKNOWN) return true;
    if (key == KEY_FOR_PYTHON || key == KEY_STREAM || !is_new(reader, key)) return false;
    reader->value.length = 0;
    put_launch_value(&reader->value, message);
    return read_text(reader, key, &reader->value);
}

static bool read_launch(Reader *reader, const Item *item, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t sides[3];
    while (read_field(&cursor, &field)) {
        if (field.number == 1) {
            read_sides(field.bytes, sides);
            reader->event.blocks = 1;
            if (!is_new(reader, KEY_GRID)) return false;
            for (int side = 0; side < 3; side++) {
                if (sides[side] >= (uint64_t)MAX_INTEGER || !add_side(&reader->event.blocks, (int64_t)sides[side])) return false;
            }
        }
        if (field.number == 3 && !read_launch_argument(reader, item, field.bytes)) return false;
    }
    return true;
}

static bool read_stage(Reader *reader, const Item *item) {
    Cursor cursor = cursor_of(text_at(reader->trace, item->message));
    Field field;
    reader->stream = KEY("0");
    while (read_field(&cursor, &field)) {
        if (field.number == 6 && !read_extra(reader, field.bytes)) return false;
        if (field.number == 21 && !read_launch(reader, item, field.bytes)) return false;
    }
    return true;
}

/* --- Events --- */

/* Where a label is kept for events with the same texts and the same thread. */
static KnownLabel *known_label(Reader *reader, const Item *item, KnownLabel *wanted) {
    uint64_t on_device = (UINT64_C(1) << 63) | (uint64_t)((uint32_t)item->device & INT32_MAX) << 32;
    *wanted = (KnownLabel){.name = item->name, .category = item->category};
    wanted->place = item->phase == STAGE ? on_device | (uint32_t)reader->event.stream : item->track;
    uint64_t texts = (uint64_t)item->category.at << 32 | item->name.at;
    return &reader->labels[mixed(texts ^ mixed(wanted->place)) & (reader->known - 1)];
}

/* Reads category, name, process and thread of an event. */
static bool read_label(Reader *reader, const Item *item) {
    Event *event = &reader->event;
    Slice category = text_at(reader->trace, item->category);
    if (!quote(reader, &reader->name, text_at(reader->trace, item->name), &event->name)) return false;
    if (!quote(reader, &reader->category, item->phase == STAGE ? stage_category(category) : category, &event->category)) {
        return false;
    }
    if (item->phase != STAGE) {
        const Track *track = &reader->trace->tracks[item->track];
        event->process = integer_text(reader, &reader->process, process_of(reader->trace, track)->process);
        event->thread = integer_text(reader, &reader->thread, thread_of(track));
        return true;
    }
    event->process = integer_text(reader, &reader->process, item->device);
    reader->thread.length = 0;
    put_text_value(&reader->thread, reader->stream);
    Cursor stream = cursor_of(text_slice(&reader->thread));
    return read_scalar(&stream, &event->thread) && stream.at == stream.end && event->thread.length <= MAX_LABEL;
}

/* Adds an item as the scanner adds its JSON; `*mine` is false if it is left to Python. Returns false if there is no
 * memory. */
static bool scan_item(Reader *reader, const Item *item, bool *mine) {
    Event *event = &reader->event;
    int64_t start = item->start - reader->trace->base;
    *mine = false;
    if (item->phase == COUNTER) return true;
    reader->written = 0;
    *event = (Event){.start = start, .has_start = true, .has_args = true, .time_is_plain = start >= 0};
    event->phase = item->phase == INSTANT ? KEY("\"i\"") : KEY("\"X\"");
    event->duration = item->phase == INSTANT || item->end < item->start ? 0 : item->end - item->start;
    if (!(item->phase == STAGE ? read_stage(reader, item) : read_host(reader, item))) return true;
    KnownLabel wanted, *known = known_label(reader, item, &wanted);
    bool is_small = event->stream >= 0 && event->stream <= INT32_MAX && item->device >= 0 && item->phase != INSTANT;
    if (is_small && known->label != 0 && known->name.at == wanted.name.at && known->name.length == wanted.name.length &&
        known->category.at == wanted.category.at && known->category.length == wanted.category.length &&
        known->place == wanted.place) {
        event->label = known->label;
        event->roles = known->roles;
    } else if (!read_label(reader, item)) {
        return true;
    }
    if (!scan_event(reader->scan, event, mine)) return false;
    wanted.label = event->label;
    wanted.roles = event->roles;
    if (is_small && *mine) *known = wanted;
    return true;
}

/* Leaves the text of `value` to Python. */
static bool hand_over(Reader *reader) {
    Slice text = text_slice(&reader->value);
    reader->size += text.length;
    reader->scan->events++;
    return !reader->value.failed && arena_keep(reader->copies, &text) && scan_hand_over(reader->scan, text);
}

static bool add_dependency(Reader *reader, const Item *item, Slice stream, bool is_begin, uint64_t number) {
    reader->value.length = 0;
    put_dependency(&reader->value, reader->trace, item, stream, is_begin, number);
    return hand_over(reader);
}

/* Adds a flow from each render stage that this one waits for. */
static bool add_waits(Reader *reader, const Item *item) {
    const Perfetto *trace = reader->trace;
    Cursor cursor = cursor_of(text_at(trace, item->message)), ids;
    Field field;
    uint64_t number = FIRST_NUMBER + (uint64_t)(item - trace->items) * MAX_WAITS, last = number + MAX_WAITS;
    Slice stream = stream_of(trace, item), other;
    if (stream.length > MAX_LABEL) return true;
    while (read_field(&cursor, &field)) {
        if (field.number != 18) continue;
        ids = cursor_of(field.bytes);
        do {
            if (field.type == BYTES && !read_varint(&ids, &field.value)) break;
            const Item *awaited = find_stage(trace, item->sequence, field.value);
            if (awaited == NULL || awaited == item || awaited->message.length > MAX_AWAITED || number == last) continue;
            other = stream_of(trace, awaited);
            reader->size += awaited->message.length;
            if (other.length > MAX_LABEL) continue;
            if (!add_dependency(reader, awaited, other, true, number)) return false;
            if (!add_dependency(reader, item, stream, false, number)) return false;
            number++;
        } while (field.type == BYTES);
    }
    return true;
}

static bool add_item(Reader *reader, const Item *item) {
    bool mine = false;
    if (item->phase == BEGIN && !item->has_end) return true;
    if (!scan_item(reader, item, &mine)) return false;
    if (mine) {
        reader->scan->events++;
    } else {
        reader->value.length = 0;
        put_item(&reader->value, reader->trace, item);
        if (!hand_over(reader)) return false;
    }
    return item->phase != STAGE || !reader->trace->has_waits || add_waits(reader, item);
}

static bool add_track(Reader *reader, const Track *track) {
    if (!track->known || track_name(track).length == 0) return true;
    reader->value.length = 0;
    put_track(&reader->value, reader->trace, track);
    return hand_over(reader);
}

size_t event_count(const Perfetto *trace) { return trace->track_count + trace->item_count; }

enum Outcome scan_packets(const Perfetto *trace, Arena *copies, Scan *scan, size_t *next, size_t last, size_t *size) {
    Reader reader = {.trace = trace, .copies = copies, .scan = scan, .known = 1};
    if (last > event_count(trace)) last = event_count(trace);
    while (reader.known < MOST_KNOWN && reader.known + *next < last) reader.known *= 2;
    reader.labels = calloc(reader.known, sizeof *reader.labels);
    reader.values = calloc(reader.known, sizeof *reader.values);
    bool fits = reader.labels != NULL && reader.values != NULL;
    for (; fits && *next < last && reader.size < *size; ++*next) {
        size_t item = *next - trace->track_count;
        fits = *next < trace->track_count ? add_track(&reader, &trace->tracks[*next]) : add_item(&reader, &trace->items[item]);
    }
    *size = reader.size;
    Text *texts[] = {&reader.category, &reader.name, &reader.process, &reader.thread, &reader.value};
    for (size_t number = 0; number < sizeof texts / sizeof *texts; number++) free(texts[number]->at);
    free(reader.labels);
    free(reader.values);
    return fits ? SCANNED : NO_MEMORY;
}
