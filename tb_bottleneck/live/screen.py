"""The state of live jobs in a terminal: rich renderables, and plain lines."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tb_bottleneck.base.units import duration_text
from tb_bottleneck.live.rank_states import LiveJob, Rank, RankState, typical
from tb_bottleneck.live.state import LiveState

MAX_JOBS, MAX_ROWS = 4, 32
COLUMNS = 48
STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan", "none": "green"}
PARTS = (
    ("data", "loader_wait", "magenta"),
    ("forward", "forward", "blue"),
    ("backward", "backward", "green"),
    ("optimizer", "optimizer", "cyan"),
)
_FIGURES = re.compile(r"[\d.,]+")
_SHADES = ("green", "green4", "yellow3", "dark_orange", "red")
_LIMITS = (1.05, 1.15, 1.4, 2.0)
"""The limits between the shades of a heat map, as multiples of the median of all cells."""
_ALARMS = (RankState.HANGS, RankState.STOPPED, RankState.KILLED, RankState.SILENT, RankState.FAILED)


def screen(states: Sequence[LiveState], logdir: str) -> RenderableType:
    """Returns the whole screen with at most MAX_JOBS jobs. `logdir` is shown if there are no jobs."""
    if not states:
        return Text(
            f"No monitored training under {logdir} writes heartbeats now. Start one: tb-bottleneck run --logdir "
            f"{logdir} train.py. This page shows it within a few seconds."
        )
    panels: list[RenderableType] = [_panel(state) for state in states[:MAX_JOBS]]
    if len(states) > MAX_JOBS:
        panels.append(Text(f"{len(states) - MAX_JOBS} more jobs; give the folder of one of them to see it.", "dim"))
    return Group(*panels, Text(f"{time.strftime('%H:%M:%S')}  q quits", "dim"))


def lines(states: Sequence[LiveState]) -> Iterator[str]:
    """Yields one line of text per job."""
    for state in states:
        job, verdict = state.job, state.verdict
        step = typical(rank.beat.recent.get("wall", 0.0) for rank in job.ranks)
        times = f"step {job.step}, {duration_text(step)} per step" if step else "measuring"
        severity = "ok" if verdict.severity == "none" else verdict.severity
        said = f"{severity}: {verdict.headline} {verdict.fix}".rstrip()
        yield f"{time.strftime('%H:%M:%S')} {job.run}: {times}{f', {said}' if step or severity != 'ok' else ''}"


class ChangedLines:
    """The lines of jobs whose severity or verdict changed since the last call, for output that is not a terminal."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, str, bool]] = {}

    def of(self, states: Sequence[LiveState]) -> list[str]:
        """Returns the lines of the jobs in `states` that began or changed. Figures alone are no change; jobs that were
        over from the first look on are left out."""
        changed = []
        for state in states:
            if state.job.is_over and state.job.run not in self._last:
                continue
            begun = any(rank.beat.recent.get("wall") for rank in state.job.ranks)
            now = state.verdict.severity, _FIGURES.sub("", state.verdict.headline), begun
            if self._last.get(state.job.run) != now:
                changed.append(state)
            self._last[state.job.run] = now
        return list(lines(changed))


def _panel(state: LiveState) -> RenderableType:
    job, verdict = state.job, state.verdict
    style = STYLES[verdict.severity]
    parts: list[RenderableType] = [Text(verdict.headline, style)]
    if verdict.fix:
        parts.append(Text(verdict.fix))
    parts.append(Text(" · ".join(_facts(job)), "dim"))
    account = _account(job.ranks)
    if account is not None:
        parts.append(account)
    parts.append(_heat_map(job))
    for rank in job.ranks:
        if rank.number in verdict.ranks and rank.beat.stacks:
            parts.append(_stack(rank))
            break
    ranks = f", {job.world_size} ranks" if job.world_size > 1 else ""
    return Panel(Group(*parts), title=Text(f"{job.run}{ranks}"), title_align="left", border_style=style)


