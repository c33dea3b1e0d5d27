/* Writes JSON into a text that grows. */

#ifndef TB_BOTTLENECK_TEXT_H
#define TB_BOTTLENECK_TEXT_H

#include "cursor.h"

typedef struct {
    char *at;
    size_t length, capacity;
    bool failed; /* there is no memory, or it is too large */
} Text;

/* Makes room for more bytes; false if there is no memory, or the text is too large. */
bool grow(Text *text, size_t length);

static inline void put(Text *text, const char *bytes, size_t length) {
    if (length == 0 || (text->capacity - text->length < length && !grow(text, length))) return;
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
}

/* The text so far; it moves when the text grows. */
static inline Slice text_slice(const Text *text) { return (Slice){(const uint8_t *)text->at, text->length}; }

#define PUT(text, literal) put((text), (literal), sizeof(literal) - 1)

void put_integer(Text *text, int64_t value);
void put_unsigned(Text *text, uint64_t value);
void put_double(Text *text, double value);

/* Time in us, with all digits. */
void put_time(Text *text, int64_t ns);

/* A string with its quotes. Bytes that are no UTF-8 stay as they are: the reader of JSON replaces them. */
void put_string(Text *text, Slice value);

/* Returns true if a text is a number, a list or an object in JSON. */
bool is_json(Slice value);

/* A value that is written as text, as render stages have it: a number, a list or an object in JSON, or else a string. */
void put_text_value(Text *text, Slice value);

/* The name of a member of an object, with a comma before it unless it is the first one. */
void put_key(Text *text, Slice name, bool *first);

#define KEY(literal) ((Slice){(const uint8_t *)(literal), sizeof(literal) - 1})

#endif
