/* Converts numbers as the Python code does (trace/columns/number_columns.py): the same digits give the same result. */

#ifndef TB_BOTTLENECK_TIMES_H
#define TB_BOTTLENECK_TIMES_H

#include "json.h"

/* The nearest float64; false if it cannot be computed in one exact step. */
bool to_double(const Number *number, double *value);

/* Converts microseconds to nanoseconds; false if that is left to Python. `exact`: the number is a decimal and rounded half to
 * even, otherwise it is a float64. Sets `too_fine` if it has a fraction that float64 cannot distinguish. */
bool to_nanoseconds(const Number *us, bool exact, int64_t *ns, bool *too_fine);

#endif
