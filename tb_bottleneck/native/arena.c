#include "arena.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 16 };

struct Chunk {
    Chunk *before;
    size_t size;
    uint8_t bytes[];
};

static bool add_chunk(Arena *arena, size_t size) {
    Chunk *chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL) return false;
    chunk->before = arena->last;
    chunk->size = arena->free = size;
    arena->last = chunk;
    return true;
}

bool arena_keep(Arena *arena, Slice *text) {
    if (text->length == 0) return true;
    if (arena->free < text->length && !add_chunk(arena, text->length < CHUNK_BYTES ? CHUNK_BYTES : text->length)) return false;
    uint8_t *copy = arena->last->bytes + arena->last->size - arena->free;
    memcpy(copy, text->at, text->length);
    text->at = copy;
    arena->free -= text->length;
    return true;
}

void arena_free(Arena *arena) {
    while (arena->last != NULL) {
        Chunk *before = arena->last->before;
        free(arena->last);
        arena->last = before;
    }
}
