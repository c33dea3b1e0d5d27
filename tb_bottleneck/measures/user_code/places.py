"""Finds the places in the user's program that run at given times of host threads: the innermost frame outside installed
packages.

A time in the backward pass belongs to the line that called the forward operator. A time on a thread without frames of
the user's program, such as autograd's, belongs to the line in which the main thread waits. Without recorded frames, the
place is a record_function block of the program.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.measures.user_code.frames import (
    already_running,
    ancestors,
    blocks_by_thread,
    frame_text,
    frames_by_thread,
    is_user_function,
    marks_by_thread,
)
from tb_bottleneck.measures.user_code.line_costs import LEADS, costs_of_lines
from tb_bottleneck.measures.user_code.modules import forward_of, module_of
from tb_bottleneck.trace.frames import frame_parts, is_own_frame, merged_module, module_name, short_frame
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import MODULE
from tb_bottleneck.trace.table import Bools, Floats, Ints, Table, column

MAX_PLACES = 5
LEAST_PART = 0.10
"""A line with a smaller share of its function's cost is not named. A tenth, as for the regimes. A choice."""
MAX_LINES = 3
SCRIPT = "<module>"
# Most frames of the user's program in a call chain: those nearest to the sample. Of the packages' frames below them,
# the chain has the first and the innermost one.
MAX_CALLERS = 4


@dataclass(frozen=True, eq=False)
class HostTimes(Table):
    """Samples of host threads: one row has a thread, a time, and the cost that belongs to this time."""

    thread: Ints = column("row of threads", "-1 if the thread is not known")
    time: Ints = column("ns", "on the recording's clock")
    cost: Floats = column("ns", "or any other unit")


@dataclass(frozen=True)
class LineShare:
    """A line, and its share (0 to 1) of the cost of all samples."""

    line: int
    share: float


@dataclass(frozen=True)
class Place:
    """A line of the user's program, a record_function block, or only a module. All texts are untrusted.

    `share` is the share (0 to 1) of the cost of all samples. `line` is the first line of the function, or the line that
    runs if `exact` is True; 0 if the line is not known, as for a function that already ran when the recording began.
    `module` may stand for several modules that differ in numbers (`Linear_*`). `block` is the name of the
    record_function block. `chain` is the call chain of a typical sample, outermost first.
    """

    share: float
    file: str = ""
    line: int = 0
    function: str = ""
    module: str = ""
    block: str = ""
    chain: tuple[str, ...] = ()
    exact: bool = False
    file_bytes: int = 0
    file_time_us: int = 0
    """Time of modification of the file in us since 1970. `file_bytes` is the size of the file. Both are as recorded; 0
    if not known."""

    hottest_line: int = 0
    hottest_share: float = 0.0
    """Share of the costliest line, `hottest_line`, of the cost of all samples. Both are 0 if the line is not known."""

    other_lines: tuple[LineShare, ...] = ()
    """The next costliest lines of the function."""


@dataclass(frozen=True, eq=False)
class Located(Table):
    """The events that enclose each sample: one row per sample. Each column has an event row, or -1."""

    innermost: Ints = column("row of events", "the innermost Python frame")
    user: Ints = column("row of events", "the user's innermost frame")
    module: Ints = column("row of events", "the innermost module")
    block: Ints = column("row of events", "the innermost record_function block")
    called: Ints = column("row of events", "the Python frame that the user's innermost frame calls")


def located(recording: Recording, moments: HostTimes) -> Located:
    """Returns the events that enclose each of `moments`, which are samples of host threads. The module's docstring
    describes the backward pass and threads without frames of the user's program."""
    events = recording.trace.events
    threads, times = moments.thread, moments.time
    own = _enclosing(recording, threads, times)
    backward, forward = forward_of(recording, threads, times)
    inside_backward = (backward >= 0) & (own.user >= 0) & (events.start[own.user] >= events.start[backward])
    linked: Bools = (forward >= 0) & ~inside_backward
    by_forward = _enclosing(recording, events.thread[forward], events.start[forward])
    found = _chosen(linked, by_forward, own)
    lost = (found.user < 0) & (found.block < 0) & (threads >= 0)
    main = np.full(len(times), -1 if recording.host.main_thread is None else recording.host.main_thread)
    return _chosen(lost, _enclosing(recording, main, times), found)


