/* A position in a text. Every byte of a text is read through these functions, and each of them checks the end. */

#ifndef TB_BOTTLENECK_CURSOR_H
#define TB_BOTTLENECK_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} Cursor;

/* A part of a text, as written. Its length is 0 if it was not written. */
typedef struct {
    const uint8_t *at;
    size_t length;
} Slice;

/* The next byte, or -1 at the end. */
static inline int peek(const Cursor *cursor) { return cursor->at < cursor->end ? *cursor->at : -1; }

/* The next byte, which is consumed, or -1 at the end. */
static inline int next(Cursor *cursor) { return cursor->at < cursor->end ? *cursor->at++ : -1; }

/* Consumes the byte if it is next. */
static inline bool take(Cursor *cursor, uint8_t byte) {
    if (peek(cursor) != byte) return false;
    cursor->at++;
    return true;
}

/* Copies the next bytes without consuming them; false if there are fewer. */
static inline bool peek_bytes(const Cursor *cursor, void *bytes, size_t count) {
    if ((size_t)(cursor->end - cursor->at) < count) return false;
    memcpy(bytes, cursor->at, count);
    return true;
}

/* Consumes this many bytes, at most to the end. */
static inline void skip(Cursor *cursor, size_t count) {
    size_t rest = (size_t)(cursor->end - cursor->at);
    cursor->at += count < rest ? count : rest;
}

static inline bool is_space(int byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

/* Consumes JSON's white space. Indented files have long runs of it. */
static inline void skip_space(Cursor *cursor) {
    uint64_t word;
    int byte = peek(cursor);
    if (byte > ' ') return;
    while (is_space(byte)) {
        cursor->at++;
        byte = peek(cursor);
        if (byte != ' ') continue;
        while (peek_bytes(cursor, &word, sizeof word) && word == UINT64_C(0x2020202020202020)) skip(cursor, sizeof word);
        byte = peek(cursor);
    }
}

/* What was consumed since `begin`, which is an earlier position of this cursor. */
static inline Slice since(const Cursor *cursor, const uint8_t *begin) {
    return (Slice){begin, (size_t)(cursor->at - begin)};
}

/* The begin of a slice. */
static inline Cursor cursor_of(Slice slice) {
    return (Cursor){slice.at, slice.length == 0 ? slice.at : slice.at + slice.length};
}

static inline bool equals(Slice slice, const char *text, size_t length) {
    return slice.length == length && memcmp(slice.at, text, length) == 0;
}

/* Compares with a string literal. */
#define IS(slice, literal) equals((slice), (literal), sizeof(literal) - 1)

#endif
