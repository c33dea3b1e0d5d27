#include "times.h"

#include <float.h>
#include <math.h>

enum { NS_PER_US = 1000, NS_DIGITS = 3, EXACT_DIGITS = 15 };

/* 101 days: from here on the spacing of float64 is more than a nanosecond (EXACT_FLOAT_US of sources/kineto.py). */
#define EXACT_FLOAT_US (UINT64_C(1) << 43)
/* Larger times are left to Python, which refuses those from 9.2e15 on. */
#define MAX_TIME_US UINT64_C(9000000000000000)

static const uint64_t POWERS_OF_TEN[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000,
    10000000000000, 100000000000000, 1000000000000000,
};

bool to_double(const Number *number, double *value) {
    /* Both are integers that float64 represents, so the one division rounds correctly (Clinger, How to Read Floating Point
     * Numbers Accurately, 1990) — unless the compiler computes with more digits. */
    if (FLT_EVAL_METHOD != 0 || number->digits > EXACT_DIGITS) return false;
    *value = (double)number->mantissa / (double)POWERS_OF_TEN[number->fraction];
    if (number->negative) *value = -*value;
    return true;
}

/* Rounds the digits after the third one half to even. */
static uint64_t rounded(uint64_t mantissa, unsigned surplus) {
    uint64_t unit = POWERS_OF_TEN[surplus], whole = mantissa / unit, rest = mantissa % unit;
    return whole + (rest > unit / 2 || (rest == unit / 2 && whole % 2 == 1));
}

bool to_nanoseconds(const Number *us, bool exact, int64_t *ns, bool *too_fine) {
    double value;
    if (us->negative || us->whole >= MAX_TIME_US) return false;
    if (us->fraction == 0) {
        *ns = (int64_t)(us->whole * NS_PER_US);
        return true;
    }
    if (!exact && us->whole >= EXACT_FLOAT_US) {
        *too_fine = true;
        return false;
    }
    if (us->fraction <= NS_DIGITS && us->digits <= MAX_DIGITS) {
        *ns = (int64_t)(us->mantissa * POWERS_OF_TEN[NS_DIGITS - us->fraction]);
        return true;
    }
    if (exact) {
        if (us->digits > MAX_DIGITS) return false;
        *ns = (int64_t)rounded(us->mantissa, us->fraction - NS_DIGITS);
        return true;
    }
    if (!to_double(us, &value)) return false;
    double whole = floor(value);
    *ns = (int64_t)whole * NS_PER_US + (int64_t)rint((value - whole) * NS_PER_US);
    return true;
}
