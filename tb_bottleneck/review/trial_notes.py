"""Notes about trials: the gains that `tb-bottleneck try` measured for the fixes of findings.

The text of such a note has the measured gain, step time before / step time after.
"""

import math
import re
from collections.abc import Mapping

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.review_pb2 import Review

TRIAL = "trial"
"""The basis of a measured gain."""
_TEXT = re.compile(r"([0-9.]{1,12})x \(([0-9.]{1,12}) to ([0-9.]{1,12})\) with (.+)", re.ASCII)


def trial_text(gain: float, low: float, high: float, change: str) -> str:
    """Returns the text of a trial's note. `gain` is the measured factor, `low` to `high` its interval, and `change`
    says what was changed."""
    return f"{gain:.3f}x ({low:.3f} to {high:.3f}) with {change}"


def trial_gain(text: str) -> pb.Speedup | None:
    """Returns the gain in the text of a trial's note, with the change in `assumes`; None if the text has no gain (see
    `trial_text`), or an impossible one."""
    found = _TEXT.fullmatch(text)
    try:
        expected, low, high = map(float, found.groups()[:3]) if found else (0.0, 0.0, 0.0)
    except ValueError:
        return None
    if found is None or not all(map(math.isfinite, (expected, low, high))) or expected <= 0:
        return None
    return pb.Speedup(expected=expected, low=low, high=high, basis=TRIAL, assumes=found[4])


def measured_gains(review: Review | None) -> dict[str, pb.Speedup]:
    """Returns the measured gain by the cause of the finding that was tried."""
    states = review.states if review is not None else ()
    gains = {state.cause: trial_gain(state.trial) for state in states if state.cause}
    return {cause: gain for cause, gain in gains.items() if gain is not None}


def measured_speedup(predicted: pb.Speedup | None, measured: pb.Speedup) -> pb.Speedup:
    """Returns `measured` with the gain that was predicted, if there was a prediction."""
    result = pb.Speedup()
    result.CopyFrom(measured)
    if predicted is not None and predicted.basis not in ("", "none"):
        result.predicted = predicted.expected
    return result


def measured_lead(
    gain: pb.Speedup | None, causes: tuple[str, ...], gains: Mapping[str, pb.Speedup]
) -> pb.Speedup | None:
    """Returns the gain that a list shows for a recording whose findings have `causes`, the leading one first: the
    measured gain of the leading one, otherwise `gain`."""
    lead = gains.get(causes[0]) if causes else None
    return gain if lead is None else measured_speedup(gain, lead)
