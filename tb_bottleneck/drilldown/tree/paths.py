"""The path of each event on the host: the modules, lines, operators or ranges that enclose the event.

An event of the backward pass gets the path of the forward operator with the same sequence number
(measures/user_code/modules.py). If the path consists of record_function ranges, this holds only if the range that
encloses the backward event also encloses the forward operator. Otherwise, the path is that of the enclosing range.
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.cpu_collectives import HOST_BACKEND_PREFIXES
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.attribution.training_detection import OPTIMIZER
from tb_bottleneck.base.measure import Record
from tb_bottleneck.drilldown.tree.host_rows import ROOT, Forest, HostRows, Labels, depths
from tb_bottleneck.measures.user_code.frames import already_running, is_torch_block, is_user_function
from tb_bottleneck.measures.user_code.modules import forward_of
from tb_bottleneck.trace.forward_links import ACCUMULATION, BACKWARD, is_autograd_node
from tb_bottleneck.trace.frames import frame_parts, frame_without_line, merged_module, module_name, short_frame
from tb_bottleneck.trace.kernel_names import passing_names
from tb_bottleneck.trace.kinds import MODULE, Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows
from tb_bottleneck.trace.trace import Trace

BY = ("module", "line", "operator", "range", "kernel", "communication")
"""The kinds of nodes by which a tree can group the time."""

FLAT = ("kernel", "communication")
"""Groupings without paths: each kernel, or each collective and message, is a node below the root."""

MAX_DEPTH = 200
"""Largest depth of a path. Events at a larger depth belong to the node at this depth."""

MAX_TEXT = 300
"""Largest number of characters of a label. Names in a file can have any length."""

_ENGINE = f"{BACKWARD}: "
_PHASES = (OPTIMIZER, "enumerate(DataLoader", f"{_ENGINE}{ACCUMULATION}")
_NO_OPERATORS = (*_PHASES, BACKWARD, MODULE, "ProfilerStep#")
_COMPILED = ("## Call CompiledFxGraph", "Torch-Compiled Region")


class Paths(Record, frozen=True, eq=False):
    """The tree node of each event. `node` is ROOT if nothing encloses the event.

    A carrier is an event that gives a node its name, such as the call of a module; `carriers` has the rows of these
    events. `operator` is the innermost operator that encloses the event inside the carrier of the event's node, or -1.
    `backward` is True for events of the backward pass. `forest` has the nodes, and `labels` the names of the nodes.
    """

    forest: Forest
    labels: Labels
    node: Ints
    operator: Ints
    backward: Bools
    carriers: Rows


def paths_of(recording: Recording, host: HostRows, by: str, merged: bool = False) -> Paths:
    """Returns the paths of all events on the host. `by` is one of BY: the kind of events that the paths consist of.

    If `merged` is True, modules whose names differ only in numbers, such as the layers of a stack, share one node.
    """
    trace, labels = recording.trace, Labels()
    forest = Forest(labels.add("root", ""))
    roots = is_autograd_node(trace)
    label = _carrier_labels(recording, by, labels, np.flatnonzero(roots), merged)
    if by == "line":
        _put_call_lines(trace, host, label, labels)
    if by == "operator":  # a node of autograd has one operator with its own name
        label[(label[host.parent] == label) & (host.parent >= 0)] = -1
    is_carrier = label >= 0
    forward = _forward(recording, host, np.flatnonzero(roots), is_carrier if by == "range" else None)
    stop = host.nearest(is_carrier | (forward >= 0))
    up = _carriers_above(host, stop, forward, label)
    carriers = np.flatnonzero(is_carrier)
    node = _nodes(forest, label[carriers], np.searchsorted(carriers, up[carriers]), up[carriers] >= 0)
    node_of = np.append(np.full(len(label), ROOT), ROOT)  # and of row -1
    node_of[carriers] = node
    operator = host.nearest(operator_rows(trace))
    return Paths(
        forest=forest,
        labels=labels,
        node=node_of[np.where(stop >= 0, np.where(is_carrier[stop], stop, up[stop]), -1)],
        # An operator that encloses the carrier does not tell what runs in the carrier.
        operator=np.where((operator > stop) & (by not in ("operator", *FLAT)), operator, -1),
        backward=host.nearest(roots) >= 0,
        carriers=carriers,
    )


def operator_rows(trace: Trace) -> Bools:
    """Returns a mask of the events: True for operators, compiled regions and launches of CUDA graphs."""
    rows = _rows_with(trace, (Kind.CPU_OP,), lambda name: not name.startswith(_NO_OPERATORS))
    rows |= _rows_with(trace, (Kind.ANNOTATION,), lambda name: name.startswith(_COMPILED))
    return rows | _rows_with(trace, (Kind.CALL,), lambda name: "GraphLaunch" in name)


def has_marks(trace: Trace) -> bool:
    """Returns True if the monitor annotated the calls of modules. Its annotations have the modules' names in the
    model."""
    return bool(_rows_with(trace, (Kind.ANNOTATION,), lambda name: name.startswith(MODULE)).any())


def _carrier_labels(recording: Recording, by: str, labels: Labels, backward: Rows, merged: bool) -> Ints:
    """Returns for each event the number of its label in `labels` if it names a node of the tree (see Paths), otherwise
    -1.

    `by` is one of BY. `backward` has the event rows of the autograd nodes. If `merged` is True, modules whose names
    differ only in numbers get one label. New labels are added to `labels`.
    """
    trace = recording.trace
    label = np.full(len(trace.events), -1, np.int64)
    if by not in ("line", *FLAT):
        rows = _rows_with(trace, (Kind.ANNOTATION, Kind.CPU_OP), _is_phase)
        rows[backward] |= _rows_with(trace, (Kind.CPU_OP,), lambda name: name == ACCUMULATION)[backward]
        _put(trace, label, labels, "phase", rows & ~_with_closure(trace, backward), _phase_text)
    if by == "module":
        kind = Kind.ANNOTATION if has_marks(trace) else Kind.PYTHON
        rows = _rows_with(trace, (kind,), lambda name: name.startswith(MODULE))
        _put(trace, label, labels, "module", rows, merged_module if merged else module_name)
    elif by == "line":
        rows, running = _rows_with(trace, (Kind.PYTHON,), is_user_function), already_running(recording)
        _put(trace, label, labels, "line", rows & ~running, short_frame)
        _put(trace, label, labels, "line", rows & running, frame_without_line)
    elif by == "communication":  # of backends that have no kernels
        rows = _rows_with(trace, (Kind.CPU_OP, Kind.ANNOTATION), lambda name: name.startswith(HOST_BACKEND_PREFIXES))
        _put(trace, label, labels, "communication", rows, str)
    elif by == "operator":
        _put(trace, label, labels, "operator", _operators(trace), lambda name: name.removeprefix(_ENGINE))
    elif by == "range":
        rows = _rows_with(trace, (Kind.ANNOTATION,), _is_range)
        _put(trace, label, labels, "range", rows, str)
    return label


def _put_call_lines(trace: Trace, host: HostRows, label: Ints, labels: Labels) -> None:
    """Labels Python calls that a function of the program makes with the line that makes the call, if it is recorded.

    If the called function is itself a function of the program, it keeps its own label. Modifies `label`.
    """
    rows = np.flatnonzero((label < 0) & (trace.events.kind == Kind.PYTHON))
    line = trace.call_lines.of(rows)
    rows, line = rows[line > 0], line[line > 0]
    caller = host.nearest(label >= 0)[rows]
    rows, line, caller = rows[caller >= 0], line[caller >= 0], caller[caller >= 0]
    pairs, which = np.unique(np.stack((trace.events.name[caller], line)), axis=1, return_inverse=True)
    texts = [f"{frame_parts(trace.names[name])[0]}:{number}"[:MAX_TEXT] for name, number in pairs.T.tolist()]
    label[rows] = np.array([labels.add("line", text) for text in texts], np.int64)[which.reshape(-1)]


def _operators(trace: Trace) -> Bools:
    """Returns a mask of the operators and of the nodes of autograd."""
    rows = operator_rows(trace)
    rows |= _rows_with(trace, (Kind.CPU_OP,), lambda name: name.startswith(BACKWARD) and not _is_phase(name))
    return rows


def _is_phase(name: str) -> bool:
    return name.startswith(_PHASES)


def _with_closure(trace: Trace, backward: Rows) -> Bools:
    """Returns a mask of the events: True for events of the optimizer in which a backward pass starts. This happens if
    the optimizer runs a closure. `backward` has the event rows of the nodes of autograd."""
    events = trace.events
    rows = _rows_with(trace, (Kind.ANNOTATION, Kind.CPU_OP), lambda name: name.startswith(OPTIMIZER))
    own = np.flatnonzero(rows)
    first = np.searchsorted(events.start[backward], events.start[own])
    rows[own] = np.searchsorted(events.start[backward], events.end[own]) > first
    return rows


def _phase_text(name: str) -> str:
    return "gradient accumulation" if name.endswith(ACCUMULATION) else name


def _is_range(name: str) -> bool:
    return not is_torch_block(name) and not name.startswith(MODULE)


def _rows_with(trace: Trace, kinds: tuple[Kind, ...], test: Callable[[str], bool]) -> Bools:
    rows, mask = trace.rows(*kinds), np.zeros(len(trace.events), np.bool_)
    name = trace.events.name[rows]
    mask[rows] = passing_names(trace.names, name, test)[name]
    return mask


def _put(trace: Trace, label: Ints, labels: Labels, kind: str, mask: Bools, text: Callable[[str], str]) -> None:
    """Writes the labels of the events in `mask` to `label`. `text` is a function from an event's name to the label."""
    names, which = np.unique(trace.events.name[mask], return_inverse=True)
    numbers = np.array([labels.add(kind, text(trace.names[name])[:MAX_TEXT]) for name in names.tolist()], np.int64)
    if len(names):
        label[mask] = numbers[which.reshape(-1)]


