"""Judges changed recordings: `python tests/measurements/perturb.py [-r NAME …] [-p NAME …] [--write]`.

Each labelled recording in the folder TB_BOTTLENECK_TRACES is changed in the ways of helpers/perturbations.py. A change
loses or rewrites parts of the recording, but the run is the same: the answer should stay right, or become "cannot
tell". The tables go to stdout, and with --write to tests/measurements/PERTURBED.md; progress goes to stderr.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from helpers.perturbations import PERTURBATIONS, Perturbation  # noqa: E402
from pages import progress, publish  # noqa: E402
from simulate.cases import answer_of  # noqa: E402

from tb_bottleneck.diagnosis.trace import diagnose  # noqa: E402

# Grades of an answer, from best to worst.
SAME, RIGHT, ABSTAINS, OTHER, NEVER = "same", "right", "cannot tell", "another", "never"
GRADES = (SAME, RIGHT, ABSTAINS, OTHER, NEVER)


def grade(label: dict[str, Any], before: str, answer: str) -> str:
    """Returns the grade of an answer, from the label and the answer for the unchanged recording."""
    right = (label["truth"], *label["also"])
    incomplete = [text for text in (answer, label["truth"]) if text.startswith("incomplete")]
    if answer in label["never"]:
        return NEVER
    if answer == before:
        return SAME
    if answer in right or len(incomplete) == 2:
        return RIGHT
    return ABSTAINS if answer.startswith(("incomplete", "unreadable")) else OTHER


def judged(raw: bytes, change: Perturbation) -> str:
    """Returns the answer for a changed recording."""
    trace = msgspec.json.decode(raw)
    if isinstance(trace, list):
        trace = {"traceEvents": trace}
    change(trace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "perturbed.pt.trace.json"
        path.write_bytes(msgspec.json.encode(trace))
        return answer_of(diagnose(str(path)))


def answers(
    folder: Path, labels: list[dict[str, Any]], changes: dict[str, Perturbation]
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yields (recording, change, answer before, answer after, grade)."""
    for number, label in enumerate(labels, 1):
        progress("recording", number, len(labels))
        path = folder / f"{label['name']}.json.gz"
        raw = _decodable(gzip.decompress(path.read_bytes()))
        if raw is None:
            continue
        before = answer_of(diagnose(str(path)))
        for name, change in changes.items():
            answer = judged(raw, change)
            yield label["name"], name, before, answer, grade(label, before, answer)


def _decodable(raw: bytes) -> bytes | None:
    """Returns the recording as strict JSON, or None if only this package's lenient reader can read it."""
    try:
        msgspec.json.decode(raw)
    except msgspec.DecodeError:
        try:
            return json.dumps(json.loads(raw, strict=False)).encode()
        except ValueError:
            return None
    return raw


def page(folder: Path, labels: list[dict[str, Any]], changes: dict[str, Perturbation]) -> Iterator[str]:
    """Yields the whole page, line by line."""
    rows = list(answers(folder, labels, changes))
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for _, change, _, _, graded in rows:
        counts[change][graded] += 1
    yield "# Perturbed recordings"
    yield ""
    yield "Written by `python tests/measurements/perturb.py --write`. Each labelled public recording, changed in one"
    yield "way and judged again: the *same* answer as before, another *right* one by its label, *cannot tell*,"
    yield "*another* one, or one that the label rules out (*never*)."
    yield ""
    yield f"| change | meaning | {' | '.join(GRADES)} |"
    yield "|---|---|" + "---:|" * len(GRADES)
    for name, change in changes.items():
        meaning = " ".join((change.__doc__ or "").split())
        yield f"| {name} | {meaning} | {' | '.join(str(counts[name][kind]) for kind in GRADES)} |"
    total = Counter(graded for *_, graded in rows)
    yield f"| **all** | | {' | '.join(str(total[kind]) for kind in GRADES)} |"
    yield ""
    yield "## Answers that are neither the same nor right"
    yield ""
    yield "| recording | change | before | after | |"
    yield "|---|---|---|---|---|"
    for recording, change_name, before, after, graded in rows:
        if graded not in (SAME, RIGHT):
            yield f"| {recording} | {change_name} | {before} | {after} | {graded} |"


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        description="Judges labelled recordings again after changes, such as missing parts."
    )
    parser.add_argument("-r", "--recordings", nargs="*", help="only these")
    parser.add_argument("-p", "--perturbations", nargs="*", choices=[*PERTURBATIONS], help="only these")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/PERTURBED.md as well")
    options = parser.parse_args()
    folder = Path(os.environ.get("TB_BOTTLENECK_TRACES") or parser.error("TB_BOTTLENECK_TRACES names no folder"))
    labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    labels = [label for label in labels if not options.recordings or label["name"] in options.recordings]
    changes = {name: PERTURBATIONS[name] for name in options.perturbations or PERTURBATIONS}
    publish(page(folder, labels, changes), HERE / "PERTURBED.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
