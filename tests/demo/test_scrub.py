"""A published recording shows the training, but not its host, user and environment."""

import getpass
import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from demo import scrub

PRIVATE = ("gpu-box-17", "gpu-box-17.corp.example", "mallory")


def frame(name: str, **arguments: object) -> dict[str, Any]:
    return {"ph": "X", "cat": "python_function", "name": name, "ts": 1.5, "dur": 2.25, "pid": 7, "args": arguments}


def cleaned(name: str) -> str:
    return str(scrub.scrub({"traceEvents": [frame(name)]}, PRIVATE)["traceEvents"][0]["name"])


TELLTALE: dict[str, Any] = {
    "schemaVersion": 1,
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1790857026000000000,
    "with_stack": 1,
    "trace_id": "B157B242",
    "host_name": "gpu-box-17.corp.example",
    "WANDB_API_KEY": "t0ken",
    "environment": {"USER": "mallory", "AWS_SECRET_ACCESS_KEY": "t0ken"},
    "user_metadata": "http://gpu-box-17:8080/?token=t0ken",
    "distributedInfo": {"backend": "gloo", "rank": 0, "master": "tcp://gpu-box-17:29500"},
    "tb_bottleneck": {"schema": 1, "context": {"cores": 2, "note": "/home/mallory/secret-project"}},
    "traceName": "/home/mallory/secret-project/runs/demo.1.pt.trace.json",
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "/home/mallory/venv/bin/python"}},
        frame("/home/mallory/secret-project/venv/lib/python3.11/site-packages/torch/serialization.py(944): save"),
        frame("/home/mallory/secret-project/train.py(12): main"),
        frame(r"C:\Users\mallory\secret-project\train.py(12): main"),
        frame("open /mnt/secret-project"),
        frame("GET https://mallory:t0ken@gpu-box-17/secret-project"),
        frame("upload to GPU-BOX-17", env="t0ken", command=["train", "--key", "t0ken"], detail={"key": "t0ken"}),
        frame("aten::mm", **{"Input Dims": [[2, 3], []], "Concrete Inputs": ["", "/home/mallory/x"], "Ev Idx": 4}),
    ],
}


@pytest.mark.parametrize("secret", ["gpu-box", "mallory", "t0ken", "secret-project", "/home", "Users", "B157B242"])
def test_no_private_value_is_published(secret: str) -> None:
    assert secret in json.dumps(TELLTALE), "this test would pass with any scrubber"
    assert secret.lower() not in json.dumps(scrub.scrub(TELLTALE, PRIVATE)).lower()


def test_the_input_of_a_diagnosis_is_published() -> None:
    kept = scrub.scrub(TELLTALE, PRIVATE)
    assert kept["baseTimeNanoseconds"] == 1790857026000000000
    assert kept["with_stack"] == 1
    assert kept["distributedInfo"]["rank"] == 0
    assert kept["tb_bottleneck"]["context"]["cores"] == 2
    assert kept["traceName"] == "demo.1.pt.trace.json"
    assert len(kept["traceEvents"]) == len(TELLTALE["traceEvents"])
    matmul = kept["traceEvents"][-1]
    assert (matmul["ts"], matmul["dur"], matmul["pid"], matmul["cat"]) == (1.5, 2.25, 7, "python_function")
    assert matmul["args"] == {"Input Dims": [[2, 3], []], "Concrete Inputs": ["", "path"], "Ev Idx": 4}


def test_the_trace_given_is_not_edited() -> None:
    before = json.dumps(TELLTALE)
    scrub.scrub(TELLTALE, PRIVATE)
    assert json.dumps(TELLTALE) == before


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/opt/v/lib/python3.12/site-packages/torch/serialization.py(944): save", "torch/serialization.py(944): save"),
        ("/usr/lib/python3.12/json/encoder.py(183): encode", "json/encoder.py(183): encode"),
        ("/srv/job/train.py(3): <module>", "train.py(3): <module>"),
        ("<built-in method mul_ of Tensor object at 0x7f3dbe942bc0>", "<built-in method mul_ of Tensor object at 0x0>"),
    ],
)
def test_a_frame_keeps_file_and_function(name: str, expected: str) -> None:
    assert cleaned(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "torch/serialization.py(944): save",
        "aten::add_",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "Optimizer.step#AdamW.step",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)",
        "train/forward a/b 1 / 2",
    ],
)
def test_a_harmless_name_stays_as_it_is(name: str) -> None:
    assert cleaned(name) == name


def test_without_private_words_no_word_is_replaced() -> None:
    assert scrub.scrub({"traceEvents": [frame("mallory")]}, ())["traceEvents"][0]["name"] == "mallory"


def test_a_file_is_written_whole_and_without_a_name_or_time_in_its_header(tmp_path: Path) -> None:
    source, target = tmp_path / "source.json.gz", tmp_path / "demo.1.pt.trace.json.gz"
    source.write_bytes(gzip.compress(json.dumps(TELLTALE).encode()))
    scrub.scrub_file(source, target, PRIVATE)
    assert json.loads(gzip.decompress(target.read_bytes())) == scrub.scrub(TELLTALE, PRIVATE)
    assert target.read_bytes()[3:8] == bytes(5)  # gzip's flags (no file name) and its modification time
    assert sorted(path.name for path in tmp_path.iterdir()) == [target.name, source.name]


def test_the_words_of_this_machine_are_its_host_and_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-box-17.corp.example")
    monkeypatch.setattr(socket, "getfqdn", lambda: "gpu-box-17.corp.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "root")
    monkeypatch.setenv("HOME", "/home/mallory")
    assert scrub.words_of_this_machine() == set(PRIVATE)