def _forward(recording: Recording, host: HostRows, roots: Rows, ranges: Bools | None) -> Ints:
    """Returns for each event that is a node of autograd (in `roots`) the event row of the forward operator; -1 for
    other events.

    `ranges` is a mask of the record_function ranges, or None. A node of autograd inside a range also gets -1 if this
    range does not enclose the forward operator.
    """
    events, forward = recording.trace.events, np.full(len(recording.trace.events), -1, np.int64)
    if not len(roots):
        return forward
    forward[roots] = forward_of(recording, events.thread[roots], events.start[roots])[1]
    if ranges is not None:
        around = host.nearest(ranges)[roots]
        own = np.maximum(forward[roots], 0)
        inside = (around < 0) | ((events.start[around] <= events.start[own]) & (events.end[around] >= events.end[own]))
        forward[roots] = np.where(inside, forward[roots], -1)
    return forward


def _carriers_above(host: HostRows, stop: Ints, forward: Ints, label: Ints) -> Ints:
    """Returns for each carrier (event that gives a node its name) the next carrier above it, and for each node of
    autograd the carrier that encloses its forward operator; -1 if there is none.

    `stop` has for each event the nearest event around it that is a carrier or a node of autograd with a forward
    operator. `forward` is the result of `_forward`. `label` is -1 for events that are not carriers.
    """
    none = len(stop)
    stop_above = np.where(host.parent >= 0, stop[host.parent], -1)
    target = np.append(np.where(forward >= 0, stop[forward], stop_above), none)
    target[target < 0] = none
    passing = np.append((label < 0) & (forward >= 0), False)
    again = passing[stop_above] & (label >= 0) & (stop_above >= 0)
    while passing[target].any():
        target = np.where(passing[target], target[target], target)
    up = np.where(target[:-1] < none, target[:-1], -1)
    return _without_repetition(up, label, np.flatnonzero(again))


