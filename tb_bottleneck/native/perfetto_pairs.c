#include "perfetto_parts.h"

#include <stdlib.h>

/* The marks of one track in the order of the file, and the slices that are open. */
typedef struct {
    uint32_t *order, *open;
    size_t count, open_count;
} Lane;

/* Returns true if the ends of a run belong to its begins one by one: as many of both, and not in the order of time. */
static bool in_columns(const Perfetto *trace, const uint32_t *order, size_t begins, size_t all) {
    if (begins * 2 != all) return false;
    for (size_t at = 1; at < all; at++) {
        if (trace->marks[order[at]].time < trace->marks[order[at - 1]].time) return true;
    }
    return false;
}

static void close_slice(Perfetto *trace, uint32_t begin, uint32_t end) {
    Item *item = &trace->items[trace->marks[begin].item - 1];
    item->end = trace->marks[end].time;
    item->has_end = true;
}

/* Finds the end of each slice of a track. */
static void pair_lane(Perfetto *trace, Lane *lane) {
    for (size_t run = 0; run < lane->count;) {
        size_t begins = 0, all;
        while (run + begins < lane->count && trace->marks[lane->order[run + begins]].item != 0) begins++;
        all = begins;
        while (run + all < lane->count && trace->marks[lane->order[run + all]].item == 0) all++;
        const uint32_t *order = lane->order + run;
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

bool pair_slices(Perfetto *trace) {
    size_t *first = calloc(trace->track_count + 1, sizeof *first), total = 0;
    uint32_t *order = malloc((trace->mark_count + 1) * sizeof *order), *open = malloc((trace->mark_count + 1) * sizeof *open);
    bool fits = first != NULL && order != NULL && open != NULL;
    for (size_t number = 0; fits && number < trace->mark_count; number++) first[trace->marks[number].track + 1]++;
    for (size_t track = 0; fits && track < trace->track_count; track++) first[track + 1] += first[track];
    for (size_t number = 0; fits && number < trace->mark_count; number++) {
        order[first[trace->marks[number].track]++] = (uint32_t)number;
    }
    for (size_t track = 0; fits && track < trace->track_count; track++) {
        Lane lane = {order + total, open, first[track] - total, 0};
        pair_lane(trace, &lane);
        total = first[track];
    }
    free(first);
    free(order);
    free(open);
    free(trace->marks);
    trace->marks = NULL;
    return fits;
}

/* --- Render stages that others wait for --- */

/* The slot of a stage, or the free slot where it belongs. */
static uint32_t *stage_slot(const Perfetto *trace, uint64_t sequence, uint64_t id) {
    size_t at = mixed(id ^ mixed(sequence ^ trace->seed)) & (trace->stage_slot_count - 1);
    for (;; at = (at + 1) & (trace->stage_slot_count - 1)) {
        uint32_t *slot = &trace->stage_slots[at];
        const Item *item = *slot == 0 ? NULL : &trace->items[*slot - 1];
        if (item == NULL || (item->sequence == sequence && item->id == id)) return slot;
    }
}

const Item *find_stage(const Perfetto *trace, uint64_t sequence, uint64_t id) {
    uint32_t number = trace->stage_slots == NULL ? 0 : *stage_slot(trace, sequence, id);
    return number == 0 ? NULL : &trace->items[number - 1];
}

bool index_stages(Perfetto *trace) {
    trace->stage_slot_count = FIRST_SLOTS;
    while (trace->stage_slot_count < trace->item_count * 2) trace->stage_slot_count *= 2;
    trace->stage_slots = calloc(trace->stage_slot_count, sizeof *trace->stage_slots);
    for (size_t number = 0; trace->stage_slots != NULL && number < trace->item_count; number++) {
        const Item *item = &trace->items[number];
        if (item->phase == STAGE && item->id != 0) *stage_slot(trace, item->sequence, item->id) = (uint32_t)number + 1;
    }
    return trace->stage_slots != NULL;
}
