"""A training that is ended by a signal leaves no part of a file behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

EXPORTING = """
    import sys, time
    import torch
    from monitor.training import Training
    from tb_bottleneck import Monitor

    original = torch.profiler.profile.export_chrome_trace

    def slowly(self, path):
        original(self, path)
        print("exporting", flush=True)
        time.sleep(1.0)

    torch.profiler.profile.export_chrome_trace = slowly
    monitor = Monitor(sys.argv[1], captures=1, every_s=0.1)
    monitor.start()
    training = Training()
    while True:
        training.run()
"""
PACKING = """
    import sys, time
    import torch
    from monitor.training import Training
    from tb_bottleneck import Monitor
    from tb_bottleneck.monitor.capture import call_lines

    def slowly(source, target, keys):
        target.write(source.read(1000))
        target.flush()
        print("packing", flush=True)
        time.sleep(60)

    call_lines.copy_with_keys = slowly
    monitor = Monitor(sys.argv[1], captures=1, every_s=0.1)
    monitor.start()
    training = Training()
    while True:
        training.run()
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
@pytest.mark.parametrize(
    ("script", "place"), [(PACKING, b"packing\n"), pytest.param(EXPORTING, b"exporting\n", marks=pytest.mark.nightly)]
)
def test_a_signal_while_a_trace_is_written_or_packed_leaves_nothing_behind(
    tmp_path: Path, script: str, place: bytes
) -> None:
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as training:
        assert training.stdout is not None
        assert training.stdout.readline() == place
        time.sleep(0.1)
        training.terminate()
        assert training.wait(60) == -signal.SIGTERM
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert left, "the telemetry is there"
    assert all("tfevents" in name or name == "heartbeat.json" for name in left)
