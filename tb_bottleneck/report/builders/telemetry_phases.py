"""The run over time: the phases of the run, and the parts of its wall time.

A phase is a part of the run in which one regime (kind of time) had most of the recoverable time (the time that a fix
could save).

Signal: the recoverable time of each regime, window by window. Formula: a phase begins when a regime leads in two
consecutive windows (time intervals of telemetry) with at least a tenth of the time. The phase lasts while the regime
has at least seven hundredths of the time, and no other regime has at least five hundredths more than it. Source: the
tenth is traceml's warning level. The two windows and the gap between the levels for begin and end prevent frequent
changes if a regime is close to the threshold (Schmitt trigger).
"""

from collections.abc import Iterator
from functools import cache
from itertools import groupby

import numpy as np
import numpy.typing as npt

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.bottlenecks.compute.rule import OVERSUBSCRIBED
from tb_bottleneck.bottlenecks.gpu_unused.telemetry_rule import UNUSED
from tb_bottleneck.bottlenecks.host.telemetry_rule import HIGH_CORE_PRESSURE, HIGH_RUN_QUEUE
from tb_bottleneck.bottlenecks.interruption.run_time import Part, RunTime
from tb_bottleneck.bottlenecks.judge import CRITICAL, WARNING
from tb_bottleneck.bottlenecks.recoverable import (
    contention_by_window,
    contention_limit,
    idle_gpu_windows,
    recoverable_by_window,
    underfilled_by_window,
)
from tb_bottleneck.bottlenecks.rule_types import WORTH_RECOVERING
from tb_bottleneck.bottlenecks.underfilled.rule import FIRES_AT, RECOVERABLE_OF_UNDERFILLED
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measures.telemetry.host import torch_threads_per_core
from tb_bottleneck.report.builders.report_builder import Phase
from tb_bottleneck.schema import bottleneck_pb2 as pb

Floats = npt.NDArray[np.float64]

# A regime, and True if its time is recoverable; None if nothing is known.
Owner = tuple[Regime, bool] | None

PHASE_LASTS_ABOVE = 0.07
LEAD_TO_TAKE_OVER = 0.05
CONFIRMING_WINDOWS = 2


def phases_of(testimony: TelemetryRecording) -> tuple[Phase, ...]:
    """Returns the phases of the run in order of time. Windows without data belong to no phase."""
    stakes = recoverable_by_window(testimony)
    stakes[Regime.COMPUTE] = stakes[Regime.COMPUTE] + contention_by_window(
        testimony, HIGH_CORE_PRESSURE, HIGH_RUN_QUEUE
    )
    stakes[Regime.UNDERFILLED] = underfilled_by_window(testimony, FIRES_AT, RECOVERABLE_OF_UNDERFILLED)
    bound = _bound_by(testimony)
    unused = idle_gpu_windows(testimony, UNUSED)
    owner: list[Owner] = []
    state: Regime | None = None
    for window in range(len(testimony.windows)):
        now = {regime: float(values[window]) for regime, values in stakes.items()}
        leader = Regime.GPU_UNUSED if unused[window] else _leader(now, state)
        # Without a leading regime, the owner is the regime of the device's own work. It changes without hysteresis,
        # except for the confirmation below.
        state = leader
        current = (leader, True) if leader is not None else (bound[window], False)
        owner.append(None if np.isnan(now[Regime.INPUT]) else current)
    return tuple(_phases(testimony, _confirmed(owner), stakes))


def _leader(now: dict[Regime, float], state: Regime | None) -> Regime | None:
    """Returns the leading regime of a window; None if no regime takes enough time. `now` has the fraction of the
    window's time by regime. `state` is the leader of the window before."""
    best = max(now, key=lambda regime: now[regime] if now[regime] == now[regime] else -1.0)
    if state is not None and now.get(state, 0.0) >= PHASE_LASTS_ABOVE and now[best] < now[state] + LEAD_TO_TAKE_OVER:
        return state
    return best if now[best] >= WORTH_RECOVERING else None


