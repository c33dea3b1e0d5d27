"""Imports point one way: each room may import only the rooms named here, whatever form the import takes."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tb_bottleneck"
ROOT = {"errors", "units", "intervals"}

ALLOWED = {
    "schema": set(),
    "knowledge": set(),
    "monitor": {"schema"},
    "sources": {"schema"},
    "trace": {"sources", "knowledge"},
    "telemetry": {"schema"},
    "measures": {"trace", "telemetry", "knowledge"},
    "regimes": {"measures"},
    "replay": {"trace", "measures", "knowledge"},
    "report": {"schema", "sources", "knowledge", "trace", "measures", "regimes", "replay"},
    "diagnosis": {"schema", "trace", "measures", "regimes", "replay", "report"},
    "live": {"schema", "sources", "telemetry", "measures", "regimes", "report"},
    "comparison": {"schema", "knowledge", "trace", "measures", "replay", "report", "diagnosis"},
    "evidence": {"schema", "knowledge", "trace", "measures", "report"},
    "plugin": {
        "schema",
        "sources",
        "knowledge",
        "report",
        "comparison",
        "evidence",
        "live",
        "telemetry",
    },
    "commands": {"schema", "sources", "report", "diagnosis", "comparison", "monitor", "live"},
    "__main__": {"commands"},
    "__init__": {"diagnosis", "comparison", "monitor"},
    "errors": set(),
    "units": set(),
    "intervals": set(),
}
# Heavy or optional packages, and the only rooms that may import them.
DOORS = {
    "torch": {"monitor"},
    "pynvml": {"monitor"},
    "psutil": {"monitor"},
    "amdsmi": {"monitor"},
    "threadpoolctl": {"monitor"},
    "lightning": {"monitor"},
    "pytorch_lightning": {"monitor"},
    "transformers": {"monitor"},
    "werkzeug": {"plugin"},
    "tensorboard": {"plugin", "monitor", "sources"},
    "msgspec": {"sources"},
    "zlib_ng": {"sources"},
    "fsspec": {"sources"},
    "platformdirs": {"report", "monitor"},
}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.endswith("_pb2.py"))


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imported(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which way an arrow points"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_lies_before_it(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    room = parts[0]
    assert room in ALLOWED, f"{room} is not a room of the house"
    for name in imported(ast.parse(path.read_text())):
        top = name.split(".")[0]
        if top == "tb_bottleneck":
            target = room_of(name)
            if name in ("tb_bottleneck", "tb_bottleneck.__version__") or target == room or target in ROOT:
                continue
            assert target in ALLOWED[room], f"{room} imports {name}"
        elif top in DOORS:
            assert room in DOORS[top], f"{room} imports {top}"
        else:
            assert top in sys.stdlib_module_names | {"numpy", "google", "rich", "tomli"}, f"{room} imports {top}"


def test_no_arrow_leads_back():
    """The table itself has no circle."""
    done: set[str] = set()
    rest = {room: set(targets) for room, targets in ALLOWED.items()}
    while rest:
        free = {room for room, targets in rest.items() if targets <= done}
        assert free, f"a circle among {sorted(rest)}"
        done |= free
        rest = {room: targets for room, targets in rest.items() if room not in free}
