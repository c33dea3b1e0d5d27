#include "perfetto_parts.h"

#include <stdlib.h>

static const uint64_t MAX_TIME = (UINT64_C(1) << 61) - 1; /* ns: in the year 2043; the sum of two fits */

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

/* --- Events --- */

static Item *new_item(Perfetto *trace) {
    void *items = room(trace->items, sizeof(Item), trace->item_count, &trace->item_capacity, MAX_ITEMS);
    if (items == NULL) return NULL;
    trace->items = items;
    Item *item = &trace->items[trace->item_count++];
    *item = (Item){0};
    return item;
}

static bool read_track_event(Perfetto *trace, uint64_t sequence, int64_t time, Slice message) {
    enum { SLICE_BEGIN = 1, SLICE_END = 2, SLICE_INSTANT = 3 };
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t type = 0, uuid = 0;
    Slice name = {0}, category = {0};
    while (read_field(&cursor, &field)) {
        switch (field.number) {
            case 3:
                if (category.length > 0) break;
                category = name_of(&trace->names, sequence, CATEGORY,
                                   field.type == BYTES ? bytes_as_number(field.bytes) : field.value);
                break;
            case 9: type = field.value; break;
            case 10: name = name_of(&trace->names, sequence, EVENT_NAME, field.value); break;
            case 11: uuid = field.value; break;
            case 22: category = field.bytes; break;
            case 23: name = field.bytes; break;
            default: break;
        }
    }
    if (type < SLICE_BEGIN || type > SLICE_INSTANT) return true;
    size_t track = track_of(trace, uuid);
    Item *item = track == SIZE_MAX ? NULL : new_item(trace);
    if (item == NULL) return false;
    item->phase = type == SLICE_BEGIN ? BEGIN : type == SLICE_END ? END : INSTANT;
    item->sequence = sequence;
    item->start = time;
    item->track = track;
    item->name = name;
    item->category = category;
    item->message = message;
    return true;
}

static bool read_stage(Perfetto *trace, uint64_t sequence, int64_t time, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    Item *item = new_item(trace);
    if (item == NULL) return false;
    item->phase = STAGE;
    item->sequence = sequence;
    item->start = item->end = time;
    item->message = message;
    Slice stage = {0}, own = {0}, kernel = {0}, event = {0};
    while (read_field(&cursor, &field)) {
        switch (field.number) {
            case 2: item->end = time + (int64_t)(field.value & MAX_TIME); break;
            case 11: item->device = (int32_t)field.value; break;
            case 14: stage = name_of(&trace->names, sequence, SPECIFICATION, field.value); break;
            case 17: own = field.bytes; break;
            case 19: kernel = name_of(&trace->names, sequence, KERNEL_NAME, field.value); break;
            case 20: event = name_of(&trace->names, sequence, EVENT_NAME, field.value); break;
            default: break;
        }
    }
    item->category = stage;
    item->name = kernel.length > 0 ? kernel : own.length > 0 ? own : event.length > 0 ? event : stage;
    return true;
}

static bool read_counter(Perfetto *trace, uint64_t sequence, int64_t time, int64_t device, Slice message) {
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
    *item = (Item){.phase = COUNTER, .sequence = sequence, .start = time, .device = device, .value = value};
    item->name = name_of(&trace->names, sequence, COUNTER_NAME, number);
    return true;
}

static bool read_counters(Perfetto *trace, uint64_t sequence, int64_t time, Slice message) {
    Cursor cursor = cursor_of(message), again = cursor;
    Field field;
    int64_t device = 0;
    bool fits = true;
    while (fits && read_field(&cursor, &field)) {
        if (field.number == 3) device = (int32_t)field.value;
        if (field.number != 1) continue;
        Cursor specifications = cursor_of(field.bytes);
        while (fits && read_field(&specifications, &field)) {
            if (field.number == 1) fits = add_interned(&trace->names, sequence, COUNTER_NAME, field.bytes);
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

static void read_facts(Perfetto *trace, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    while (read_field(&cursor, &field)) {
        if (field.number != 2) continue;
        void *facts = room(trace->facts, sizeof(Slice), trace->fact_count, &trace->fact_capacity, FIRST_SLOTS);
        if (facts == NULL) return; /* so many are no facts */
        trace->facts = facts;
        trace->facts[trace->fact_count++] = field.bytes;
    }
}

static bool read_packet(Perfetto *trace, Slice packet) {
    Cursor cursor = cursor_of(packet);
    Field field, content = {0};
    uint64_t sequence = 0;
    int64_t time = 0;
    Slice interned = {0};
    while (read_field(&cursor, &field)) {
        switch (field.number) {
            case 8: time = (int64_t)(field.value & MAX_TIME); break;
            case 10: sequence = field.value; break;
            case 12: interned = field.bytes; break;
            case 5: case 6: case 11: case 52: case 53: case 60: content = field; break;
            default: break;
        }
    }
    if (!add_all_interned(&trace->names, sequence, interned)) return false;
    switch (content.number) {
        case 5: read_facts(trace, content.bytes); return true;
        case 6: read_clocks(trace, content.bytes); return true;
        case 11: return read_track_event(trace, sequence, time, content.bytes);
        case 52: return read_counters(trace, sequence, time, content.bytes);
        case 53: return read_stage(trace, sequence, time, content.bytes);
        case 60: return read_track(trace, content.bytes);
        default: return true;
    }
}

enum Outcome read_packets(Perfetto *trace, Slice packets) {
    Cursor cursor = cursor_of(packets);
    Field field;
    trace->names.seed = trace->seed;
    while (read_field(&cursor, &field)) {
        if (field.number == 1 && field.type == BYTES && !read_packet(trace, field.bytes)) return NO_MEMORY;
    }
    trace->whole = cursor.at == cursor.end;
    for (size_t number = 0; number < trace->item_count; number++) {
        int64_t start = trace->items[number].start;
        if (!trace->has_base && (number == 0 || start < trace->base)) trace->base = start;
    }
    return pair_slices(trace) ? SCANNED : NO_MEMORY;
}

void perfetto_free(Perfetto *trace) {
    free(trace->names.slots);
    free(trace->tracks);
    free(trace->track_slots);
    free(trace->items);
    free(trace->facts);
}
