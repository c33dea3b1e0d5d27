"""Writes the results of a trial as text and as JSON."""

import math
from collections.abc import Iterator
from string import Template
from typing import Any

from tb_bottleneck.base.units import duration_text, one_line
from tb_bottleneck.text.document import code_lines
from tb_bottleneck.trial.changes import KINDS
from tb_bottleneck.trial.trial import Trial, Variant

PARTS = {
    "loader_wait": "waiting for data", "forward": "forward", "backward": "backward", "optimizer": "optimizer",
    "evaluation": "evaluation", "checkpoint": "checkpoints", "logging": "logging",
    "garbage_collection": "garbage collection", "other": "other",
}  # fmt: skip
WORTH = 0.02
"""The change of a part of the step is printed if it is larger than this share of the step."""
_VERDICTS = {"faster": "faster", "slower": "slower", "no difference": "no difference", "unknown": "not known yet"}


def text_of(trial: Trial) -> Iterator[str]:
    """Yields the lines of the report about a trial: the unchanged program, then the variants, the fastest one first."""
    before = trial.before
    yield f"unchanged: {_speed(before)}"
    for variant in sorted(trial.changed, key=lambda each: -_expected(trial, each)):
        yield ""
        yield from _variant(trial, variant)
    if trial.interrupted:
        yield ""
        yield "Interrupted: this is what was known until then."


def _variant(trial: Trial, variant: Variant) -> Iterator[str]:
    gain = trial.gain(variant)
    if variant.failure or gain is None:
        yield f"{variant.change.name}: not measured. {variant.failure or 'There was no time for it.'}"
        return
    interval = "" if math.isinf(gain.high) else f" ({gain.low:.2f} to {gain.high:.2f})"
    yield f"{variant.change.name}: {gain.gain:.2f}x as fast{interval}, {_VERDICTS[gain.verdict]}, {gain.pairs} pairs"
    yield f"  {_speed(variant)}"
    for name, title in PARTS.items():
        old, new = trial.before.parts[name], variant.parts[name]
        if abs(new - old) > WORTH * trial.before.step_ns:
            yield f"  {title}: {duration_text(old)} -> {duration_text(new)}"
    if (variant.change.arguments or variant.change.folder) and not (
        variant.samples_per_s and trial.before.samples_per_s
    ):
        yield "  samples per step are not known, so steps are compared: if the change alters their work, count samples"
    yield f"  peak memory: {_bytes(_peak(trial.before))} -> {_bytes(_peak(variant))}"
    yield f"  {_losses(trial, variant)}"
    if uncopied := variant.blocks[-1].uncopied:
        more = f" and {len(uncopied) - 1} more were" if len(uncopied) > 1 else " was"
        yield f"  {one_line(uncopied[0])}{more} imported from the work tree itself, not from the copy with the change"
        yield "  (an editable installation, or PYTHONPATH), so what the change does to them was not measured"
    for name, value in variant.change.settings:
        kind = KINDS[name]
        if kind.numerics:
            yield f"  {name} changes results: {kind.numerics}."
        if gain.verdict == "faster":
            yield from code_lines(Template(kind.code).safe_substitute(value=value), "  > ")


def _speed(variant: Variant) -> str:
    rate = variant.samples_per_s
    blocks = f"{len(variant.blocks)} blocks, {sum(block.steps for block in variant.blocks)} steps"
    return f"{duration_text(variant.step_ns)} per step" + (f", {rate:,.0f} samples/s" if rate else "") + f" ({blocks})"


def _losses(trial: Trial, variant: Variant) -> str:
    losses = trial.losses(variant)
    if losses is None:
        return "losses: cannot be compared, because no scalar loss.backward() was seen in both, or it is not finite"
    repeats = f"repeats of one variant differ by {100 * losses.noise:.2g} %"
    word = "agree" if losses.agrees else "DIFFER"
    return f"losses {word}: by {100 * losses.difference:.2g} % in the first {losses.steps} steps; {repeats}"


def _peak(variant: Variant) -> int:
    return max(block.peak_bytes for block in variant.blocks)


def _bytes(value: int) -> str:
    return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"


def _expected(trial: Trial, variant: Variant) -> float:
    gain = trial.gain(variant)
    return 0.0 if gain is None else gain.gain


def json_of(trial: Trial) -> dict[str, Any]:
    """Returns the trial as JSON values. Times are in ns."""
    return {
        "before": _figures(trial.before),
        "changed": [_changed(trial, variant) for variant in trial.changed],
        "interrupted": trial.interrupted,
    }


def _changed(trial: Trial, variant: Variant) -> dict[str, Any]:
    gain, losses = trial.gain(variant), trial.losses(variant) if variant.blocks else None
    found: dict[str, Any] = {"change": variant.change.name, "failure": variant.failure}
    if gain is not None:
        known = not math.isinf(gain.high)
        found |= {
            "gain": gain.gain,
            "low": gain.low if known else None,
            "high": gain.high if known else None,
            "pairs": gain.pairs,
            "verdict": gain.verdict,
            "uncopied": list(variant.blocks[-1].uncopied),
            **_figures(variant),
        }
    if losses is not None:
        found["losses"] = {"agree": losses.agrees, "difference": losses.difference, "noise": losses.noise}
    return found


def _figures(variant: Variant) -> dict[str, Any]:
    return {
        "step_ns": variant.step_ns,
        "samples_per_s": variant.samples_per_s or None,
        "parts_ns": variant.parts,
        "peak_bytes": _peak(variant),
        "blocks": len(variant.blocks),
    }
