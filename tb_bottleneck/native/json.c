#include "json.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))
#define HIGH_BITS EACH_BYTE(0x80)

/* Sets the high bit of each zero byte. A borrow can also set that of a byte above a zero byte, so only the lowest one is
 * reliable. */
static inline uint64_t zero_bytes(uint64_t word) { return (word - EACH_BYTE(0x01)) & ~word & HIGH_BITS; }

/* Consumes printable ASCII up to a quote, a backslash or any other byte, 8 bytes at a time as far as possible. */
static inline void skip_plain_blocks(Cursor *cursor) {
    uint64_t word;
    while (peek_bytes(cursor, &word, sizeof word)) {
        uint64_t below_space = (word - EACH_BYTE(0x20)) & ~word & HIGH_BITS;
        uint64_t quotes = zero_bytes(word ^ EACH_BYTE('"')), backslashes = zero_bytes(word ^ EACH_BYTE('\\'));
        uint64_t found = below_space | quotes | backslashes | (word & HIGH_BITS);
        if (found != 0) {
            skip(cursor, (size_t)__builtin_ctzll(found) / 8);
            return;
        }
        skip(cursor, sizeof word);
    }
}

static const uint32_t POWERS_OF_TEN[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* The value of eight digits, one per byte from 0 to 9, the first one in the lowest byte: pairs, fours and all eight are
 * joined by one multiplication each. */
static inline uint64_t eight_digits(uint64_t digits) {
    digits = digits * 10 + (digits >> 8);
    uint64_t high = (digits & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064);
    uint64_t low = (digits >> 16 & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001);
    return (high + low) >> 32;
}

/* Appends digits to `value`, eight at a time as far as possible. */
static inline void read_digit_blocks(Cursor *cursor, uint64_t *value) {
    uint64_t word;
    unsigned count = 8;
    while (count == 8 && peek_bytes(cursor, &word, sizeof word)) {
        word ^= EACH_BYTE('0');
        /* Sets the high bit of each byte above 9. A carry can set that of a byte above one, so the lowest is reliable. */
        uint64_t others = ((word + EACH_BYTE(0x7F - 9)) | word) & HIGH_BITS;
        count = others == 0 ? 8 : (unsigned)__builtin_ctzll(others) / 8;
        if (count == 0) return;
        *value = *value * POWERS_OF_TEN[count] + eight_digits(word << (8 - count) * 8);
        skip(cursor, count);
    }
}
#else
static inline void skip_plain_blocks(Cursor *cursor) { (void)cursor; }
static inline void read_digit_blocks(Cursor *cursor, uint64_t *value) { (void)cursor, (void)value; }
#endif

static inline void skip_plain(Cursor *cursor) {
    skip_plain_blocks(cursor);
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

/* Appends digits to `value`, which is only right if it then has at most MAX_DIGITS; returns how many. */
static inline unsigned read_digits(Cursor *cursor, uint64_t *value) {
    const uint8_t *begin = cursor->at;
    read_digit_blocks(cursor, value);
    for (unsigned digit; (digit = (unsigned)peek(cursor) - '0') <= 9; skip(cursor, 1)) *value = *value * 10 + digit;
    size_t count = (size_t)(cursor->at - begin);
    return count < UINT16_MAX ? (unsigned)count : UINT16_MAX;
}

bool read_number(Cursor *cursor, Number *number) {
    number->negative = take(cursor, '-');
    number->mantissa = 0;
    number->fraction = 0;
    int first = peek(cursor);
    number->digits = read_digits(cursor, &number->mantissa);
    number->whole = number->mantissa;
    if (number->digits == 0 || number->digits > MAX_DIGITS || (first == '0' && number->digits > 1)) return false;
    if (take(cursor, '.')) {
        number->fraction = read_digits(cursor, &number->mantissa);
        number->digits += number->fraction;
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
