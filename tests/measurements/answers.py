"""Answers questions about public traces: `python tests/measurements/answers.py TRACES [--write]`.

The command line and the tab's server are asked which module, line, operator, kernel or message has the most device
time; the same is counted in the JSON, without the package (tests/helpers/raw_trace.py). The page goes to
stdout, and with --write to tests/measurements/ANSWERS.md.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from helpers import raw_trace  # noqa: E402
from pages import progress, publish  # noqa: E402

from tb_bottleneck.drilldown.inspected_trace import TraceCache  # noqa: E402
from tb_bottleneck.plugin.workers.dispatch import answer  # noqa: E402
from tb_bottleneck.plugin.workers.questions import TraceFile, TreeQuestion  # noqa: E402

QUESTIONS = {
    "module": ("h100_bert_small", "h100_owlv2", "h100_qwen05b", "h100_tiny_transformer_a", "a100_moe_big_item_trap",
               "mi300_timesformer", "mi300_vit_nsfw", "mi300_flux"),
    "line": ("t4_custom_matmul_cpu_randn", "a100_moe_big_item_trap", "l40_triforce_decode_cuda_graph"),
    "operator": ("kineto_resnet50_nw0_v19_a", "ptf_bs128_steady_a", "kineto_autograd_nw4", "rtxA5000_vit_first_batch"),
    "kernel": ("ptf_bs16_steady", "mi300_triton_compile_gemm"),
    "message": ("hta_ddp_a100_ws2_ncclmeta", "hta_torchrec_a100_ws8", "hta_dlrm128_sampled__rank0"),
}  # fmt: skip
NOUNS = {"line": "function of the program", "message": "size of a message in bytes"}
TOLERANCE = 0.001
MAX_SHOWN = 600


@dataclass(frozen=True)
class Answer:
    """A name with its device time in the window, in ns."""

    name: str
    ns: float


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    publish(_page(options.traces), HERE / "ANSWERS.md", options.write)


def _page(traces: Path) -> Iterator[str]:
    yield "# Answers about public traces"
    yield ""
    yield "Written by `python tests/measurements/answers.py TRACES --write`."
    yield "Figures as they come; nothing is left out."
    yield ""
    yield "Which name has the most device time in the judged window: asked from the command line and"
    yield "from what the tab gets, counted in the JSON. The tab gets the largest nodes; the others are added up."
    yield ""
    yield "| trace | question: which ... | command line | ms | tab, ms | JSON | ms | equal |"
    yield "|---|---|---|---:|---:|---|---:|---|"
    right = count = 0
    for kind, names in QUESTIONS.items():
        for name in names:
            progress("traces", count, sum(map(len, QUESTIONS.values())))
            ours, shown, counted = answers(traces / f"{name}.json.gz", kind)
            equal = counted.name != "" and all(_equal(one, counted) for one in (ours, shown))
            right, count = right + equal, count + 1
            in_tab = f"{shown.ns / 1e6:.3f}" + ("" if shown.name == ours.name else f" ({shown.name})")
            cells = (ours.name, f"{ours.ns / 1e6:.3f}", in_tab, counted.name, f"{counted.ns / 1e6:.3f}")
            figures = " | ".join(map(_cell, cells))
            yield f"| {name} | {NOUNS.get(kind, kind)} | {figures} | {'yes' if equal else '**no**'} |"
    yield ""
    yield f"Equal: {right} of {count}."


def answers(path: Path, kind: str) -> tuple[Answer, Answer, Answer]:
    """Returns the answers of the command line, of the tab, and from the JSON."""
    by = "communication" if kind == "message" else kind
    tree = asked("tree", str(path), "--by", by, "--json")
    begin, end = tree["begin_ns"], tree["begin_ns"] + tree["window_ns"]
    ours, shown = _longest(tree["tree"], by), _longest(_nested(in_tab(path, by)["tree"]), by)
    key: Callable[[raw_trace.Work], str | None] = getattr(raw_trace, f"by_{kind}")
    counted = Answer(*raw_trace.longest(raw_trace.RawTrace(path).work(begin, end), key))
    if kind == "line":  # the line of a function that already ran is not that of the function
        ours, shown, counted = (Answer(_function(one.name), one.ns) for one in (ours, shown, counted))
    return ours, shown, counted


def asked(*arguments: str) -> Any:
    """Returns the answer of the command line."""
    command = [sys.executable, "-m", "tb_bottleneck", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=HERE.parents[1]).stdout)


def in_tab(path: Path, by: str) -> Any:
    """Returns the tree that the tab gets."""
    status = path.stat()
    trace = TraceFile("a", str(path), status.st_mtime_ns, status.st_size)
    return json.loads(answer(TreeQuestion(trace, by), TraceCache()))


def _nested(tree: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns of a tree as nodes with their children."""
    kinds = [tree["kinds"][kind] for kind in tree["kind"]]
    rows = zip(kinds, tree["name"], tree["device_ns"], strict=True)
    nodes = [{"kind": kind, "name": name, "device_ns": ns, "children": []} for kind, name, ns in rows]
    for node, parent in zip(nodes[1:], tree["parent"][1:], strict=True):
        nodes[parent]["children"].append(node)
    return nodes[0]


def _longest(tree: dict[str, Any], kind: str) -> Answer:
    time: Counter[str] = Counter()
    for name, ns in _own_times(tree, kind):
        time[name] += ns
    return Answer(*time.most_common(1)[0]) if time else Answer("", 0)


def _equal(shown: Answer, counted: Answer) -> bool:
    return _same(shown.name, counted.name) and abs(shown.ns - counted.ns) <= TOLERANCE * counted.ns


def _same(shown: str, name: str) -> bool:
    """Returns True for equal names; tables cut long ones."""
    return shown == name or (len(shown) >= MAX_SHOWN and name.startswith(shown))


def _own_times(node: dict[str, Any], kind: str) -> Iterator[tuple[str, float]]:
    """Yields the names of the nodes of a kind with their device time, without that of nodes of this kind below."""
    if node["kind"] == kind:
        yield node["name"], node["device_ns"] - sum(_below(child, kind) for child in node["children"])
    for child in node["children"]:
        yield from _own_times(child, kind)


def _below(node: dict[str, Any], kind: str) -> float:
    own = node["device_ns"] if node["kind"] == kind else sum(_below(child, kind) for child in node["children"])
    return float(own)


def _function(frame: str) -> str:
    file, _, rest = frame.partition(".py")
    return f"{file.rsplit('/', 1)[-1]}.py: {rest.partition(': ')[2]}" if rest else ""


def _cell(text: str) -> str:
    return (text if len(text) <= 60 else f"{text[:40]}…{text[-19:]}").replace("|", "\\|")


if __name__ == "__main__":
    main()
