#include "perfetto_parts.h"

#include <stdlib.h>

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

bool pair_slices(Perfetto *trace) {
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
