"""The module that is named with a line: one that runs, or the nearest one around those that run."""

import json

import numpy as np
import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.measures.user_code.modules import module_of
from tb_bottleneck.measures.user_code.places import HostTimes, places_of
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

MAIN = 100


def _row(category, name, ts, dur):
    return {"ph": "X", "cat": category, "name": name, "pid": MAIN, "tid": MAIN, "ts": ts, "dur": dur, "args": {}}


def _module(name, ts, dur):
    return _row("python_function", f"nn.Module: {name}", ts, dur)


def _mark(name, ts, dur):
    return _row("user_annotation", f"nn.Module: {name}", ts, dur)


def _recorded(tmp_path, *rows):
    """Returns a recording of a run on the CPU, with the rows in the first of two steps."""
    events = [_row("user_annotation", f"ProfilerStep#{n}", n * 1000, 1000) for n in range(2)]
    events += [_row("cpu_op", "aten::mm", n * 1000, 900) for n in range(2)]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": [*events, *rows]}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace))


def _places(recording, *times, costs=None):
    thread = next(row for row, thread in enumerate(recording.trace.threads) if str(MAIN) in str(thread))
    at = np.array(times) * 1000
    return places_of(recording, HostTimes(np.full(len(at), thread), at, np.array(costs or [1.0] * len(at))))


STEP = _row("python_function", "train.py(30): step", 0, 950)
# An encoder of four equal layers, then a head.
ENCODER = [
    _module("Encoder_0", 100, 400),
    *(_module(f"Layer_{n}", 100 + 100 * n, 100) for n in range(4)),
    *(_module(f"Norm_{n}", 110 + 100 * n, 80) for n in range(4)),
    _module("Head_0", 600, 300),
]


def test_one_module_with_half_of_the_time_is_named(tmp_path):
    [place] = _places(_recorded(tmp_path, STEP, *ENCODER), 150, 250, 700, costs=[6.0, 2.0, 2.0])
    assert (place.function, place.module) == ("step", "Norm_0")


def test_modules_of_a_stack_are_one(tmp_path):
    [place] = _places(_recorded(tmp_path, STEP, *ENCODER), 150, 250, 350, 450)
    assert place.module == "Norm_*"


def test_the_nearest_module_around_different_ones_is_named(tmp_path):
    """A third each in a norm, in a layer outside of its norm, and in the encoder's head."""
    recording = _recorded(tmp_path, STEP, *ENCODER)
    [place] = _places(recording, 150, 205, 305, 700)
    assert place.module == "Layer_*"
    [place] = _places(recording, 150, 700, 705, 710, costs=[3.0, 1.0, 1.0, 0.5])
    assert place.module == "Norm_0", "one module has more than half"


def test_without_half_of_the_time_no_module_is_named(tmp_path):
    [place] = _places(_recorded(tmp_path, STEP, *ENCODER), 150, 700, 920, 925, 930)
    assert place.module == ""


def test_layers_of_a_model_from_a_package_are_one_place(tmp_path):
    """Without a frame of the program there are only the modules."""
    places = _places(_recorded(tmp_path, *ENCODER), 150, 250, 350, 450, 700)
    assert [(place.module, round(place.share, 1)) for place in places] == [("Norm_*", 0.8), ("Head_0", 0.2)]


def test_a_block_has_its_module(tmp_path):
    """Marks of the monitor, in a recording without Python frames."""
    marks = [_mark(f"encoder.layers.{n}", 100 + 100 * n, 100) for n in range(4)]
    recording = _recorded(tmp_path, _row("user_annotation", "forward", 0, 950), *marks)
    [place] = _places(recording, 150, 250, 350)
    assert (place.block, place.module) == ("forward", "encoder.layers.*")


@pytest.mark.parametrize("depth", [10, 300])
def test_deep_recursion_is_cut(tmp_path, depth):
    recording = _recorded(tmp_path, *(_module(f"A{chr(97 + n % 26)}{n % 7}_{n}", n, 900 - 2 * n) for n in range(depth)))
    modules = np.flatnonzero(
        [recording.trace.names[name].startswith("nn.Module") for name in recording.trace.events.name]
    )
    assert module_of(recording, modules, np.ones(len(modules)))
    assert module_of(recording, np.array([-1, -1]), np.ones(2)) == ""
