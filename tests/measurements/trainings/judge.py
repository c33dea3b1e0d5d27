"""Compares the diagnosis of the recordings with the expected answers."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from tests.measurements.trainings.cases import CASES, Case

Json = dict[str, Any]
HALVES = ("slow", "fixed")


def judge(recordings: Path, results: Path) -> None:
    """Diagnoses the recordings in a folder. Writes the answers and the measured times into the folder `results`."""
    command = [sys.executable, "-m", "tb_bottleneck", "diagnose", str(recordings), "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    log = ["git", "log", "-1", "--format=%h", "--", "tb_bottleneck"]
    commit = subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()
    files = {name: recordings / name / "times.json" for name in CASES}
    recorded = {name: file for name, file in files.items() if file.exists()}
    answers = {name: answer(CASES[name], told) for name in recorded}
    results.mkdir(exist_ok=True)
    _write(results / "answers.json", {"analyser": commit, "cases": answers})
    times = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in recorded.items()}
    device = next(report["device"]["name"] for report in told["reports"])
    _write(results / "times.json", {"device": device, "cases": times})


def _write(file: Path, content: Json) -> None:
    """Writes JSON with one line per case; times have a precision of a microsecond."""
    rounded = json.loads(json.dumps(content), parse_float=lambda digits: round(float(digits), 3))
    cases = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in rounded.pop("cases").items())
    head = json.dumps(rounded)[:-1] + (", " if rounded else "")
    file.write_text(f'{head}"cases": {{\n{cases}\n}}}}\n', encoding="utf-8")


def answer(case: Case, told: Json) -> Json:
    """Returns what was told about a case, and whether it is right. `told` is the output of `diagnose --json`."""
    slow, fixed = (_reports(told, f"{case.name}/{half}") for half in HALVES)
    job = next((job for job in told["jobs"] if job["run"].startswith(f"{case.name}/slow")), {})
    verdict = (job or (slow[0] if slow else {})).get("verdict", {})
    findings = [finding for report in slow for finding in report.get("findings", [])]
    firsts = [report["findings"][0] for report in slow if report.get("findings")]
    straggler = bool(job.get("stragglers")) and case.problem == "straggler"
    found = next((finding for finding in findings if names(case, finding)), None)
    speedup = job.get("speedup") if straggler else (found or {}).get("speedup")
    after = fixed[0] if fixed else {}
    return {
        "verdict": {key: verdict.get(key) for key in ("regime", "severity", "share")},
        "health": [reason["code"] for report in slow[:1] for reason in report["health"].get("reasons", [])],
        "causes": [finding["cause"] for finding in findings],
        "regime_right": bool(verdict) and verdict["regime"] in case.regimes.split(),
        "named": straggler or any(names(case, finding) for finding in firsts) if case.words else _is_healthy(verdict),
        "line": line_told(case, findings) if case.line else "-",
        "predicted": _prediction(speedup),
        "python_ms": next((_python_ms(report) for report in slow[:1]), 0.0),
        "after": {
            **{key: after.get("verdict", {}).get(key) for key in ("regime", "severity")},
            "causes": [finding["cause"] for finding in after.get("findings", [])],
        },
    }


def _reports(told: Json, run: str) -> list[Json]:
    """Returns the reports of one half, in the order of their ranks: those of traces, which also state what telemetry
    knows, unless the traces show only the start."""
    own = [each for each in told["reports"] if each["run"] == run or each["run"].startswith(f"{run}/")]
    traces = [each for each in own if "trace.json" in each["source"] and "verdict" in each]
    return sorted(traces or own, key=lambda each: each["source"])


def _is_healthy(verdict: Json) -> bool:
    return bool(verdict) and verdict["severity"] == "none"


def names(case: Case, finding: Json) -> bool:
    """Tells whether a finding names the planted problem."""
    text = f"{finding['cause'].replace('_', ' ')} {finding.get('title', '')}"
    return bool(case.words) and re.search(case.words, text, re.IGNORECASE) is not None


def line_told(case: Case, findings: Iterable[Json]) -> str:
    """Returns `line` if a finding states the planted line, `function` if the one that begins its function, or `no`."""
    stated = set().union(*(_lines_in(case.file.name, finding) for finding in findings))
    return "line" if case.planted in stated else "function" if case.function in stated else "no"


def _lines_in(file: str, finding: Json) -> set[int]:
    """Returns the lines of a file that a finding states: those of its places, and those in its texts."""
    places = [place for place in finding.get("where", []) if Path(place["file"]).name == file]
    stated = {place["line"] for place in places} | {each["line"] for place in places for each in place["other_lines"]}
    texts = re.findall(rf"\b{re.escape(file)}\W{{1,8}}(\d+)", json.dumps(finding))
    return stated | set(map(int, texts))


def _python_ms(report: Json) -> float:
    rows = report.get("account", [])
    return sum(float(row.get("ns_per_step", 0.0)) for row in rows if row["regime"] == "host") / 1e6


def _prediction(speedup: Json | None) -> Json | None:
    if not speedup or speedup.get("basis", "none") == "none":
        return None
    return {key: speedup[key] for key in ("expected", "low", "high", "basis")}


def gain(case: Case, times: Json) -> float:
    """Returns the measured gain: the median time per sample of the slow half over that of the fixed half."""
    clock = "wall_ms" if case.wall else "cpu_ms"
    slow, fixed = (median(each[clock] for each in times[half]["timed"]) for half in HALVES)
    return slow * case.work / fixed
