"""Several runs in a row: a sweep with its knee, or a history with the run since which it is slower."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tb_bottleneck.comparison.batch import batch_of
from tb_bottleneck.comparison.likeness import LIKE, likeness
from tb_bottleneck.comparison.noise import mean_interval
from tb_bottleneck.comparison.side import Judged, Side, Unjudged
from tb_bottleneck.comparison.surroundings import facts_of
from tb_bottleneck.comparison.turn import turn_of
from tb_bottleneck.comparison.waterfall import waterfall
from tb_bottleneck.knowledge.comparing import series_words, sweep_titles
from tb_bottleneck.measures.account import REGIMES
from tb_bottleneck.measures.measure import Missing
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import duration_text, share_text

SCHEMA = 1
# From the knee on, all that more of the same could bring is this share of the best throughput.
LEFT_AT_KNEE = 0.1
RUN, LOADER = "run", "loader"


@dataclass(frozen=True, eq=False)
class Placed:
    """A run with its place in the row. `times` are of its steps, per step or sample, in ns."""

    side: Side
    value: str
    times: Floats
    ns: dict[str, float]

    @property
    def mean(self) -> float:
        """Time per step or sample, in ns."""
        return sum(self.ns.values())


def series_of(sides: Sequence[Judged | Unjudged]) -> pb.RunSeries:
    """The row that these runs make: in the order of what varies where that is a number, else as they were given."""
    judged = [side for side in sides if isinstance(side, Side)]
    told = pb.RunSeries(schema=SCHEMA, per="step", varies=RUN)
    told.notes.extend(reason for side in sides if isinstance(side, Unjudged) for reason in side.because)
    left_out = [side.name for side in sides if isinstance(side, Judged) and not isinstance(side, Side)]
    told.notes.extend(series_words("reported").safe_substitute(run=name) for name in left_out)
    if len(judged) < 2:
        told.headline = series_words("few").safe_substitute()
        return told
    varies, values = what_varies(judged)
    told.varies = sweep_titles().get(varies, RUN)
    told.per, row = _placed(judged, values)
    if varies != RUN and all(_number(one.value) is not None for one in row):
        row.sort(key=lambda one: _number(one.value) or 0.0)
    for position, one in enumerate(row):
        told.points.append(_point(one, row[max(position - 1, 0)], row[0]))
    told.notes.extend(_unlike(row))
    told.headline = _sweep(told, row) if varies != RUN else _history(told, row)
    return told


def what_varies(sides: Sequence[Side]) -> tuple[str, list[str]]:
    """The one thing that people sweep and that differs, with its value on each side; else the runs' own names."""
    facts = [facts_of(side) for side in sides]
    found: list[tuple[str, str, list[str]]] = []
    for key, title in sweep_titles().items():
        values = [_main(one[key]) for one in facts if key in one]
        if len(values) == len(facts) and len(set(values)) > 1 and title not in [other for _, other, _ in found]:
            found.append((key, title, values))
    # Who makes the batches follows from the number of workers.
    alone = [one for one in found if one[0] != LOADER] or found
    if len(alone) == 1:
        return alone[0][0], alone[0][2]
    return RUN, [side.name for side in sides]


def _main(value: str) -> str:
    """The first of a list of types with their shares: what most of the time is spent in."""
    return value.split(" %")[0].rpartition(" ")[0] if " %" in value else value


def _placed(sides: list[Side], values: list[str]) -> tuple[str, list[Placed]]:
    batches = [batch_of(side.recording) for side in sides]
    sizes = [batch.samples for batch in batches if not isinstance(batch, Missing)]
    differ = len(sizes) == len(sides) and len(set(sizes)) > 1
    used = sizes if differ else [1] * len(sides)
    row = [
        Placed(side, value, side.durations / size, {regime: side.ns[regime] / size for regime in REGIMES})
        for side, value, size in zip(sides, values, used, strict=True)
    ]
    return ("sample" if differ else "step"), row


def _point(one: Placed, before: Placed, first: Placed) -> pb.RunPoint:
    low, high = mean_interval(one.times)
    return pb.RunPoint(
        run=one.side.name,
        value=one.value,
        ns=one.mean,
        low_ns=low,
        high_ns=high,
        speedup=first.mean / one.mean,
        regime=one.side.report.verdict.regime,
        steps=len(one.times),
        by_regime=waterfall(before.ns, one.ns),
    )


def _unlike(row: list[Placed]) -> list[str]:
    """Runs that hardly do the work of the one before them."""
    pairs = [(before, one, likeness(before.side.recording, one.side.recording)) for before, one in pairwise(row)]
    return [
        f"{one.side.name} hardly does the same work as {before.side.name}: {share_text(alike)} of the operators agree."
        for before, one, alike in pairs
        if alike < LIKE
    ]


def _sweep(told: pb.RunSeries, row: list[Placed]) -> str:
    best = min(row, key=lambda one: one.mean)
    said = {
        "varies": told.varies,
        "per": told.per,
        "first": row[0].value,
        "last": row[-1].value,
        "from": duration_text(row[0].mean),
        "to": duration_text(row[-1].mean),
        "best": duration_text(best.mean),
        "at": best.value,
    }
    headline = series_words("sweep").safe_substitute(said)
    if row[0].mean / best.mean < 1 / (1 - LEFT_AT_KNEE):
        return headline + series_words("flat").safe_substitute()
    if any(_number(one.value) is None for one in row):
        return headline
    knee = next(one for one in row if best.mean / one.mean >= 1 - LEFT_AT_KNEE)
    if knee is row[-1]:
        return headline + series_words("open").safe_substitute(said)
    because = series_words("knee").safe_substitute(said, value=knee.value, ns=duration_text(knee.mean))
    told.knee.MergeFrom(pb.Knee(run=knee.side.name, value=knee.value, because=because))
    return headline


def _history(told: pb.RunSeries, row: list[Placed]) -> str:
    times = {"from": duration_text(row[0].mean), "to": duration_text(row[-1].mean)}
    headline = series_words("row").safe_substitute(times, per=told.per, count=len(row))
    found = turn_of([one.side.name for one in row], [one.times for one in row], [one.ns for one in row], told.per)
    if found is None:
        return headline + series_words("steady").safe_substitute(least="5 %")
    told.turn.MergeFrom(found)
    return headline + series_words("slower").safe_substitute(turn=found.because)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
