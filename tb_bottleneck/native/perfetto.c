#include "perfetto_parts.h"

#include <stdlib.h>

static const uint64_t MAX_TIME = (UINT64_C(1) << 61) - 1; /* ns: in the year 2043; the sum of two fits */

static const int64_t EXACT_FLOAT_NS = (INT64_C(1) << 43) * 1000; /* 101 days: EXACT_FLOAT_US of trace_event.py */
enum { FIRST_BYTES = 1 << 18, MAX_PACKET = 1 << 24 /* the limit of an event in JSON: blocks.py */ };

static uint64_t bytes_as_number(Slice bytes) {
    Cursor cursor = cursor_of(bytes);
    uint64_t value = 0;
    return read_varint(&cursor, &value) ? value : 0;
}

void *room(void *items, size_t size, size_t count, size_t *capacity, size_t most) {
    if (count < *capacity) return items;
    size_t wanted = *capacity == 0 ? FIRST_SLOTS : *capacity * 2;
    if (count >= most) return NULL;
    void *moved = realloc(items, wanted * size);
    if (moved != NULL) *capacity = wanted;
    return moved;
}

bool keep_text(Perfetto *trace, Slice text, Part *part) {
    size_t wanted = trace->kept_capacity == 0 ? FIRST_BYTES : trace->kept_capacity;
    *part = (Part){(uint32_t)trace->kept_count, (uint32_t)text.length};
    if (text.length == 0) return true;
    if (trace->kept_count + text.length > UINT32_MAX) return false;
    while (wanted - trace->kept_count < text.length) wanted *= 2;
    uint8_t *moved = wanted == trace->kept_capacity ? trace->kept : realloc(trace->kept, wanted);
    if (moved == NULL) return false;
    memcpy(moved + trace->kept_count, text.at, text.length);
    trace->kept = moved;
    trace->kept_capacity = wanted;
    trace->kept_count += text.length;
    return true;
}

/* Keeps the field of a message that ends at the cursor and begins at `begin`, after those that were kept of it before. */
static bool keep_field(Perfetto *trace, const Cursor *cursor, const uint8_t *begin, Part *message) {
    Part part;
    if (!keep_text(trace, since(cursor, begin), &part)) return false;
    if (message->length == 0) message->at = part.at;
    message->length += part.length;
    return true;
}

/* --- Events --- */

static Item *new_item(Perfetto *trace) {
    void *items = room(trace->items, sizeof(Item), trace->item_count, &trace->item_capacity, MAX_ITEMS);
    if (items == NULL) return NULL;
    trace->items = items;
    Item *item = &trace->items[trace->item_count++];
    *item = (Item){0};
    return item;
}

static bool add_mark(Perfetto *trace, size_t track, int64_t time, size_t item) {
    void *marks = room(trace->marks, sizeof(Mark), trace->mark_count, &trace->mark_capacity, MAX_ITEMS);
    if (marks == NULL) return false;
    trace->marks = marks;
    trace->marks[trace->mark_count++] = (Mark){time, (uint32_t)track, (uint32_t)item};
    return true;
}

static bool read_track_event(Perfetto *trace, uint32_t sequence, int64_t time, Slice message) {
    enum { SLICE_BEGIN = 1, SLICE_END = 2, SLICE_INSTANT = 3 };
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t type = 0, uuid = 0, name_iid = 0, category_iid = 0;
    Slice name = {0}, category = {0};
    Part arguments = {0};
    bool fits = true;
    for (const uint8_t *begin = cursor.at; fits && read_field(&cursor, &field); begin = cursor.at) {
        switch (field.number) {
            case 3:
                if (category_iid == 0) category_iid = field.type == BYTES ? bytes_as_number(field.bytes) : field.value;
                break;
            case 4:
                if (is_wanted(annotation_name(trace, sequence, field.bytes))) {
                    fits = keep_field(trace, &cursor, begin, &arguments);
                }
                break;
            case 9: type = field.value; break;
            case 10: name_iid = field.value; break;
            case 11: uuid = field.value; break;
            case 22: category = field.bytes; break;
            case 23: name = field.bytes; break;
            default: break;
        }
    }
    if (!fits || type < SLICE_BEGIN || type > SLICE_INSTANT) return fits;
    size_t track = track_of(trace, uuid);
    if (track == SIZE_MAX) return false;
    if (type == SLICE_END) return add_mark(trace, track, time, 0);
    Item *item = new_item(trace);
    if (item == NULL) return false;
    item->phase = type == SLICE_BEGIN ? BEGIN : INSTANT;
    item->sequence = sequence;
    item->start = time;
    item->track = (uint32_t)track;
    item->message = arguments;
    item->name = name_of(&trace->names, sequence, EVENT_NAME, name_iid);
    item->category = name_of(&trace->names, sequence, CATEGORY, category_iid);
    if (name.length > 0 && !keep_text(trace, name, &item->name)) return false;
    if (category.length > 0 && !keep_text(trace, category, &item->category)) return false;
    return type == SLICE_INSTANT || add_mark(trace, track, time, trace->item_count);
}

