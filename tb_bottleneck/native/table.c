#include "table.h"

#include <stdlib.h>

enum { FIRST_KEYS = 256, MAX_KEYS = 1 << 28 };

/* Mixes a word into a hash: a multiplication by an odd number (2^64 divided by the golden ratio), as in Knuth, The Art of
 * Computer Programming, vol. 3, 6.4, and a shift that brings high bits down. */
static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32);
}

static uint64_t hash_of(uint64_t hash, const Slice parts[PARTS]) {
    for (int part = 0; part < PARTS; part++) {
        if (parts[part].length == 0) {
            hash = mixed(hash, 0);
            continue;
        }
        Cursor cursor = {parts[part].at, parts[part].at + parts[part].length};
        uint64_t word = 0;
        for (; peek_bytes(&cursor, &word, sizeof word); skip(&cursor, sizeof word)) hash = mixed(hash, word);
        word = 0;
        for (int byte = next(&cursor); byte >= 0; byte = next(&cursor)) word = word << 8 | (uint64_t)byte;
        hash = mixed(hash, word ^ (uint64_t)parts[part].length << 56);
    }
    return hash;
}

static bool same(const Key *key, const Slice parts[PARTS], uint64_t hash) {
    if (key->hash != hash || key->marker) return false;
    for (int part = 0; part < PARTS; part++) {
        size_t length = key->parts[part].length;
        if (length != parts[part].length) return false;
        if (length > 0 && memcmp(key->parts[part].at, parts[part].at, length) != 0) return false;
    }
    return true;
}

/* The slot of a key, or the free slot where it belongs. */
static size_t slot_of(const Table *table, const Slice parts[PARTS], uint64_t hash) {
    size_t mask = table->slot_count - 1, slot = (size_t)hash & mask;
    while (table->slots[slot] != 0 && !same(&table->keys[table->slots[slot] - 1], parts, hash)) slot = (slot + 1) & mask;
    return slot;
}

static bool grow(Table *table) {
    size_t capacity = table->capacity == 0 ? FIRST_KEYS : table->capacity * 2;
    if (capacity > MAX_KEYS) return false;
    Key *keys = realloc(table->keys, capacity * sizeof *keys);
    if (keys == NULL) return false;
    table->keys = keys;
    int32_t *slots = calloc(capacity * 2, sizeof *slots);
    if (slots == NULL) return false;
    free(table->slots);
    table->slots = slots;
    table->slot_count = capacity * 2;
    table->capacity = capacity;
    for (size_t number = 0; number < table->count; number++) {
        const Key *key = &table->keys[number];
        if (key->marker) continue;
        size_t slot = (size_t)key->hash & (table->slot_count - 1);
        while (table->slots[slot] != 0) slot = (slot + 1) & (table->slot_count - 1);
        table->slots[slot] = (int32_t)number + 1;
    }
    return true;
}

int32_t table_add(Table *table, const Slice parts[PARTS]) {
    if (table->count == table->capacity && !grow(table)) return -1;
    uint64_t hash = hash_of(table->seed, parts);
    size_t slot = slot_of(table, parts, hash);
    if (table->slots[slot] == 0) {
        Key *key = &table->keys[table->count];
        *key = (Key){.hash = hash};
        memcpy(key->parts, parts, sizeof key->parts);
        for (int part = 0; table->copies != NULL && part < PARTS; part++) {
            if (!arena_keep(table->copies, &key->parts[part])) return -1;
        }
        table->slots[slot] = (int32_t)++table->count;
    }
    return table->slots[slot] - 1;
}

int32_t table_add_marker(Table *table) {
    if (table->count == table->capacity && !grow(table)) return -1;
    table->keys[table->count] = (Key){.marker = true};
    return (int32_t)table->count++;
}

void table_free(Table *table) {
    free(table->keys);
    free(table->slots);
    *table = (Table){0};
}
