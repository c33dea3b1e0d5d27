"""Writes all answers of the program to a folder, or compares the answers with those of another commit.

    python tests/goldens.py --write DIR     at one commit
    python tests/goldens.py --check DIR     at another one: prints each JSON path that differs, with its count

The answers are: the commands with --json for every recording at hand, every reply of the tab's server for the demo, and
the decoded events of the monitor under a fake clock. The recordings are those of the demo, tests/traces, and the
folders that TB_BOTTLENECK_TRACES, _PAIRS, _SNAPSHOTS, _JOBS and _GPU name. `--only TEXT` limits the answers to those
whose names contain TEXT. Exit status of --check: 1 if something differs.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ |= {"TB_BOTTLENECK_CACHE": "off", "COLUMNS": "120"}

DEMO = ROOT / "demo" / "recorded"
SHOWN = 200
"""Maximum number of paths that --check prints."""
TIME_OF_FILES = 1_790_000_000
PATIENCE_S = 300.0
_NESTED = re.compile(r"(\.children\[\])+")

TREES = ("module", "line", "operator", "range")
WHAT_IFS: dict[str, tuple[str, ...]] = {
    "usual": (),
    "device": ("--device", "NVIDIA H200"),
    "link": ("--link", "gen4x16"),
    "settings": ("--workers", "4", "--batch", "64", "--precision", "bf16"),
}


def folders() -> dict[str, Path]:
    """Returns the folders with recordings by name."""
    known = {name.lower(): os.environ.get(f"TB_BOTTLENECK_{name}") for name in ("TRACES", "PAIRS", "SNAPSHOTS", "GPU")}
    return {name: Path(folder) for name, folder in known.items() if folder}


def jobs() -> Iterator[tuple[str, Path]]:
    """Yields the name and the folder of each recorded job."""
    yield from ((path.name, path) for path in sorted((DEMO / "simulated").glob("*")) if path.is_dir())
    for path in sorted(Path(os.environ.get("TB_BOTTLENECK_JOBS") or os.devnull).glob("*/")):
        yield path.name, path


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yields the name of each answer of the command line, and the arguments that give it."""
    recordings = {f"fixture/{path.name}": path for path in sorted((ROOT / "tests" / "traces").glob("*.json*"))}
    trainings = {f"demo/{path.name}": path for path in sorted(DEMO.glob("*/")) if path.name != "simulated"}
    for name, folder in folders().items():
        found = {f"{name}/{path.name}": path for path in sorted(folder.glob("*.gz"))}
        recordings |= found
    if "gpu" in folders():
        trainings |= {f"gpu/{path.name}": path for path in sorted((folders()["gpu"] / "runs").glob("*/"))}
    everything = recordings | trainings | {f"job/{name}": path for name, path in jobs()}
    for name, path in everything.items():
        yield f"diagnose/{name}", ["diagnose", "--no-cache", "--processes", "1", "--json", str(path)]
    for name, path in (trainings | {f"job/{name}": path for name, path in jobs()}).items():
        yield f"list/{name}", ["list", "--no-cache", "--processes", "1", "--json", str(path)]
    traces = {
        name: path for name, path in recordings.items() if name.startswith(("traces/", "pairs/", "fixture/regime"))
    }
    for path in sorted(DEMO.glob("*/*/*.trace.json.gz")):
        traces[f"demo/{path.parent.parent.name}/{path.parent.name}"] = path
    traces |= {name: path for name, path in trainings.items() if name.startswith("gpu/")}
    for name, path in traces.items():
        for by in TREES:
            yield f"tree_{by}/{name}", ["tree", "--by", by, "--json", str(path)]
        for kind, options in WHAT_IFS.items():
            yield f"what_if_{kind}/{name}", ["what-if", *options, "--json", str(path)]
    for name, before in recordings.items():
        if "__before" in name:
            after = before.with_name(before.name.replace("__before", "__after"))
            yield f"compare/{name}", ["compare", str(before), str(after), "--json"]
    for name, path in trainings.items():
        if (path / "slow").is_dir() and (path / "fixed").is_dir():
            yield f"compare/{name}", ["compare", str(path / "slow"), str(path / "fixed"), "--json"]
    for sweep in sorted(DEMO.glob("loader_workers")):
        yield "compare/sweep", ["compare", *map(str, sorted(sweep.glob("*/"))), "--json"]


