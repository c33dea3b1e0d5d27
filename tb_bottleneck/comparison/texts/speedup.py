"""How many times as fast something is, as a person says it."""

from tb_bottleneck.units import duration_text

SAME_SPEED_WITHIN = 0.02  # less is called the same: it would take hundreds of steps to show
# Less is what one training differs from itself by when it is started again.
RELEVANT_CHANGE = 0.05


def ratio_text(ratio: float) -> str:
    """A ratio with three significant digits, and no more than two after the point: 0.48, 2.46, 20.4, 274."""
    digits = 0 if ratio >= 99.95 else 1 if ratio >= 9.995 else 2
    return f"{ratio:.{digits}f}"


def speedup_range_text(speedup: float, low: float, high: float) -> str:
    """A speedup with its interval: "2.46 times the speed (1.58 to 2.93)", or "4.76 times the time (...)"."""
    if abs(speedup - 1) < SAME_SPEED_WITHIN:
        return f"about the same speed ({ratio_text(low)} to {ratio_text(high)} times)"
    if speedup > 1:
        return f"{ratio_text(speedup)} times the speed ({ratio_text(low)} to {ratio_text(high)})"
    return f"{ratio_text(1 / speedup)} times the time ({ratio_text(1 / high)} to {ratio_text(1 / low)})"


def speedup_text(speedup: float) -> str:
    """The same without an interval."""
    if abs(speedup - 1) < SAME_SPEED_WITHIN:
        return "about the same speed"
    return f"{ratio_text(speedup)} times the speed" if speedup > 1 else f"{ratio_text(1 / speedup)} times the time"


def time_text(ns: float) -> str:
    """A duration; "nothing" where there is none."""
    return duration_text(ns) if round(ns) else "nothing"