static bool read_stage(Perfetto *trace, uint32_t sequence, int64_t time, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    Item *item = new_item(trace);
    if (item == NULL) return false;
    item->phase = STAGE;
    item->sequence = sequence;
    item->start = item->end = time;
    Part stage = {0}, kernel = {0}, event = {0};
    Slice value, own = {0};
    bool fits = true;
    for (const uint8_t *begin = cursor.at; fits && read_field(&cursor, &field); begin = cursor.at) {
        switch (field.number) {
            case 1: item->id = field.value; break;
            case 2: item->end = time + (int64_t)(field.value & MAX_TIME); break;
            case 6:
                if (is_wanted(extra_of(field.bytes, &value))) fits = keep_field(trace, &cursor, begin, &item->message);
                break;
            case 11: item->device = (int32_t)field.value; break;
            case 14: stage = name_of(&trace->names, sequence, SPECIFICATION, field.value); break;
            case 17: own = field.bytes; break;
            case 18:
                trace->has_waits = true;
                fits = keep_field(trace, &cursor, begin, &item->message);
                break;
            case 21: fits = keep_field(trace, &cursor, begin, &item->message); break;
            case 19: kernel = name_of(&trace->names, sequence, KERNEL_NAME, field.value); break;
            case 20: event = name_of(&trace->names, sequence, EVENT_NAME, field.value); break;
            default: break;
        }
    }
    item->category = stage;
    item->name = kernel.length > 0 ? kernel : event.length > 0 ? event : stage;
    return fits && (own.length == 0 || kernel.length > 0 || keep_text(trace, own, &item->name));
}

static bool read_counter(Perfetto *trace, uint32_t sequence, int64_t time, int32_t device, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t number = 0;
    double value = 0;
    while (read_field(&cursor, &field)) {
        if (field.number == 1) number = field.value;
        if (field.number == 2) value = (double)(int64_t)field.value;
        if (field.number == 3) memcpy(&value, &field.value, sizeof value);
    }
    Item *item = new_item(trace);
    if (item == NULL) return false;
    *item = (Item){.phase = COUNTER, .sequence = sequence, .start = time, .end = time, .device = device, .value = value};
    item->name = name_of(&trace->names, sequence, COUNTER_NAME, number);
    return true;
}

static bool read_counters(Perfetto *trace, uint32_t sequence, int64_t time, Slice message) {
    Cursor cursor = cursor_of(message), again = cursor;
    Field field;
    int32_t device = 0;
    bool fits = true;
    while (fits && read_field(&cursor, &field)) {
        if (field.number == 3) device = (int32_t)field.value;
        if (field.number != 1) continue;
        Cursor specifications = cursor_of(field.bytes);
        while (fits && read_field(&specifications, &field)) {
            if (field.number == 1) fits = add_interned(trace, sequence, COUNTER_NAME, field.bytes);
        }
    }
    while (fits && read_field(&again, &field)) {
        if (field.number == 2) fits = read_counter(trace, sequence, time, device, field.bytes);
    }
    return fits;
}

/* --- Packets --- */

static void read_clocks(Perfetto *trace, Slice message) {
    enum { REALTIME = 1 };
    Cursor cursor = cursor_of(message);
    Field field;
    while (!trace->has_base && read_field(&cursor, &field)) {
        if (field.number != 1) continue;
        Cursor clock = cursor_of(field.bytes);
        uint64_t id = 0, time = 0;
        while (read_field(&clock, &field)) {
            if (field.number == 1) id = field.value;
            if (field.number == 2) time = field.value;
        }
        if (id == REALTIME) trace->base = (int64_t)(time & MAX_TIME), trace->has_base = true;
    }
}