def places_of(recording: Recording, moments: HostTimes) -> tuple[Place, ...]:
    """Returns the places of `moments`, which are samples of host threads: the MAX_PLACES with the highest cost,
    costliest first."""
    return places_at(recording, located(recording, moments), moments.cost)


def places_at(recording: Recording, found: Located, cost: Floats) -> tuple[Place, ...]:
    """Returns what places_of returns for samples with the costs `cost`, which `found` has located."""
    names, name_of = recording.trace.names, recording.trace.events.name
    total = float(cost.sum())
    # Functions, blocks and modules never share a name: the name of a function has the form `file.py(line): function`,
    # and no block has the prefix of modules.
    place = np.where(found.user >= 0, found.user, np.where(found.block >= 0, found.block, found.module))
    known = np.flatnonzero(place >= 0)
    if not len(known) or total <= 0:
        return ()
    distinct, group = np.unique(name_of[place[known]], return_inverse=True)
    # Layers whose names differ only in numbers are one place.
    merged = [merged_module(names[name]) if names[name].startswith(MODULE) else names[name] for name in distinct]
    keys, group_of = np.unique(np.array(merged, object), return_inverse=True)
    group = group_of[group]
    costs = np.bincount(group, weights=cost[known])
    places = []
    for index in np.argsort(-costs, kind="stable")[:MAX_PLACES].tolist():
        own = known[group == index]
        name, share = names[name_of[place[own[0]]]], float(costs[index]) / total
        if name.startswith(MODULE):
            one = len(set(name_of[place[own]].tolist())) == 1
            places.append(Place(share, module=cut(module_name(name) if one else str(keys[index]))))
            continue
        module = module_of(recording, found.module[own], cost[own])
        if found.user[own[0]] < 0:
            places.append(Place(share, module=module, block=cut(name)))
            continue
        places.append(_function(recording, found.take(own), cost[own], share, module))
    return _merged(places)


def _function(recording: Recording, found: Located, cost: Floats, share: float, module: str) -> Place:
    """Returns the place of samples in one function: the line with at least LEADS of the cost, or else the whole
    function.

    `found` has the events that enclose each sample, and `cost` the cost of each sample. `share` is the share of these
    samples in the cost of all samples. `module` is the name of the module, or empty.
    """
    trace, known = recording.trace, recording.trace.call_lines
    file, line, function = frame_parts(trace.names[trace.events.name[found.user[0]]])
    if already_running(recording)[found.user].all():
        line = 0
    costs = costs_of_lines(recording, found.called, cost, known.samples_of(file, function, line))
    costly = sorted(((part, number) for number, part in costs.items() if part >= LEAST_PART), reverse=True)[:MAX_LINES]
    part, running = costly[0] if costly else (0.0, 0)
    others = tuple(LineShare(number, share * other) for other, number in costly[1:])
    size, changed = known.files.get(file, (0, 0))
    at_line = np.flatnonzero(known.of(found.called) == running) if running else np.empty(0, np.intp)
    typical = found.take(at_line) if len(at_line) else found
    chain = _chain(recording, typical.innermost, typical.user, running)
    whole = Place(
        share, cut(file), line, cut(function), module, "", chain, False, size, changed // NS_PER_US, other_lines=others
    )
    if part >= LEADS or (function == SCRIPT and running):
        return replace(whole, share=share * part, line=running, exact=True)
    return replace(whole, hottest_line=running, hottest_share=share * part)