def answer_of(question: tuple[str, list[str]]) -> tuple[str, Any]:
    """Returns the name of the answer and the answer: the exit status, the JSON, and the errors."""
    from tb_bottleneck.__main__ import main

    name, arguments = question
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status: object = main(arguments)
        except SystemExit as ending:
            status = ending.code
    text = out.getvalue()
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    errors = [line for line in err.getvalue().splitlines() if not line.startswith("\r")]
    return name, {"status": status, "answer": value, "errors": errors}


def server_answers() -> Iterator[tuple[str, Any]]:
    """Yields the replies of the plugin's routes for the demo's logdir."""
    from tb_bottleneck.plugin.plugin import ANALYSE
    from tests.plugin.tenant import Tenant

    logdir = Path(tempfile.gettempdir()) / "tb_bottleneck_goldens"  # the ids of recordings depend on their paths
    shutil.rmtree(logdir, ignore_errors=True)
    shutil.copytree(DEMO, logdir)
    for position, path in enumerate(sorted(logdir.rglob("*"))):
        os.utime(path, (TIME_OF_FILES + position, TIME_OF_FILES + position))
    tenant = Tenant(logdir, analyse=ANALYSE)
    try:
        yield from _routes(tenant)
    finally:
        tenant.plugin.close()
        shutil.rmtree(logdir, ignore_errors=True)


def _routes(tenant: Any) -> Iterator[tuple[str, Any]]:
    def ready(route: str, **parameters: object) -> Any:
        end = time.monotonic() + PATIENCE_S
        while True:
            response = tenant.get(f"{route}?{urlencode(parameters, doseq=True)}")
            if response.status_code != 202 or time.monotonic() > end:
                data = response.data
                break
            time.sleep(0.02)
        try:
            return {"status": response.status_code, "answer": json.loads(data)}
        except ValueError:
            return {"status": response.status_code, "bytes": len(data)}

    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        runs = ready("runs")
        entries = runs["answer"]["runs"]
        if runs["answer"]["state"] == "ready" and all(entry["state"] == "done" for entry in entries):
            break
        time.sleep(0.2)
    yield "server/runs", runs
    ids = {f"{entry['run']}/{entry['source']}": entry for entry in entries}
    yield "server/devices", ready("devices")
    yield "server/ledger", ready("ledger")
    yield "server/live", ready("live")
    for name, entry in sorted(ids.items()):
        key, short = entry["id"], re.sub(r"[^\w.-]", "_", name)
        yield f"server/report/{short}", ready("report", id=key)
        if entry["evidence_source"] == "telemetry":
            yield f"server/telemetry/{short}", ready("telemetry", id=key, points=200)
            continue
        yield f"server/job/{short}", ready("job", id=key)
        yield f"server/timeline/{short}", ready("timeline", id=key, pixels=400)
        yield f"server/what_if/{short}", ready("what_if", id=key)
        for by in TREES:
            yield f"server/tree_{by}/{short}", ready("tree", id=key, by=by)
    slow = {entry["run"]: entry for entry in ids.values() if entry["evidence_source"] == "trace"}
    for run, entry in sorted(slow.items()):
        fixed = slow.get(run.replace("/slow", "/fixed"))
        if "/slow" in run and fixed:
            yield f"server/compare/{run}", ready("compare", a=entry["id"], b=fixed["id"])


