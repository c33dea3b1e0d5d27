"""An analysis that follows the instruction in the file: the tests of the plugin run it in real worker processes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tb_bottleneck.schema.bottleneck_pb2 import Device, Health, HealthReason, Report, Spread, Verdict, Window
from tb_bottleneck.version import SCHEMA

TOO_MUCH = 2 << 30  # bytes; without a limit the allocation succeeds, because nothing is written to it


def analyse(path: str, *, run: str = ".", progress: Callable[[int, int], None] | None = None) -> Report:
    """Returns a report with the verdict `input`, unless the file's first word requests a failure."""
    word, _, rest = Path(path).read_text().partition(" ")
    assert progress is not None
    progress(1, 4)
    print("an analysis may print without hurting the protocol")
    report = Report(
        schema=SCHEMA,
        run="to be replaced",
        source=os.path.basename(path),
        witness="trace",
        evidence_source="trace",
        device=Device(name=str(os.getpid()), kind="cpu"),
        health=Health(status="ok"),
        window=Window(steps=3, basis="whole", step_ns=Spread(median=5e6, mean=5e6)),
        verdict=Verdict(regime="input", share=0.4, severity="critical", headline="Your device waits."),
    )
    while word == "stream":  # reads endlessly
        progress(2, 4)
        time.sleep(0.05)
    _obey(word, rest, report)
    return report


def _obey(word: str, rest: str, report: Report) -> None:
    if word == "child":  # an analysis of a snapshot has a process of its own
        Path(rest).write_text(str(subprocess.Popen(["sleep", "600"]).pid))
        time.sleep(600)
    if word == "raise":
        raise RuntimeError(rest)
    if word == "allocate":
        bytearray(TOO_MUCH)
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "count":  # writes a letter to a file, and dies
        with open(rest, "a") as log:
            log.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "exit":
        os._exit(3)
    if word == "hang":
        signal.pause()
    if word == "gate":  # a named pipe: reading it ends when the test has opened and closed it
        Path(rest).read_bytes()
    if word == "growing":
        report.ClearField("verdict")
        report.health.CopyFrom(Health(status="unreadable", reasons=[HealthReason(code="growing")]))
