#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

enum { FIRST_BYTES = 1 << 16, NUMBER_BYTES = 48 };

/* One event may name a long interned string many times. */
static const size_t MAX_BYTES = (size_t)64 << 20;

bool grow(Text *text, size_t length) {
    if (text->failed) return false;
    size_t wanted = text->capacity == 0 ? FIRST_BYTES : text->capacity;
    while (wanted - text->length < length) wanted *= 2;
    char *moved = wanted <= MAX_BYTES ? realloc(text->at, wanted) : NULL;
    text->failed = moved == NULL;
    if (text->failed) return false;
    text->at = moved;
    text->capacity = wanted;
    return true;
}

/* Writes the digits of a number before `end`, at least so many. Returns where they begin. */
static char *digits_of(uint64_t value, char *end, int least) {
    for (; value > 0 || least > 0; value /= 10, least--) *--end = (char)('0' + value % 10);
    return end;
}

void put_unsigned(Text *text, uint64_t value) {
    char digits[NUMBER_BYTES], *end = digits + sizeof digits, *begin = digits_of(value, end, 1);
    put(text, begin, (size_t)(end - begin));
}

void put_integer(Text *text, int64_t value) {
    if (value < 0) PUT(text, "-");
    put_unsigned(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void put_double(Text *text, double value) {
    char digits[NUMBER_BYTES];
    if (!isfinite(value)) {
        PUT(text, "null");
        return;
    }
    put(text, digits, (size_t)snprintf(digits, sizeof digits, "%.17g", value));
}

void put_time(Text *text, int64_t ns) {
    char digits[NUMBER_BYTES], *end = digits + sizeof digits;
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char *begin = digits_of(size % 1000, end, 3);
    *--begin = '.';
    begin = digits_of(size / 1000, begin, 1);
    if (ns < 0) *--begin = '-';
    put(text, begin, (size_t)(end - begin));
}

void put_string(Text *text, Slice value) {
    if (text->failed) return; /* the value may be long */
    PUT(text, "\"");
    size_t from = 0;
    for (size_t at = 0; at < value.length; at++) {
        uint8_t byte = value.at[at];
        if (byte >= ' ' && byte != '"' && byte != '\\') continue;
        char escaped[8];
        put(text, (const char *)value.at + from, at - from);
        put(text, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", byte));
        from = at + 1;
    }
    if (value.length > 0) put(text, (const char *)value.at + from, value.length - from);
    PUT(text, "\"");
}

/* Returns true if the text is a number as JSON writes it, without an exponent. */
static bool is_number(Slice value) {
    Cursor cursor = cursor_of(value);
    take(&cursor, '-');
    const uint8_t *begin = cursor.at;
    while (peek(&cursor) >= '0' && peek(&cursor) <= '9') cursor.at++;
    size_t whole = since(&cursor, begin).length;
    if (whole == 0 || whole > MAX_DIGITS || (whole > 1 && *begin == '0')) return false;
    if (take(&cursor, '.')) {
        begin = cursor.at;
        while (peek(&cursor) >= '0' && peek(&cursor) <= '9') cursor.at++;
        size_t fraction = since(&cursor, begin).length;
        if (fraction == 0 || fraction > MAX_DIGITS) return false;
    }
    return cursor.at == cursor.end;
}

bool is_json(Slice value) {
    Cursor cursor = cursor_of(value);
    bool brackets = peek(&cursor) == '[' || peek(&cursor) == '{';
    return is_number(value) || (brackets && skip_brackets(&cursor) && cursor.at == cursor.end);
}

void put_text_value(Text *text, Slice value) {
    if (is_json(value)) put(text, (const char *)value.at, value.length);
    else put_string(text, value);
}

void put_key(Text *text, Slice name, bool *first) {
    if (!*first) PUT(text, ",");
    *first = false;
    put_string(text, name);
    PUT(text, ":");
}
