#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

enum { FIRST_BYTES = 1 << 16, NUMBER_BYTES = 48 };

void put(Text *text, const char *bytes, size_t length) {
    if (text->failed || length == 0) return;
    if (text->capacity - text->length < length) {
        size_t wanted = text->capacity == 0 ? FIRST_BYTES : text->capacity;
        while (wanted - text->length < length) wanted *= 2;
        char *moved = realloc(text->at, wanted);
        if (moved == NULL) {
            text->failed = true;
            return;
        }
        text->at = moved;
        text->capacity = wanted;
    }
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
}

void put_integer(Text *text, int64_t value) {
    char digits[NUMBER_BYTES];
    put(text, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, value));
}

void put_unsigned(Text *text, uint64_t value) {
    char digits[NUMBER_BYTES];
    put(text, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value));
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
    char digits[NUMBER_BYTES];
    int64_t size = ns < 0 ? -ns : ns;
    int length = snprintf(digits, sizeof digits, "%s%" PRId64 ".%03d", ns < 0 ? "-" : "", size / 1000, (int)(size % 1000));
    put(text, digits, (size_t)length);
}

void put_string(Text *text, Slice value) {
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

void put_text_value(Text *text, Slice value) {
    Cursor cursor = cursor_of(value);
    bool brackets = peek(&cursor) == '[' || peek(&cursor) == '{';
    if (is_number(value) || (brackets && skip_brackets(&cursor) && cursor.at == cursor.end)) {
        put(text, (const char *)value.at, value.length);
    } else {
        put_string(text, value);
    }
}

void put_key(Text *text, Slice name, bool *first) {
    if (!*first) PUT(text, ",");
    *first = false;
    put_string(text, name);
    PUT(text, ":");
}