static bool read_facts(Perfetto *trace, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    while (read_field(&cursor, &field)) {
        if (field.number != 2) continue;
        void *facts = room(trace->facts, sizeof(Part), trace->fact_count, &trace->fact_capacity, FIRST_SLOTS);
        if (facts == NULL) return true; /* so many are no facts */
        trace->facts = facts;
        if (!keep_text(trace, field.bytes, &trace->facts[trace->fact_count])) return false;
        trace->fact_count++;
    }
    return true;
}

static bool read_packet(Perfetto *trace, Slice packet) {
    Cursor cursor = cursor_of(packet);
    Field field;
    uint32_t sequence = 0, kind = 0;
    int64_t time = 0;
    Slice interned = {0}, content = {0};
    while (read_field(&cursor, &field)) {
        switch (field.number) {
            case 8: time = (int64_t)(field.value & MAX_TIME); break;
            case 10: sequence = field.value & ((1U << SEQUENCE_BITS) - 1); break;
            case 12: interned = field.bytes; break;
            case 5: case 6: case 11: case 52: case 53: case 60:
                kind = field.number;
                content = field.bytes;
                break;
            default: break;
        }
    }
    if (interned.length > 0 && !add_all_interned(trace, sequence, interned)) return false;
    switch (kind) {
        case 5: return read_facts(trace, content);
        case 6: read_clocks(trace, content); return true;
        case 11: return read_track_event(trace, sequence, time, content);
        case 52: return read_counters(trace, sequence, time, content);
        case 53: return read_stage(trace, sequence, time, content);
        case 60: return read_track(trace, content);
        default: return true;
    }
}

/* Reads the complete packets. Returns what is after them. */
static Slice read_complete(Perfetto *trace, Slice packets, bool *fits) {
    Cursor cursor = cursor_of(packets);
    Field field;
    *fits = true;
    while (*fits && read_field(&cursor, &field)) {
        if (field.number == 1 && field.type == BYTES) *fits = read_packet(trace, field.bytes);
    }
    return (Slice){cursor.at, (size_t)(cursor.end - cursor.at)};
}

bool read_packets(Perfetto *trace, Slice bytes) {
    bool fits;
    if (trace->damaged) return true;
    size_t wanted = trace->packet_bytes + bytes.length;
    trace->names.seed = trace->seed;
    if (wanted > trace->packet_capacity) {
        uint8_t *moved = realloc(trace->packets, wanted * 2);
        if (moved == NULL) return false;
        trace->packets = moved;
        trace->packet_capacity = wanted * 2;
    }
    if (bytes.length > 0) memcpy(trace->packets + trace->packet_bytes, bytes.at, bytes.length);
    Slice rest = read_complete(trace, (Slice){trace->packets, wanted}, &fits);
    trace->packet_bytes = rest.length;
    trace->damaged = rest.length > MAX_PACKET;
    if (rest.length > 0 && rest.at != trace->packets) memmove(trace->packets, rest.at, rest.length);
    return fits;
}

bool end_packets(Perfetto *trace) {
    free(trace->packets);
    trace->packets = NULL;
    if (!pair_slices(trace) || (trace->has_waits && !index_stages(trace))) return false;
    int64_t first = INT64_MAX, last = 0;
    for (size_t number = 0; number < trace->item_count; number++) {
        const Item *item = &trace->items[number];
        if (item->phase == STAGE || (item->phase == BEGIN && item->has_end)) trace->has_slices = true;
        if (item->start < first) first = item->start;
        if (item->start > last) last = item->start;
        if (item->end > last) last = item->end;
    }
    if (!trace->has_base && trace->item_count > 0) trace->base = first;
    trace->whole = trace->packet_bytes == 0;
    trace->exact = last - trace->base >= EXACT_FLOAT_NS;
    return true;
}

void perfetto_free(Perfetto *trace) {
    free(trace->kept);
    free(trace->packets);
    free(trace->names.slots);
    free(trace->tracks);
    free(trace->track_slots);
    free(trace->items);
    free(trace->marks);
    free(trace->stage_slots);
    free(trace->facts);
}
