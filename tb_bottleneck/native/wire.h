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

static inline bool read_varint(Cursor *cursor, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        int byte = next(cursor);
        if (byte < 0) return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static inline bool read_fixed(Cursor *cursor, unsigned bytes, uint64_t *value) {
    uint8_t raw[8];
    *value = 0;
    if (!peek_bytes(cursor, raw, bytes)) return false;
    skip(cursor, bytes);
    for (unsigned at = bytes; at-- > 0;) *value = *value << 8 | raw[at];
    return true;
}

/* Reads the next field; false at the end, or if the bytes are no field. The cursor is at its end only after whole ones. */
static inline bool read_field(Cursor *cursor, Field *field) {
    const uint8_t *begin = cursor->at;
    uint64_t key, length;
    *field = (Field){0};
    if (!read_varint(cursor, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX) goto no_field;
    field->number = (uint32_t)(key >> 3);
    field->type = (enum WireType)(key & 7);
    switch (field->type) {
        case VARINT:
            if (read_varint(cursor, &field->value)) return true;
            break;
        case FIXED64:
            if (read_fixed(cursor, 8, &field->value)) return true;
            break;
        case FIXED32:
            if (read_fixed(cursor, 4, &field->value)) return true;
            break;
        case BYTES:
            if (!read_varint(cursor, &length) || length > (uint64_t)(cursor->end - cursor->at)) break;
            field->bytes = (Slice){cursor->at, (size_t)length};
            cursor->at += length;
            return true;
    }
no_field:
    cursor->at = begin;
    return false;
}

#endif
