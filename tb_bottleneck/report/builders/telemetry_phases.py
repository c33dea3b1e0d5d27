"""The stretches of a run in which one regime owned most of what could be had back: when it became slow, and why.

Signal: what each regime could give back, window by window.
Formula: a stretch begins where a regime leads in two windows that follow one another, with a tenth of the time or more;
it lasts while that regime keeps seven hundredths and no other has five more.
Source: the tenth is traceml's warning level; the two windows and the gap between the two levels keep a regime that sits
at the threshold from flickering (Schmitt trigger).
"""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.telemetry.recoverable import contention_by_window, idle_gpu_windows, recoverable_by_window
from tb_bottleneck.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.regimes.judge import CRITICAL, WARNING, WORTH_RECOVERING
from tb_bottleneck.regimes.telemetry.gpu_unused import UNUSED
from tb_bottleneck.regimes.telemetry.host import HIGH_CORE_PRESSURE, HIGH_RUN_QUEUE
from tb_bottleneck.report.builders.report_builder import Phase

Floats = npt.NDArray[np.float64]

# A regime, and whether what it owns could be had back; None where nothing is known.
Owner = tuple[Regime, bool] | None

KEPT_ABOVE = 0.07
AHEAD = 0.05
CONFIRMED_BY = 2  # windows


def phases_of(testimony: TelemetryRecording) -> tuple[Phase, ...]:
    """The stretches in order of time; windows of which nothing is known belong to none."""
    stakes = recoverable_by_window(testimony)
    stakes[Regime.COMPUTE] = stakes[Regime.COMPUTE] + contention_by_window(
        testimony, HIGH_CORE_PRESSURE, HIGH_RUN_QUEUE
    )
    bound = _bound_by(testimony)
    unused = idle_gpu_windows(testimony, UNUSED)
    owner: list[Owner] = []
    state: Regime | None = None
    for window in range(len(testimony.windows)):
        now = {regime: float(values[window]) for regime, values in stakes.items()}
        leader = Regime.GPU_UNUSED if unused[window] else _leader(now, state)
        # Also a device that works has a name; which one changes with no hysteresis but the confirmation below.
        state = leader
        told = (leader, True) if leader is not None else (bound[window], False)
        owner.append(None if np.isnan(now[Regime.INPUT]) else told)
    return tuple(_phases(testimony, _confirmed(owner), stakes))


def _leader(now: dict[Regime, float], state: Regime | None) -> Regime | None:
    """The regime that leads in this window, given the one that led before; None where none is worth it."""
    best = max(now, key=lambda regime: now[regime] if now[regime] == now[regime] else -1.0)
    if state is not None and state in now and now[state] >= KEPT_ABOVE and now[best] < now[state] + AHEAD:
        return state
    return best if now[best] >= WORTH_RECOVERING else None


def _bound_by(testimony: TelemetryRecording) -> list[Regime]:
    """For each window the device regime that leads, or `unexplained` where none is told."""
    shares = testimony.accounts.shares
    names = (*DEVICE_REGIMES, Regime.UNEXPLAINED)
    leads = np.argmax(np.array([np.nan_to_num(shares[name]) for name in names]), axis=0)
    return [names[int(lead)] for lead in leads]


def _confirmed(owner: list[Owner]) -> list[Owner]:
    """The owners, where a change that lasts for less than CONFIRMED_BY windows is none."""
    told = list(owner)
    last: Owner = None
    for at, now in enumerate(owner):
        lasts = owner[at : at + CONFIRMED_BY] == [now] * CONFIRMED_BY
        if last is not None and now is not None and now != last and not lasts:
            told[at] = last
        last = told[at]
    return told


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
    """Share of the stretch, and severity."""
    regime, could_be_had_back = owner
    if regime == Regime.GPU_UNUSED:
        return 1.0, "critical"
    if not could_be_had_back:
        return _mean(testimony.accounts.shares[regime][first:after]), "none"
    lost = _mean(stakes[regime][first:after])
    return lost, "critical" if lost >= CRITICAL else "warning" if lost >= WARNING else "info"


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0
