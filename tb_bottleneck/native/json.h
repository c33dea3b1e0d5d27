/* Reads values of JSON. What is accepted here is a part of JSON that every strict parser accepts: printable ASCII,
 * simple escapes, numbers without exponent and with at most 18 digits before the point, at most MAX_DEPTH brackets.
 * The functions return false for anything else, valid or not; the cursor is then somewhere inside of the value. */

#ifndef TB_BOTTLENECK_JSON_H
#define TB_BOTTLENECK_JSON_H

#include "cursor.h"

enum { MAX_DEPTH = 8, MAX_DIGITS = 18 };

/* A number as written. */
typedef struct {
    bool negative;
    uint64_t whole;    /* the digits before the point */
    uint64_t mantissa; /* all digits as one number; valid if `digits` is at most MAX_DIGITS */
    unsigned digits;
    unsigned fraction; /* digits after the point */
} Number;

/* Reads a string; `slice` has its quotes. With `escapes`, simple escapes may occur in it. */
bool read_string(Cursor *cursor, Slice *slice, bool escapes);

bool read_number(Cursor *cursor, Number *number);

/* Reads a string without escapes, a number or null. */
bool read_scalar(Cursor *cursor, Slice *slice);

bool read_value(Cursor *cursor, Slice *slice);

/* Finds the end of a value that starts with a bracket, whatever is in it; false if it has no end. */
bool skip_brackets(Cursor *cursor);

#endif
