#include "perfetto.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 1024, MAX_NAMES = 1 << 24, MAX_TRACKS = 1 << 20, MAX_ITEMS = 1 << 27 };

static const uint64_t MAX_TIME = (UINT64_C(1) << 61) - 1; /* ns: in the year 2043; the sum of two fits */

static uint64_t mixed(uint64_t value) { /* the finalizer of splitmix64 */
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t bytes_as_number(Slice bytes) {
    Cursor cursor = cursor_of(bytes);
    uint64_t value = 0;
    return read_varint(&cursor, &value) ? value : 0;
}

/* Makes room for one more item; NULL if there is no memory, or more than so many. */
static void *room(void *items, size_t size, size_t count, size_t *capacity, size_t most) {
    if (count < *capacity) return items;
    size_t wanted = *capacity == 0 ? FIRST_SLOTS : *capacity * 2;
    if (count >= most) return NULL;
    void *moved = realloc(items, wanted * size);
    if (moved != NULL) *capacity = wanted;
    return moved;
}

/* --- Names --- */

static Interned *slot_of(const Names *names, uint64_t sequence, enum Kind kind, uint64_t iid) {
    size_t at = mixed(iid * 16 + kind + mixed(sequence)) & (names->size - 1);
    for (;; at = (at + 1) & (names->size - 1)) {
        Interned *slot = &names->slots[at];
        if (!slot->used || (slot->sequence == sequence && slot->kind == kind && slot->iid == iid)) return slot;
    }
}

static bool grow_names(Names *names) {
    Names larger = {NULL, names->count, names->size == 0 ? FIRST_SLOTS : names->size * 2};
    if (names->count >= MAX_NAMES) return false;
    larger.slots = calloc(larger.size, sizeof *larger.slots);
    if (larger.slots == NULL) return false;
    for (size_t at = 0; at < names->size; at++) {
        const Interned *old = &names->slots[at];
        if (old->used) *slot_of(&larger, old->sequence, old->kind, old->iid) = *old;
    }
    free(names->slots);
    *names = larger;
    return true;
}

static bool add_name(Names *names, uint64_t sequence, enum Kind kind, uint64_t iid, Slice text) {
    if (names->count * 2 >= names->size && !grow_names(names)) return false;
    Interned *slot = slot_of(names, sequence, kind, iid);
    names->count += !slot->used;
    *slot = (Interned){sequence, iid, kind, text, true};
    return true;
}

Slice name_of(const Names *names, uint64_t sequence, enum Kind kind, uint64_t iid) {
    if (names->size == 0) return (Slice){0};
    const Interned *slot = slot_of(names, sequence, kind, iid);
    return slot->used ? slot->text : (Slice){0};
}

/* Reads an interned string: iid = 1, name = 2; of a kernel, the name without mangling = 3. */
static bool add_interned(Names *names, uint64_t sequence, enum Kind kind, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t iid = 0;
    Slice text = {0};
    while (read_field(&cursor, &field)) {
        if (field.number == 1) iid = field.value;
        if (field.number == 2 && text.length == 0) text = field.bytes;
        if (field.number == 3 && kind == KERNEL_NAME) text = field.bytes;
    }
    return add_name(names, sequence, kind, iid, text);
}

static bool add_all_interned(Names *names, uint64_t sequence, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    bool fits = true;
    while (fits && read_field(&cursor, &field)) {
        switch (field.number) {
            case 1: fits = add_interned(names, sequence, CATEGORY, field.bytes); break;
            case 2: fits = add_interned(names, sequence, EVENT_NAME, field.bytes); break;
            case 3: fits = add_interned(names, sequence, ANNOTATION_NAME, field.bytes); break;
            case 24: fits = add_interned(names, sequence, SPECIFICATION, field.bytes); break;
            case 29: fits = add_interned(names, sequence, STRING_VALUE, field.bytes); break;
            case 1000: fits = add_interned(names, sequence, KERNEL_NAME, field.bytes); break;
            case 1001: fits = add_interned(names, sequence, ARGUMENT_NAME, field.bytes); break;
            default: break;
        }
    }
    return fits;
}

/* --- Tracks --- */

static bool grow_track_slots(Perfetto *trace) {
    size_t size = trace->track_slot_count == 0 ? FIRST_SLOTS : trace->track_slot_count * 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t number = 0; number < trace->track_count; number++) {
        size_t at = mixed(trace->tracks[number].uuid) & (size - 1);
        while (slots[at] != 0) at = (at + 1) & (size - 1);
        slots[at] = (uint32_t)number + 1;
    }
    free(trace->track_slots);
    trace->track_slots = slots;
    trace->track_slot_count = size;
    return true;
}

/* The slot of a track, which is 0 if there is no such track. */
static uint32_t *track_slot(const Perfetto *trace, uint64_t uuid) {
    size_t at = mixed(uuid) & (trace->track_slot_count - 1);
    for (;; at = (at + 1) & (trace->track_slot_count - 1)) {
        uint32_t *slot = &trace->track_slots[at];
        if (*slot == 0 || trace->tracks[*slot - 1].uuid == uuid) return slot;
    }
}

