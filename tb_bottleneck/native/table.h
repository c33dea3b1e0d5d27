/* Numbers the different keys of a text in the order of their first occurrence. A key has up to PARTS slices. */

#ifndef TB_BOTTLENECK_TABLE_H
#define TB_BOTTLENECK_TABLE_H

#include "arena.h"

enum { PARTS = 4 };

typedef struct {
    Slice parts[PARTS];
    uint64_t hash;
    bool marker; /* it stands for an event that was not read here; equal to no other key */
} Key;

typedef struct {
    Key *keys;
    size_t count, capacity;
    int32_t *slots; /* number of the key + 1, or 0; the size is a power of two, and at least half of it is free */
    size_t slot_count;
    uint64_t seed;
    Arena *copies; /* of the texts of the keys; NULL if these stay where they are */
} Table;

/* Numbers a key; -1 if there is no memory. */
int32_t table_add(Table *table, const Slice parts[PARTS]);

/* Adds a key that is equal to no other; -1 if there is no memory. */
int32_t table_add_marker(Table *table);

void table_free(Table *table);

#endif
