"""Formats the values in texts of comparisons: speedups, durations, and untrusted names and settings."""

from tb_bottleneck.base.units import duration_text, one_line

SAME_SPEED_WITHIN = 0.02  # smaller changes are called "the same": only hundreds of steps would show them
# Smallest relative change that matters. A smaller change may be the difference between two runs of one training.
RELEVANT_CHANGE = 0.05
MAX_VALUE_LENGTH = 160  # characters of a value that is shown
MAX_INTEGER = 2**63  # a larger number cannot be a setting of a run


def ratio_text(ratio: float) -> str:
    """Formats a ratio with three significant digits, and at most two decimals: 0.48, 2.46, 20.4, 274."""
    digits = 0 if ratio >= 99.95 else 1 if ratio >= 9.995 else 2
    return f"{ratio:.{digits}f}"


def speedup_range_text(speedup: float, low: float, high: float) -> str:
    """Formats a speedup and its interval from `low` to `high`, as in "2.46 times the speed (1.58 to 2.93)".

    Below 1, the text is about the time, as in "1.50 times the time (1.20 to 1.90)".
    """
    if abs(speedup - 1) < SAME_SPEED_WITHIN:
        return f"about the same speed ({ratio_text(low)} to {ratio_text(high)} times)"
    if speedup > 1:
        return f"{ratio_text(speedup)} times the speed ({ratio_text(low)} to {ratio_text(high)})"
    return f"{ratio_text(1 / speedup)} times the time ({ratio_text(1 / high)} to {ratio_text(1 / low)})"


def speedup_text(speedup: float) -> str:
    """Formats a speedup without an interval, as in "2.46 times the speed"."""
    if abs(speedup - 1) < SAME_SPEED_WITHIN:
        return "about the same speed"
    return f"{ratio_text(speedup)} times the speed" if speedup > 1 else f"{ratio_text(1 / speedup)} times the time"


def time_text(ns: float) -> str:
    """Formats a duration in ns, as in "53.0 ms"; "nothing" for 0."""
    return duration_text(ns) if round(ns) else "nothing"


def sanitize(value: object, longest: int = MAX_VALUE_LENGTH) -> str:
    """Converts an untrusted value to one line of text without control characters, of at most `longest` characters."""
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return "an impossibly large number"
    return one_line(value, longest)