def _bound_by(testimony: TelemetryRecording) -> list[Regime]:
    """Returns for each window the device regime with the largest share, or `unexplained` if the share of unexplained
    time is larger."""
    shares = testimony.accounts.shares
    names = (*DEVICE_REGIMES, Regime.UNEXPLAINED)
    leads = np.argmax(np.array([np.nan_to_num(shares[name]) for name in names]), axis=0)
    return [names[int(lead)] for lead in leads]


def _confirmed(owner: list[Owner]) -> list[Owner]:
    """Returns `owner`, the leading regime of each window, without changes that last for fewer than CONFIRMING_WINDOWS
    windows."""
    confirmed = list(owner)
    last: Owner = None
    for at, now in enumerate(owner):
        lasts = owner[at : at + CONFIRMING_WINDOWS] == [now] * CONFIRMING_WINDOWS
        if last is not None and now is not None and now != last and not lasts:
            confirmed[at] = last
        last = confirmed[at]
    return confirmed


def _phases(testimony: TelemetryRecording, owner: list[Owner], stakes: dict[Regime, Floats]) -> Iterator[Phase]:
    edges = testimony.windows.grid.edges
    first = 0
    for now, group in groupby(owner):
        after = first + len(list(group))
        if now is not None:
            share, severity = _cost(testimony, now, stakes, first, after)
            yield Phase(int(edges[first]), int(edges[after]), now[0], share, severity)
        first = after


def _cost(
    testimony: TelemetryRecording, owner: tuple[Regime, bool], stakes: dict[Regime, Floats], first: int, after: int
) -> tuple[float, str]:
    """Returns the mean fraction of the time that a regime takes in the windows `first` to `after` - 1, and the severity
    of this phase. `owner` is the regime, and whether its time is recoverable. `stakes` has the recoverable fraction of
    each window by regime."""
    regime, recoverable = owner
    if regime == Regime.GPU_UNUSED:
        return 1.0, "critical"
    if not recoverable:
        return _mean(testimony.accounts.shares[regime][first:after]), "none"
    lost = _mean(stakes[regime][first:after])
    if lost < WARNING or not _has_gain(testimony, regime):
        return lost, "info"
    # The time that a CPU loses to other threads is only known as an upper bound with low confidence, so it is never
    # critical.
    contention = regime == Regime.COMPUTE and not testimony.on_device
    return lost, "critical" if lost >= CRITICAL and not contention else "warning"


def _has_gain(testimony: TelemetryRecording, regime: Regime) -> bool:
    """Returns True if the report states a gain for the causes of this regime (report/builders/gains.py)."""
    if regime == Regime.COMPUTE and not testimony.on_device:
        threads = torch_threads_per_core(testimony)
        oversubscribed = isinstance(threads, Measure) and threads.value > OVERSUBSCRIBED
        return oversubscribed or isinstance(contention_limit(testimony), Measure)
    return regime not in (Regime.UNEXPLAINED, Regime.UNDERFILLED)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


_DECIMALS = 4


def run_time_of(account: RunTime | None) -> pb.RunTime | None:
    """Returns the parts of a run's wall time (what the time was spent on), as a message without empty parts; None if
    `account` is None."""
    if account is None:
        return None
    length = np.maximum(account.bins.sum(axis=0), 1.0)
    shares = np.round(account.bins / length, _DECIMALS)
    return pb.RunTime(
        begin_ns=account.begin,
        elapsed_ns=account.elapsed,
        parts=[
            pb.RunPart(
                kind=part,
                title=title_of(part),
                meaning=_texts()[part]["meaning"],
                ns=account.ns[part],
                share=account.share(part),
                bins=shares[row].tolist(),
            )
            for row, part in enumerate(Part)
            if account.ns[part] > 0
        ],
    )


def title_of(part: Part) -> str:
    """Returns the name of a part of a run's wall time, as users see it."""
    return _texts()[part]["title"]


@cache
def _texts() -> dict[str, dict[str, str]]:
    return {name: table for name, table in load("run_time.toml").items() if isinstance(table, dict)}