def monitor_answers() -> Iterator[tuple[str, Any]]:
    """Yields the decoded events that the monitor writes for drawn trainings on a fake machine."""
    from unittest import mock

    from google.protobuf.json_format import MessageToDict
    from monitor.samplers.replay import Replay
    from monitor.steps.played_clock import Played
    from monitor.written import event_files
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    from tb_bottleneck.monitor.nvml.queries import queries
    from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler
    from tb_bottleneck.monitor.steps.row_queue import RowRateLimiter
    from tb_bottleneck.monitor.writer import encode
    from tb_bottleneck.monitor.writer.event_file import EventFile
    from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG
    from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext

    drawings = ("L..BO" * 40, "LLL.BOC" * 5, "L L.BOL.BOl.BOl", "L.BOVV..VV..vL.BOL", "LM.BOLMM.BOL", "|L.BO|..|")
    for number, drawing in enumerate(drawings):
        now, readings = [0.0], []
        gpus = GpuSampler(Replay("h200.json"), queries(), lambda found: found[:1], lambda now=now: now[0])
        for second in range(12):
            now[0] = float(second)
            readings += [(TIME_OF_FILES * 10**9 + second * 10**9, reading) for reading in gpus.read()]
        rows = Played(drawing).over().rows
        with tempfile.TemporaryDirectory() as folder, mock.patch("time.time", return_value=float(TIME_OF_FILES)):
            file = EventFile(Path(folder))
            file.open()
            facts = {"cores": 8, "loader": {"workers": 2}, "unsupported": object()}
            file.write(encode.message_event(CONTEXT_TAG, encode.context(facts, gpus.missing(), []), 0))
            packet = encode.packet(0, RowRateLimiter(burst=20).filter(rows), TIME_OF_FILES * 10**9, readings, [])
            file.write(encode.message_event(PACKET_TAG, packet, 0))
            file.write(encode.scalars_event(encode.scalars(rows, readings), len(rows)))
            file.close()
            events: list[object] = []
            for path in event_files(Path(folder)):
                for raw in RawEventFileLoader(str(path)).Load():
                    for value in Event.FromString(raw).summary.value:
                        kind = {CONTEXT_TAG: RunContext, PACKET_TAG: Packet}.get(value.tag)
                        packed = kind.FromString(value.tensor.string_val[0]) if kind else None
                        events.append([value.tag, MessageToDict(packed) if packed else value.simple_value])
        yield f"monitor/{number}", {"answer": events}


def answers(only: str) -> Iterator[tuple[str, Any]]:
    """Yields the name and the value of each answer whose name contains `only`."""
    asked = [question for question in commands() if only in question[0]]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for number, answer in enumerate(pool.map(answer_of, asked, chunksize=4), 1):
            if sys.stderr.isatty() or number % 200 == 0:
                print(f"{number} of {len(asked)} commands", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr)
            yield answer
    parts: dict[str, Callable[[], Iterable[tuple[str, Any]]]] = {"server": server_answers, "monitor": monitor_answers}
    for name, part in parts.items():
        if only in name or only.startswith(name):
            yield from ((key, value) for key, value in part() if only in key)


def canonical(value: Any) -> Any:
    """Returns the answer without what differs between two runs of one commit: paths of this checkout."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return json.loads(text.replace(f"{ROOT}/", "").replace(str(ROOT), "."))


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yields the JSON paths at which two answers differ. An item of a list is called [], and a node of a tree at any
    depth has the path `.children[]`."""
    path = _NESTED.sub(".children[]", path)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in old or key not in new:
                yield f"{path}.{key} {'added' if key in new else 'gone'}"
            else:
                yield from differences(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for before, after in zip(old, new, strict=True):
            yield from differences(before, after, f"{path}[]")
    elif old != new:
        yield path


def file_of(folder: Path, name: str) -> Path:
    """Returns the file of the answer `name` in `folder`."""
    return folder / f"{re.sub(r'[^a-zA-Z0-9_./-]', '_', name)}.json"


def main() -> int:
    """Writes or checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", type=Path, metavar="DIR")
    mode.add_argument("--check", type=Path, metavar="DIR")
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    found, examples, count = Counter[str](), dict[str, str](), 0
    for name, value in answers(options.only):
        count += 1
        path = file_of(options.write or options.check, name)
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(canonical(value), sort_keys=True, ensure_ascii=False, indent=1) + "\n")
            continue
        kind = name.partition("/")[0] if not name.startswith("server") else "/".join(name.split("/")[:2])
        old = json.loads(path.read_text()) if path.exists() else None
        for place in [" (new)"] if old is None else differences(old, canonical(value)):
            found[f"{kind}{place}"] += 1
            examples.setdefault(f"{kind}{place}", name)
    for place, number in found.most_common(SHOWN):
        print(f"{number:7} {place}   e.g. {examples[place]}")
    print(f"{count} answers, {len(found)} different paths" if options.check else f"{count} answers written")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
