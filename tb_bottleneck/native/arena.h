/* Memory for texts that stay where they are until all are freed at once. */

#ifndef TB_BOTTLENECK_ARENA_H
#define TB_BOTTLENECK_ARENA_H

#include "cursor.h"

typedef struct Chunk Chunk;

typedef struct {
    Chunk *last;
    size_t free; /* bytes of the last chunk */
} Arena;

/* Replaces a text by its copy. Returns false if there is no memory. */
bool arena_keep(Arena *arena, Slice *text);

void arena_free(Arena *arena);

#endif