def _facts(job: LiveJob) -> Iterator[str]:
    recents = [rank.beat.recent for rank in job.ranks if rank.beat.recent.get("wall")]
    yield f"step {job.step}"
    if recents:
        wall = typical(recent["wall"] for recent in recents)
        yield f"{duration_text(wall)} per step"
        samples = sum(recent.get("samples", 0.0) for recent in recents)
        if samples and wall:
            yield f"{samples / (wall / 1e9):,.0f} samples/s"
    used = [(rank.beat.device.get("memory_used", 0.0), rank.beat.device.get("memory_total", 0.0)) for rank in job.ranks]
    fullest = max(used, key=lambda pair: pair[0] / pair[1] if pair[1] else 0.0)
    if fullest[1]:
        yield f"device memory {fullest[0] / 2**30:.1f} of {fullest[1] / 2**30:.1f} GiB"
    if job.missing:
        yield f"no heartbeat of {len(job.missing)} of {job.world_size} ranks (no monitor, or not started)"
    restarts = max(rank.restarts for rank in job.ranks)
    if restarts:
        yield f"restarted {restarts} times"


def _account(ranks: Sequence[Rank]) -> RenderableType | None:
    """Returns a bar that shows the parts of the step in the last minute, as means over the ranks; None if no steps are
    known."""
    recents = [rank.beat.recent for rank in ranks if rank.beat.recent.get("wall")]
    if not recents:
        return None
    wall = sum(recent["wall"] for recent in recents)
    shares = [(label, sum(recent.get(name, 0.0) for recent in recents) / wall, style) for label, name, style in PARTS]
    shares.append(("other", max(1.0 - sum(share for _, share, _ in shares), 0.0), "white"))
    bar, legend = Text(), Text()
    for label, share, style in shares:
        bar.append("█" * round(share * COLUMNS), style)
        legend.append(f" {label} {100 * share:.0f} % ", style)
    return Group(bar, legend)


def _heat_map(job: LiveJob) -> RenderableType:
    """Returns a row per rank: its state, its step, and its own host time over the run (time of a step without the
    backward pass and without the wait for the loader). For a single process, the step time replaces the own host
    time."""
    column = 4 if job.world_size > 1 else 2
    cells = {rank.number: [_cell(row[column]) for row in rank.beat.history] for rank in job.ranks}
    usual = typical(value for row in cells.values() for value in row if value)
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    named = "own time" if job.world_size > 1 else "step time"
    for title in ("rank", "state", "step", f"{named} over the run", "now"):
        table.add_column(Text(title, "dim"), no_wrap=True, justify="right" if title in ("rank", "step") else "left")
    for rank in _worst_first(job.ranks):
        recent = [value for value in cells[rank.number] if value][-1:]
        table.add_row(
            str(rank.number),
            Text(rank.state.value, "bold red" if rank.state in _ALARMS else ""),
            str(rank.beat.step),
            _cells(cells[rank.number], usual),
            duration_text(recent[0]) if recent else "",
        )
    if len(job.ranks) > MAX_ROWS:
        table.caption = f"{len(job.ranks) - MAX_ROWS} more ranks"
    return table


def _cell(value: float | int | None) -> float:
    return 0.0 if value is None else float(value)


def _worst_first(ranks: Iterable[Rank]) -> list[Rank]:
    """Returns at most MAX_ROWS ranks in ascending order. If there are more ranks, those with an alarm are chosen
    first."""
    ordered = sorted(ranks, key=lambda rank: (rank.state not in _ALARMS, rank.number))
    return sorted(islice(ordered, MAX_ROWS), key=lambda rank: rank.number)


def _cells(values: Sequence[float], usual: float) -> Text:
    size = -(-len(values) // COLUMNS) or 1
    text = Text()
    for start in range(0, len(values), size):
        value = max(values[start : start + size])
        shade = sum(value > limit * usual for limit in _LIMITS)
        text.append("■" if value else "·", _SHADES[shade] if value else "dim")
    return text


def _stack(rank: Rank) -> RenderableType:
    stack = next((each for each in rank.beat.stacks if each.training), rank.beat.stacks[0])
    text = Text(f"Stack of rank {rank.number}, innermost first:\n", "dim")
    text.append("\n".join(f"  {file}:{line} {name}" for file, line, name in stack.frames[:8]))
    return text
