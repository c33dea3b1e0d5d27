/* What the files of the reader of Perfetto share: see perfetto.h. */

#ifndef TB_BOTTLENECK_PERFETTO_PARTS_H
#define TB_BOTTLENECK_PERFETTO_PARTS_H

#include "perfetto.h"

enum { FIRST_SLOTS = 1024, MAX_NAMES = 1 << 24, MAX_TRACKS = 1 << 20, MAX_ITEMS = 1 << 27 };

/* Makes room for one more item; NULL if there is no memory, or more than so many. */
void *room(void *items, size_t size, size_t count, size_t *capacity, size_t most);

/* Reads an interned string: iid = 1, name = 2; of a kernel, the name without mangling = 3. */
bool add_interned(Names *names, uint64_t sequence, enum Kind kind, Slice message);

/* Reads a message InternedData. */
bool add_all_interned(Names *names, uint64_t sequence, Slice message);

/* The number of a track, which is new if its uuid is; SIZE_MAX if there is no memory. */
size_t track_of(Perfetto *trace, uint64_t uuid);

/* Reads a message TrackDescriptor. */
bool read_track(Perfetto *trace, Slice message);

/* Finds the end of each slice. Returns false if there is no memory. */
bool pair_slices(Perfetto *trace);

#endif