def _without_repetition(up: Ints, label: Ints, rows: Rows) -> Ints:
    """Returns a copy of `up` in which no carrier in `rows` is below a carrier with the same label.

    `up` has the next carrier above each event. If a carrier is below a carrier with the same label, it is moved below
    the parent of that carrier. This is needed because a checkpoint may recompute a module inside a node of autograd
    that belongs to the same module or to a module in it. Without the change, the module would appear below itself.
    """
    above, up = up[rows], up.copy()
    for _ in range(MAX_DEPTH):
        same = np.flatnonzero((above >= 0) & (label[above] == label[rows]))
        up[rows[same]] = up[above[same]]
        rows, above = np.delete(rows, same), np.delete(above, same)
        above = np.where(above >= 0, up[above], -1)
        if not (above >= 0).any():
            break
    return up


def _nodes(forest: Forest, label: Ints, up: Ints, has_up: Bools) -> Ints:
    """Returns the tree node of each carrier (event that gives a node its name), and adds the nodes to `forest`.

    `label` has the label of each carrier. `up` has for each carrier the index of the next carrier above it, which is
    valid only where `has_up` is True.
    """
    up = np.where(has_up, up, -1)
    depth, node = depths(up), np.full(len(label), ROOT, np.int64)
    order = np.argsort(depth, kind="stable")
    shallow = order[: int(np.searchsorted(depth[order], MAX_DEPTH))]
    for level in np.split(shallow, np.flatnonzero(np.diff(depth[shallow])) + 1):
        node[level] = forest.add(np.where(up[level] >= 0, node[up[level]], ROOT), label[level])
    deep = depth >= MAX_DEPTH
    while deep.any() and deep[up[deep]].any():
        up = np.where(deep & deep[np.maximum(up, 0)], up[np.maximum(up, 0)], up)
    node[deep] = node[up[deep]]
    return node