const Track *find_track(const Perfetto *trace, uint64_t uuid) {
    uint32_t number = trace->track_slot_count == 0 ? 0 : *track_slot(trace, uuid);
    return number == 0 ? NULL : &trace->tracks[number - 1];
}

/* The number of a track, which is new if its uuid is; SIZE_MAX if there is no memory. */
static size_t track_of(Perfetto *trace, uint64_t uuid) {
    if (trace->track_count * 2 >= trace->track_slot_count && !grow_track_slots(trace)) return SIZE_MAX;
    uint32_t *slot = track_slot(trace, uuid);
    if (*slot != 0) return *slot - 1;
    void *tracks = room(trace->tracks, sizeof(Track), trace->track_count, &trace->track_capacity, MAX_TRACKS);
    if (tracks == NULL) return SIZE_MAX;
    trace->tracks = tracks;
    trace->tracks[trace->track_count] = (Track){.uuid = uuid};
    *slot = (uint32_t)++trace->track_count;
    return trace->track_count - 1;
}

static void read_process(Track *track, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    track->is_process = true;
    while (read_field(&cursor, &field)) {
        if (field.number == 1) track->process = (int32_t)field.value;
        if (field.number == 6) track->process_name = field.bytes;
    }
}

static void read_thread(Track *track, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    track->is_thread = true;
    while (read_field(&cursor, &field)) {
        if (field.number == 1) track->process = (int32_t)field.value;
        if (field.number == 2) track->thread = (int64_t)field.value;
        if (field.number == 5) track->thread_name = field.bytes;
    }
}

static bool read_track(Perfetto *trace, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    Track read = {.known = true};
    while (read_field(&cursor, &field)) {
        switch (field.number) {
            case 1: read.uuid = field.value; break;
            case 2: case 10: read.name = field.bytes; break;
            case 3: read_process(&read, field.bytes); break;
            case 4: read_thread(&read, field.bytes); break;
            case 5: read.parent = field.value; break;
            default: break;
        }
    }
    size_t number = track_of(trace, read.uuid);
    if (number == SIZE_MAX) return false;
    trace->tracks[number] = read;
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

/* --- Begins and ends --- */

/* The items of one track in the order of the file, and the slices that are open. */
typedef struct {
    size_t *order, *open;
    size_t count, open_count;
} Lane;

/* Returns true if the ends of a run belong to its begins one by one: as many of both, and not in the order of time. */
static bool in_columns(const Perfetto *trace, const size_t *order, size_t begins, size_t all) {
    if (begins * 2 != all) return false;
    for (size_t at = 1; at < all; at++) {
        if (trace->items[order[at]].start < trace->items[order[at - 1]].start) return true;
    }
    return false;
}

static void close_slice(Perfetto *trace, size_t begin, size_t end) {
    Item *item = &trace->items[begin];
    item->end = trace->items[end].start;
    item->has_end = true;
}

/* Finds the end of each slice of a track. */
static void pair_lane(Perfetto *trace, Lane *lane) {
    for (size_t run = 0; run < lane->count;) {
        size_t begins = 0, all;
        while (run + begins < lane->count && trace->items[lane->order[run + begins]].phase == BEGIN) begins++;
        all = begins;
        while (run + all < lane->count && trace->items[lane->order[run + all]].phase == END) all++;
        const size_t *order = lane->order + run;
        if (in_columns(trace, order, begins, all)) {
            for (size_t at = 0; at < begins; at++) close_slice(trace, order[at], order[begins + at]);
        } else {
            for (size_t at = 0; at < begins; at++) lane->open[lane->open_count++] = order[at];
            for (size_t at = begins; at < all; at++) {
                if (lane->open_count > 0) close_slice(trace, lane->open[--lane->open_count], order[at]);
            }
        }
        run += all;
    }
}

/* Finds the end of each slice. Returns false if there is no memory. */
static bool pair_slices(Perfetto *trace) {
    size_t *first = calloc(trace->track_count + 1, sizeof *first), total = 0;
    size_t *order = malloc((trace->item_count + 1) * sizeof *order), *open = malloc((trace->item_count + 1) * sizeof *open);
    bool fits = first != NULL && order != NULL && open != NULL;
    for (size_t number = 0; fits && number < trace->item_count; number++) {
        if (trace->items[number].phase <= END) first[trace->items[number].track + 1]++;
    }
    for (size_t track = 0; fits && track < trace->track_count; track++) first[track + 1] += first[track];
    for (size_t number = 0; fits && number < trace->item_count; number++) {
        if (trace->items[number].phase <= END) order[first[trace->items[number].track]++] = number;
    }
    for (size_t track = 0; fits && track < trace->track_count; track++) {
        Lane lane = {order + total, open, first[track] - total, 0};
        pair_lane(trace, &lane);
        total = first[track];
    }
    free(first);
    free(order);
    free(open);
    return fits;
}

enum Outcome read_packets(Perfetto *trace, Slice packets) {
    Cursor cursor = cursor_of(packets);
    Field field;
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
