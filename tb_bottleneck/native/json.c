#include "json.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))
#define HIGH_BITS EACH_BYTE(0x80)

/* Sets the high bit of each zero byte. A borrow can also set that of a byte above a zero byte, so only the lowest one is
 * reliable. */
static uint64_t zero_bytes(uint64_t word) { return (word - EACH_BYTE(0x01)) & ~word & HIGH_BITS; }

/* Consumes printable ASCII up to a quote, a backslash or any other byte. */
static void skip_plain(Cursor *cursor) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    while (peek8(cursor, &word)) {
        uint64_t below_space = (word - EACH_BYTE(0x20)) & ~word & HIGH_BITS;
        uint64_t quotes = zero_bytes(word ^ EACH_BYTE('"')), backslashes = zero_bytes(word ^ EACH_BYTE('\\'));
        uint64_t found = below_space | quotes | backslashes | (word & HIGH_BITS);
        if (found) {
            skip(cursor, (size_t)__builtin_ctzll(found) / 8);
            return;
        }
        skip(cursor, sizeof word);
    }
#endif
    for (int byte = peek(cursor); byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\'; byte = peek(cursor)) {
        skip(cursor, 1);
    }
}

bool read_string(Cursor *cursor, Slice *slice, bool escapes) {
    const uint8_t *begin = cursor->at;
    if (!take(cursor, '"')) return false;
    for (;;) {
        skip_plain(cursor);
        int byte = next(cursor);
        if (byte == '"') {
            *slice = since(cursor, begin);
            return true;
        }
        if (byte != '\\' || !escapes) return false;
        switch (next(cursor)) {
            case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': break;
            default: return false;
        }
    }
}

/* Reads digits into `number`; returns how many, or 0 if there are too many for `limit`. */
static unsigned read_digits(Cursor *cursor, Number *number, unsigned limit) {
    unsigned count = 0;
    for (int byte = peek(cursor); byte >= '0' && byte <= '9'; byte = peek(cursor)) {
        if (++count > limit) return 0;
        if (++number->digits <= MAX_DIGITS) number->mantissa = number->mantissa * 10 + (uint64_t)(byte - '0');
        skip(cursor, 1);
    }
    return count;
}

bool read_number(Cursor *cursor, Number *number) {
    *number = (Number){.negative = take(cursor, '-')};
    int first = peek(cursor);
    unsigned count = read_digits(cursor, number, MAX_DIGITS);
    if (count == 0 || (first == '0' && count > 1)) return false;
    number->whole = number->mantissa;
    if (take(cursor, '.')) {
        number->fraction = read_digits(cursor, number, UINT16_MAX);
        if (number->fraction == 0) return false;
    }
    int after = peek(cursor);
    return after != 'e' && after != 'E';
}

static bool take_word(Cursor *cursor, const char *word) {
    for (; *word; word++) {
        if (!take(cursor, (uint8_t)*word)) return false;
    }
    return true;
}

bool read_scalar(Cursor *cursor, Slice *slice) {
    const uint8_t *begin = cursor->at;
    Number number;
    int first = peek(cursor);
    if (first == '"') return read_string(cursor, slice, false);
    if (first == 'n' ? !take_word(cursor, "null") : !read_number(cursor, &number)) return false;
    *slice = since(cursor, begin);
    return true;
}

static bool read_nested(Cursor *cursor, unsigned depth);

/* Reads what is between brackets: values, or keys and values. */
static bool read_items(Cursor *cursor, uint8_t close, unsigned depth) {
    Slice key;
    skip_space(cursor);
    if (take(cursor, close)) return true;
    do {
        skip_space(cursor);
        if (close == '}') {
            if (!read_string(cursor, &key, true)) return false;
            skip_space(cursor);
            if (!take(cursor, ':')) return false;
            skip_space(cursor);
        }
        if (!read_nested(cursor, depth)) return false;
        skip_space(cursor);
    } while (take(cursor, ','));
    return take(cursor, close);
}

static bool read_nested(Cursor *cursor, unsigned depth) {
    Slice slice;
    Number number;
    switch (peek(cursor)) {
        case '"': return read_string(cursor, &slice, true);
        case '[': skip(cursor, 1); return depth < MAX_DEPTH && read_items(cursor, ']', depth + 1);
        case '{': skip(cursor, 1); return depth < MAX_DEPTH && read_items(cursor, '}', depth + 1);
        case 'n': return take_word(cursor, "null");
        case 't': return take_word(cursor, "true");
        case 'f': return take_word(cursor, "false");
        default: return read_number(cursor, &number);
    }
}

bool read_value(Cursor *cursor, Slice *slice) {
    const uint8_t *begin = cursor->at;
    if (!read_nested(cursor, 0)) return false;
    *slice = since(cursor, begin);
    return true;
}

bool skip_brackets(Cursor *cursor) {
    size_t depth = 0;
    do {
        switch (next(cursor)) {
            case '{': case '[': depth++; break;
            case '}': case ']':
                if (depth-- == 0) return false;
                break;
            case '"':
                for (;;) {
                    skip_plain(cursor);
                    int byte = next(cursor);
                    if (byte == '"') break;
                    if (byte == '\\') byte = next(cursor);
                    if (byte < 0) return false;
                }
                break;
            case -1: return false;
            default: break;
        }
    } while (depth > 0);
    return true;
}
