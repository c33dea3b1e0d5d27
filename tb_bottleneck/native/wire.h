/* Reads the wire format of protobuf (protobuf.dev/programming-guides/encoding). Unknown fields are skipped. */

#ifndef TB_BOTTLENECK_WIRE_H
#define TB_BOTTLENECK_WIRE_H

#include "cursor.h"

enum WireType { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* One field: its number, and its value as a number or as bytes. */
typedef struct {
    uint32_t number;
    enum WireType type;
    uint64_t value;
    Slice bytes;
} Field;

static inline bool read_long_varint(Cursor *cursor, uint64_t *value) {
    unsigned shift = 0;
    *value = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word, ends;
    if (peek_bytes(cursor, &word, sizeof word)) { /* eight bytes at once: pairs, fours and all eight are joined by shifts */
        ends = ~word & UINT64_C(0x8080808080808080);
        unsigned count = ends == 0 ? 8 : (unsigned)__builtin_ctzll(ends) / 8 + 1;
        word &= UINT64_C(0x7f7f7f7f7f7f7f7f) >> (8 - count) * 8;
        word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
        word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
        *value = (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
        cursor->at += count;
        if (ends != 0) return true;
        shift = 56;
    }
#endif
    for (; shift < 64; shift += 7) {
        int byte = next(cursor);
        if (byte < 0) return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static inline bool read_varint(Cursor *cursor, uint64_t *value) {
    int byte = peek(cursor); /* most have one byte */
    if (byte < 0 || byte >= 0x80) return read_long_varint(cursor, value);
    *value = (uint64_t)byte;
    cursor->at++;
    return true;
}

static inline bool read_fixed(Cursor *cursor, unsigned bytes, uint64_t *value) {
    *value = 0;
    if ((size_t)(cursor->end - cursor->at) < bytes) return false;
    for (unsigned at = bytes; at-- > 0;) *value = *value << 8 | cursor->at[at];
    cursor->at += bytes;
    return true;
}

/* Reads the next field; false at the end, or if the bytes are no field. The cursor is at its end only after whole ones. */
static inline bool read_field(Cursor *cursor, Field *field) {
    const uint8_t *begin = cursor->at;
    uint64_t key, length;
    if (!read_varint(cursor, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX) goto no_field;
    field->number = (uint32_t)(key >> 3);
    field->type = (enum WireType)(key & 7);
    switch (field->type) {
        case VARINT:
            field->bytes = (Slice){0};
            if (read_varint(cursor, &field->value)) return true;
            break;
        case FIXED64:
            field->bytes = (Slice){0};
            if (read_fixed(cursor, 8, &field->value)) return true;
            break;
        case FIXED32:
            field->bytes = (Slice){0};
            if (read_fixed(cursor, 4, &field->value)) return true;
            break;
        case BYTES:
            if (!read_varint(cursor, &length) || length > (uint64_t)(cursor->end - cursor->at)) break;
            field->value = 0;
            field->bytes = (Slice){cursor->at, (size_t)length};
            cursor->at += length;
            return true;
    }
no_field:
    cursor->at = begin;
    return false;
}

#endif