def _merged(places: Sequence[Place]) -> tuple[Place, ...]:
    """Returns `places`, costliest first, with places of the same line merged. One line can have several places, because
    a function can be recorded under several names."""
    merged: dict[object, Place] = {}
    for number, place in enumerate(places):
        key = (place.file, place.line, place.function) if place.exact else number
        known = merged.get(key)
        merged[key] = place if known is None else _joined(known, place)
    return tuple(sorted(merged.values(), key=lambda place: -place.share))


def _joined(one: Place, other: Place) -> Place:
    """Returns one place for two places with the same line."""
    shares = Counter({entry.line: entry.share for entry in one.other_lines})
    shares.update({entry.line: entry.share for entry in other.other_lines})
    others = tuple(LineShare(line, share) for line, share in shares.most_common(MAX_LINES - 1))
    return replace(one, share=one.share + other.share, other_lines=others)


def _is_hidden(frame: str) -> bool:
    """Returns True for the name of a frame that a call chain does not show: a module, or a hook of the monitor around a
    call."""
    return frame.startswith(MODULE) or is_own_frame(frame)


def _enclosing(recording: Recording, threads: Ints, times: Ints) -> Located:
    """Returns the events that enclose each pair (threads[i], times[i]) on that thread. `times` are in ns."""
    frames, blocks = frames_by_thread(recording), blocks_by_thread(recording)
    marks = marks_by_thread(recording)
    columns = np.full((5, len(times)), -1, np.int64)
    for thread in distinct_values(threads).tolist():
        own = np.flatnonzero(threads == thread)
        of_frames, of_blocks = frames.of(thread, times[own]), blocks.of(thread, times[own])
        if of_frames is not None:
            columns[:3, own] = of_frames.at(times[own])[:3]
            columns[4, own] = of_frames.called(times[own])
        if of_blocks is not None:
            (columns[3, own],) = of_blocks.at(times[own])
        of_marks = marks.of(thread, times[own]) if marks is not None else None
        if of_marks is not None:
            (columns[2, own],) = of_marks.at(times[own])
    return Located(*columns)


def _chosen(mask: Bools, first: Located, second: Located) -> Located:
    """Returns the rows of `first` where `mask` is True, otherwise those of `second`."""
    pairs = zip(
        (first.innermost, first.user, first.module, first.block, first.called),
        (second.innermost, second.user, second.module, second.block, second.called),
        strict=True,
    )
    return Located(*(np.where(mask, a, b) for a, b in pairs))


def _chain(recording: Recording, innermost: Ints, user: Ints, line: int) -> tuple[str, ...]:
    """Returns the shortened call chain of the most frequent innermost frame, outermost first.

    `innermost` and `user` have for each sample the event row of the innermost frame, and of the innermost frame of the
    user's program. `line` is the line that runs in the user's frame, or 0 if the line is not known.
    """
    trace = recording.trace
    frames = [short_frame(trace.names[name]) for name in trace.events.name[innermost].tolist()]
    typical = frames.index(Counter(frames).most_common(1)[0][0])
    row = int(innermost[typical])
    frames_of = frames_by_thread(recording).of(int(trace.events.thread[row]), trace.events.start[[row]])
    if frames_of is None:
        return ()
    chain = ancestors(frames_of, row)
    if int(user[typical]) not in chain:
        return ()
    at = chain.index(int(user[typical]))
    name_of = trace.events.name
    callers = [row for row in chain[at::-1] if is_user_function(trace.names[name_of[row]])][:MAX_CALLERS]
    called = [row for row in chain[at + 1 :] if not _is_hidden(trace.names[name_of[row]])]
    rows = (*callers[::-1], *called[:1], *called[1:][-1:])
    below = dict(pairwise(chain))
    lines = trace.call_lines.of(np.array([below.get(row, -1) if row in callers else -1 for row in rows], np.int64))
    lines[: len(callers)][-1:] = line or lines[: len(callers)][-1:]
    texts = (frame_text(recording, row, number) for row, number in zip(rows, lines.tolist(), strict=True))
    return tuple(cut(short_frame(text)) for text in texts)
