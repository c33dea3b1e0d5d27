"""The part of the page of predicted gains that is about pairs of public recordings."""

import sys
from collections.abc import Iterator, Sequence
from statistics import median, pstdev

from helpers.real_pairs import NO_FOLDER, RealPair
from helpers.refit import Refit, refits

from tb_bottleneck.replay.gain import Gain

LEAST_SAVING = 0.05  # the share of a smaller predicted saving is mostly noise


def public_gains(pairs: Sequence[RealPair], shares: list[float | None]) -> Iterator[str]:
    """Yields the sections on the public pairs. `shares` are those of the demo's pairs."""
    yield "## Public pairs"
    yield ""
    if not pairs:
        yield NO_FOLDER
        return
    yield "Real recordings of GPUs before and after one known change. They are not part of this project, and not held"
    yield "out: scenarios were developed with them. Pairs that differ in more than the change are not counted. Errors"
    yield "are measured / predicted gain - 1. The share is the saving that came / the predicted one."
    yield ""
    yield "| pair | change | predicted | interval | width | measured | error | inside | share | counted | source |"
    yield "|---|---|---:|---|---:|---:|---:|---|---:|---|---|"
    gains = [(pair, gain) for pair in pairs if (gain := pair.prediction()) is not None]
    yield from (_public_row(pair, gain) for pair, gain in gains)
    for pair in pairs:
        if pair.facts.get("predict") and pair not in [predicted for predicted, _ in gains]:
            counted, source = "yes" if pair.counted else "no", pair.facts["source"]
            yield f"| {pair.name} | {_change(pair)} | none | | | {pair.measured:.2f}x | | | | {counted} | {source} |"
    yield ""
    counted = [(pair, gain) for pair, gain in gains if pair.counted]
    yield f"{len(counted)} counted: {error_text([pair.measured / gain.expected - 1 for pair, gain in counted])};"
    inside = sum(gain.low <= pair.measured <= gain.high for pair, gain in counted)
    yield f"{inside} inside; median width {median(gain.high / gain.low for _, gain in counted):.2f}."
    yield ""
    same = [share_of(pair.measured, gain.expected) for pair, gain in gains if pair.facts.get("same_work")]
    known = [share for share in (*shares, *same) if share is not None]
    yield f"Shares of these and of the recorded trainings, {len(known)} changes of the same work: median"
    yield f"{median(known):.2f}, standard deviation {pstdev(known):.2f}."
    yield ""
    yield "### Fitted constants, leave one pair out"
    yield ""
    yield "These constants were fitted to counted pairs. Here each is fitted again to the other counted pairs that"
    yield "depend on it; if there are none, it has the value that needs no recording. Constants that only move a bound"
    yield "(INTO_PRODUCTS, BESIDE_WORKERS) change no error."
    yield ""
    yield "| constant | left out | fitted to | value | error as fitted | error left out |"
    yield "|---|---|---|---:|---:|---:|"
    found = list(refits(pairs, lambda name: print(f"fitting {name}", file=sys.stderr)))
    yield from (_refit_row(refit) for refit in found)
    yield ""
    left_out = {refit.pair: refit.error_left_out for refit in found}
    errors = [left_out.get(pair.name, pair.measured / gain.expected - 1) for pair, gain in counted]
    yield f"All {len(counted)} counted pairs with these errors: {error_text(errors)}."


def error_text(errors: list[float]) -> str:
    """Returns the median and the worst of the errors, by size."""
    sizes = [abs(error) for error in errors]
    return f"error median {median(sizes):.1%}, worst {max(sizes):.1%}"


def _public_row(pair: RealPair, gain: Gain) -> str:
    inside = gain.low <= pair.measured <= gain.high
    cells = (
        pair.name,
        _change(pair),
        f"{gain.expected:.2f}x",
        f"{gain.low:.2f} to {gain.high:.2f}",
        f"{gain.high / gain.low:.2f}",
        f"{pair.measured:.2f}x",
        f"{pair.measured / gain.expected - 1:+.1%}",
        "yes" if inside else "**no**",
        share_text(pair.measured, gain.expected),
        "yes" if pair.counted else "no",
        pair.facts["source"],
    )
    return "| " + " | ".join(cells) + " |"


def _change(pair: RealPair) -> str:
    return str(pair.facts["change"]).partition(" (")[0].replace("|", "/")


def _refit_row(refit: Refit) -> str:
    others = ", ".join(refit.fitted_to) or "none"
    errors = f"{refit.error:+.1%} | {refit.error_left_out:+.1%}"
    return f"| {refit.constant} | {refit.pair} | {others} | {refit.value:.2f} | {errors} |"


def share_of(measured: float, expected: float) -> float | None:
    """Returns the saving of time that came / the predicted one, from both gains; None for small predictions."""
    came, predicted = 1 - 1 / measured, 1 - 1 / expected
    return came / predicted if predicted > LEAST_SAVING else None


def share_text(measured: float, expected: float) -> str:
    """Returns the same as text; empty for small predictions."""
    share = share_of(measured, expected)
    return "" if share is None else f"{share:.2f}"
