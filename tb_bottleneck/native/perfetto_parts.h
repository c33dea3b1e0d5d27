/* What the files of the reader of Perfetto share: see perfetto.h. */

#ifndef TB_BOTTLENECK_PERFETTO_PARTS_H
#define TB_BOTTLENECK_PERFETTO_PARTS_H

#include "perfetto.h"

enum { FIRST_SLOTS = 1024, MAX_NAMES = 1 << 24, MAX_TRACKS = 1 << 20, MAX_ITEMS = 1 << 27 /* also of marks */ };

static inline uint64_t mixed(uint64_t value) { /* the finalizer of splitmix64 */
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* Makes room for one more item; NULL if there is no memory, or more than so many. */
void *room(void *items, size_t size, size_t count, size_t *capacity, size_t most);

/* Keeps a text. Returns false if there is no memory, or more than 4 GB. */
bool keep_text(Perfetto *trace, Slice text, Part *part);

/* Reads an interned string: iid = 1, name = 2; of a kernel, the name without mangling = 3. */
bool add_interned(Perfetto *trace, uint64_t sequence, enum Kind kind, Slice message);

/* Reads a message InternedData. */
bool add_all_interned(Perfetto *trace, uint64_t sequence, Slice message);

/* The number of a track, which is new if its uuid is; SIZE_MAX if there is no memory. */
size_t track_of(Perfetto *trace, uint64_t uuid);

/* Reads a message TrackDescriptor. */
bool read_track(Perfetto *trace, Slice message);

/* The item of a render stage with this id; NULL if there is none. */
const Item *find_stage(const Perfetto *trace, uint64_t sequence, uint64_t id);

/* Finds the render stages that others wait for. Returns false if there is no memory. */
bool index_stages(Perfetto *trace);

/* Finds the end of each slice. Returns false if there is no memory. */
bool pair_slices(Perfetto *trace);

/* The track itself, or its parent if it is neither of a process nor of a thread. */
const Track *process_of(const Perfetto *trace, const Track *track);

int64_t thread_of(const Track *track);

/* The name in a DebugAnnotation. */
Slice annotation_name(const Perfetto *trace, uint64_t sequence, Slice message);

/* Returns true if an argument of this name is read. */
bool is_wanted(Slice name);

/* Writes the value of a DebugAnnotation. */
void put_annotation(Text *text, const Perfetto *trace, uint64_t sequence, Slice message, int depth);

/* The name and the value of an argument of a render stage, as text. */
Slice extra_of(Slice message, Slice *value);

/* The stream of a render stage as text; "0" if it has none. */
Slice stream_of(const Perfetto *trace, const Item *item);

/* The name in an argument of a launch. */
Slice launch_name(const Perfetto *trace, uint64_t sequence, Slice message);

/* The sides of a grid. */
void read_sides(Slice message, uint64_t sides[3]);

/* Writes the value of an argument of a launch. */
void put_launch_value(Text *text, Slice message);

/* The category in the JSON of torch. */
Slice stage_category(Slice stage);

/* Writes the begin or the end of a flow between render stages: it begins where one ends, and ends where one starts. */
void put_dependency(Text *text, const Perfetto *trace, const Item *item, Slice stream, bool is_begin, uint64_t number);

/* Writes an item, or the name of a track. */
void put_item(Text *text, const Perfetto *trace, const Item *item);
void put_track(Text *text, const Perfetto *trace, const Track *track);

/* The name of a process or thread; empty if it has none. */
Part track_name(const Track *track);

#endif
