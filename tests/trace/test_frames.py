"""Who a recorded Python frame belongs to, and which file Python runs."""

import json

import pytest

from tb_bottleneck.trace.frames import (
    MAX_PROGRAM,
    FrameOwner,
    frame_owner,
    frame_parts,
    is_own_frame,
    program_file,
    short_frame,
)
from tb_bottleneck.trace.trace import load


@pytest.mark.parametrize(
    ("frame", "owner"),
    [
        ("train.py(42): train_step", "user"),
        ("/home/me/project/data/prepare.py(7): augment", "user"),
        ("project/train.py(1): main", "user"),
        ("C:\\work\\train.py(1): main", "user"),
        ("/tmp/ipykernel_812/3318.py(3): <cell line: 1>", "user"),
        ("profile.py(8): main", "user"),
        ("utils/data.py(8): load", "user"),
        ("transformers.py(8): TransformerBlock", "user"),
        ("evaluate/run.py(8): main", "user"),
        ("torch/nn/modules/module.py(1553): _call_impl", "torch"),
        ("/opt/conda/lib/python3.11/site-packages/torch/serialization.py(944): save", "torch"),
        ("/tmp/torchinductor_root/ab/cabc.py(30): call", "torch"),
        ("numpy/core/fromnumeric.py(88): _wrapreduction", "package"),
        ("pandas/core/internals/managers.py(2366): _merge_blocks", "package"),
        ("accelerate/accelerator.py(2790): backward", "package"),
        ("transformers/trainer.py(2281): get_batch_samples", "package"),
        ("six.py(90): _import_module", "package"),
        ("/usr/lib/python3/dist-packages/x/y.py(3): f", "package"),
        ("C:\\Python311\\Lib\\site-packages\\x\\y.py(3): f", "package"),
        ("tb_bottleneck/monitor/hooks/backward.py(19): backward", "package"),
        ("/home/me/tb_bottleneck/tb_bottleneck/monitor/capture.py(200): _sign", "package"),
        ("tb_bottleneck/commands/run.py(90): _run", "package"),
        ("threading.py(1016): _bootstrap", "python"),
        ("json/encoder.py(183): encode", "python"),
        ("/usr/lib/python3.11/asyncio/events.py(80): _run", "python"),
        ("<built-in method item of Tensor object at 0x7f>", "none"),
        ("<frozen runpy>(198): _run_module_as_main", "none"),
        ("nn.Module: Linear_0", "none"),
        ("", "none"),
    ],
)
def test_the_owner_follows_from_the_path(frame, owner):
    assert frame_owner(frame) is FrameOwner(owner)


@pytest.mark.parametrize(
    ("frame", "parts"),
    [
        ("demo/checkpointing.py(43): save", ("demo/checkpointing.py", 43, "save")),
        ("a(1): b.py(7): f", ("a(1): b.py", 7, "f")),
        ("<built-in function sleep>", ("", 0, "<built-in function sleep>")),
        ("a.py(99999999999): f", ("", 0, "a.py(99999999999): f")),
    ],
)
def test_a_frame_has_a_file_a_line_and_a_function(frame, parts):
    assert frame_parts(frame) == parts


def test_a_frame_is_named_without_the_address_of_its_object():
    assert short_frame("<built-in method item of Tensor object at 0x7f1B>") == "<built-in method item of Tensor object>"
    pybind = "<built-in method write_record of pybind11_builtins.pybind11_detail_function_record_v1 object at 0x7f1B>"
    assert short_frame(pybind) == "<built-in method write_record>"
    assert short_frame("train.py(3): at 0x7f") == "train.py(3): at 0x7f"


def test_frames_of_this_package_are_known_wherever_it_is_installed():
    own = ("tb_bottleneck/monitor/hooks/backward.py(19): backward", "C:\\x\\tb_bottleneck\\monitor\\a.py(1): f")
    assert all(map(is_own_frame, own))
    assert not any(map(is_own_frame, ("train.py(1): tb_bottleneck", "tb_bottleneck/train.py(1): main")))


@pytest.mark.parametrize(
    ("frames", "file"),
    [
        ([("runs/train.py(1): <module>", 900), ("runs/config.py(1): <module>", 50)], "runs/train.py"),
        ([("torch/utils/data/__init__.py(1): <module>", 900), ("train.py(1): <module>", 50)], "train.py"),
        ([("train.py(1): main", 900)], ""),
        ([], ""),
        ([("-cprint(1).py(1): <module>", 900)], ""),
        ([("train\u202e.py(1): <module>", 900)], ""),
        ([("train\n.py(1): <module>", 900)], ""),
        ([(f"{'a' * MAX_PROGRAM}.py(1): <module>", 900)], ""),
    ],
)
def test_the_program_is_the_longest_module_and_a_name_that_a_command_can_have(tmp_path, frames, file):
    rows = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 5}]
    python = {"ph": "X", "cat": "python_function", "pid": 7, "tid": 8}
    rows += [python | {"name": name, "ts": 1000 * at, "dur": dur} for at, (name, dur) in enumerate(frames)]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    assert program_file(load(str(path))) == file
