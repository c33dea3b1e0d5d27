"""The part of a recording that a tree is about: a device, and a range of steps."""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tree.tree import Tree, tree_of
from tb_bottleneck.errors import NotFound
from tb_bottleneck.order_statistics import distinct_values
from tb_bottleneck.record import Record
from tb_bottleneck.trace.steps import Steps


@dataclass(frozen=True)
class Selection:
    """What the tree is about; None means the judged device, and all steps of the window.

    `by` and `merged` are those of paths.paths_of; steps count from 1, and the range includes both.
    """

    by: str = "module"
    device: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    merged: bool = False


class Device(Record, frozen=True):
    """A device of the process: its index and name, and the time of its operations in ns."""

    index: int
    name: str
    total: int


def devices_of(inspected: InspectedTrace) -> list[Device]:
    """Returns the devices that worked."""
    trace, devices = inspected.trace, []
    ops = trace.all_device_ops
    for index in distinct_values(ops.device).tolist():
        rows = ops.device == index
        facts = trace.header.device(index)
        devices.append(Device(index, facts.name if facts else "", int((ops.end - ops.start)[rows].sum())))
    return devices


def selected_tree(inspected: InspectedTrace, selection: Selection) -> Tree:
    """Returns the tree of a part of a recording.

    Raises:
        NotFound: the recording is empty, or has no such device or steps.
    """
    recording = recording_of(inspected, selection)
    return tree_of(recording, inspected.host_rows, selection.by, selection.merged)


def recording_of(inspected: InspectedTrace, selection: Selection) -> Recording:
    """Returns the recording with the chosen device and steps as its window. Raises NotFound as `selected_tree`."""
    trace = inspected.trace
    if selection.device is not None and selection.device != trace.device_index:
        indices = [device.index for device in devices_of(inspected)]
        if selection.device not in indices:
            known = ", ".join(map(str, indices)) or "none"
            raise NotFound(f"device {selection.device} did no recorded work; devices with work: {known}")
        inspected = InspectedTrace(replace(inspected.loaded, chosen_device=selection.device))
    recording = inspected.recording
    if recording is None:
        raise NotFound("nothing ran in this recording, so there is no time to show")
    return replace(recording, steps=_steps(recording.steps, selection.first_step, selection.last_step))


def _steps(steps: Steps, first: int | None, last: int | None) -> Steps:
    count = len(steps)
    begin, end = 1 if first is None else first, count if last is None else last
    if not 1 <= begin <= end <= count:
        raise NotFound(f"steps {begin} to {end} are not in the window: it has the steps 1 to {count}")
    return Steps(steps.basis, np.array(steps.edges[begin - 1 : end + 1]), np.array(steps.host[begin - 1 : end + 1]))
