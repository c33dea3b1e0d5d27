#include "perfetto_parts.h"

#include <stdlib.h>

/* --- Names --- */

static Interned *slot_of(const Names *names, uint64_t sequence, enum Kind kind, uint64_t iid) {
    size_t at = mixed(iid ^ mixed((sequence * 16 + kind) ^ names->seed)) & (names->size - 1);
    for (;; at = (at + 1) & (names->size - 1)) {
        Interned *slot = &names->slots[at];
        if (!slot->used || (slot->sequence == sequence && slot->kind == kind && slot->iid == iid)) return slot;
    }
}

static bool grow_names(Names *names) {
    Names larger = {NULL, names->count, names->size == 0 ? FIRST_SLOTS : names->size * 2, names->seed};
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

static bool add_name(Names *names, uint64_t sequence, enum Kind kind, uint64_t iid, Part text) {
    if (names->count * 2 >= names->size && !grow_names(names)) return false;
    Interned *slot = slot_of(names, sequence, kind, iid);
    names->count += !slot->used;
    *slot = (Interned){sequence, iid, kind, text, true};
    return true;
}

Part name_of(const Names *names, uint64_t sequence, enum Kind kind, uint64_t iid) {
    if (names->size == 0) return (Part){0};
    const Interned *slot = slot_of(names, sequence, kind, iid);
    return slot->used ? slot->text : (Part){0};
}

bool add_interned(Perfetto *trace, uint64_t sequence, enum Kind kind, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t iid = 0;
    Slice text = {0};
    while (read_field(&cursor, &field)) {
        if (field.number == 1) iid = field.value;
        if (field.number == 2 && text.length == 0) text = field.bytes;
        if (field.number == 3 && kind == KERNEL_NAME) text = field.bytes;
    }
    Part kept;
    return keep_text(trace, text, &kept) && add_name(&trace->names, sequence, kind, iid, kept);
}

bool add_all_interned(Perfetto *trace, uint64_t sequence, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    bool fits = true;
    while (fits && read_field(&cursor, &field)) {
        switch (field.number) {
            case 1: fits = add_interned(trace, sequence, CATEGORY, field.bytes); break;
            case 2: fits = add_interned(trace, sequence, EVENT_NAME, field.bytes); break;
            case 3: fits = add_interned(trace, sequence, ANNOTATION_NAME, field.bytes); break;
            case 24: fits = add_interned(trace, sequence, SPECIFICATION, field.bytes); break;
            case 29: fits = add_interned(trace, sequence, STRING_VALUE, field.bytes); break;
            case 1000: fits = add_interned(trace, sequence, KERNEL_NAME, field.bytes); break;
            case 1001: fits = add_interned(trace, sequence, ARGUMENT_NAME, field.bytes); break;
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
        size_t at = mixed(trace->tracks[number].uuid ^ trace->seed) & (size - 1);
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
    size_t at = mixed(uuid ^ trace->seed) & (trace->track_slot_count - 1);
    for (;; at = (at + 1) & (trace->track_slot_count - 1)) {
        uint32_t *slot = &trace->track_slots[at];
        if (*slot == 0 || trace->tracks[*slot - 1].uuid == uuid) return slot;
    }
}

const Track *find_track(const Perfetto *trace, uint64_t uuid) {
    uint32_t number = trace->track_slot_count == 0 ? 0 : *track_slot(trace, uuid);
    return number == 0 ? NULL : &trace->tracks[number - 1];
}

size_t track_of(Perfetto *trace, uint64_t uuid) {
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

static bool read_process(Perfetto *trace, Track *track, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    bool fits = true;
    track->is_process = true;
    while (fits && read_field(&cursor, &field)) {
        if (field.number == 1) track->process = (int32_t)field.value;
        if (field.number == 6) fits = keep_text(trace, field.bytes, &track->process_name);
    }
    return fits;
}

static bool read_thread(Perfetto *trace, Track *track, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    bool fits = true;
    track->is_thread = true;
    while (fits && read_field(&cursor, &field)) {
        if (field.number == 1) track->process = (int32_t)field.value;
        if (field.number == 2) track->thread = (int64_t)field.value;
        if (field.number == 5) fits = keep_text(trace, field.bytes, &track->thread_name);
    }
    return fits;
}

bool read_track(Perfetto *trace, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    Track read = {.known = true};
    bool fits = true;
    while (fits && read_field(&cursor, &field)) {
        switch (field.number) {
            case 1: read.uuid = field.value; break;
            case 2: case 10: fits = keep_text(trace, field.bytes, &read.name); break;
            case 3: fits = read_process(trace, &read, field.bytes); break;
            case 4: fits = read_thread(trace, &read, field.bytes); break;
            case 5: read.parent = field.value; break;
            default: break;
        }
    }
    size_t number = fits ? track_of(trace, read.uuid) : SIZE_MAX;
    if (number == SIZE_MAX) return false;
    trace->tracks[number] = read;
    return true;
}
