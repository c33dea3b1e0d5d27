"""`tb-bottleneck diagnose` imports nothing that a small recording does not need, and checks where it runs."""

import json
import os
import subprocess
import sys

import pytest
from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.__main__ import main

RUN = repeated(9, loader="######....", gpu="......####")
SCRIPT = """
import os, sys, threading
from tb_bottleneck.__main__ import main
status = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
print(len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count())
sys.exit(status)
"""
# The diagnosis of a trace file to text, without a cache, needs none of these.
NEEDLESS = {
    "google.protobuf.json_format",
    "platformdirs",
    "rich.console",
    "statistics",
    "tb_bottleneck.comparison",
    "tb_bottleneck.diagnosis.telemetry",
    "tb_bottleneck.report.cache.sidecar",
    "tb_bottleneck.sources.logdir",
    "tb_bottleneck.sources.remote_files",
    "tb_bottleneck.sources.telemetry.telemetry_file",
    "tb_bottleneck.telemetry",
    "tensorboard",
    "torch",
}


def diagnosed(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", SCRIPT, "diagnose", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def test_a_small_trace_is_judged_with_what_it_needs(tmp_path):
    """Half of the time, apart from the start of Python, was spent on the import of unused modules."""
    done = diagnosed("--no-cache", recorded(tmp_path, RUN))
    assert "The GPU waits for" in done.stdout
    assert not NEEDLESS & set(done.stderr.split())


def test_no_thread_is_started_for_matrices_that_are_never_multiplied(tmp_path):
    """numpy's BLAS has a thread per core that spins while it waits for work: 0.1 s of CPU time."""
    assert diagnosed("--no-cache", recorded(tmp_path, RUN)).stdout.splitlines()[-1] == "1"


def test_json_sidecar_and_gate_work_with_lazy_imports(tmp_path):
    path = recorded(tmp_path, RUN)
    done = diagnosed("--no-cache", "--json", "--write", "--fail-over", "input=99%", path, path)
    assert len(json.loads(done.stdout.rsplit("\n", 2)[0])["reports"]) == 2
    assert os.path.exists(f"{path}.bottlenecks.json")


@pytest.mark.parametrize(
    "places",
    [("--workers", "-1"), ("--processes", "0"), ("--workers", "2", "--processes", "2"), ("--workers", "1000000")],
)
def test_a_wrong_number_of_workers_is_wrong_usage(tmp_path, capsys, places):
    with pytest.raises(SystemExit) as stopped:
        main(["diagnose", str(tmp_path), *places])
    assert stopped.value.code == 2
    assert places[0] in capsys.readouterr().err.splitlines()[-1]
