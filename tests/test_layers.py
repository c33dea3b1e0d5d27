"""Imports point one way in Python and TypeScript: each layer imports only the layers below it, without a cycle."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tb_bottleneck"
BASE = {"base", "version"}
"""Layers that every other one may import: the package of what is not about traces, and the version."""

ALLOWED = {
    "schema": set(),
    "knowledge": set(),
    "monitor": {"schema"},
    "trial": {
        "bottlenecks",
        "text",
        "schema",
        "sources",
        "monitor",
        "telemetry",
        "report",
        "diagnosis",
        "review",
        "knowledge",
    },
    "native": set(),
    "workers": {"schema"},
    "sources": {"schema", "native"},
    "trace": {"sources", "knowledge", "native"},
    "telemetry": {"schema"},
    "live": {"schema", "sources", "knowledge"},
    "roofline": {"trace", "knowledge"},
    "attribution": {"trace", "telemetry", "knowledge", "roofline"},
    "memory": {"schema", "sources", "trace", "telemetry", "knowledge"},
    "measures": {"trace", "telemetry", "memory", "knowledge", "roofline", "attribution"},
    "quality": {"trace", "telemetry", "knowledge", "roofline", "attribution", "measures"},
    "replay": {"trace", "knowledge", "roofline", "attribution", "measures"},
    "bottlenecks": {
        "trace",
        "telemetry",
        "memory",
        "knowledge",
        "roofline",
        "attribution",
        "measures",
        "replay",
        "sources",
    },
    "report": {
        "schema",
        "sources",
        "knowledge",
        "trace",
        "memory",
        "roofline",
        "attribution",
        "measures",
        "quality",
        "bottlenecks",
        "replay",
    },
    "jobs": {
        "bottlenecks",
        "schema",
        "sources",
        "knowledge",
        "trace",
        "attribution",
        "measures",
        "replay",
        "report",
        "diagnosis",
        "workers",
    },
    "diagnosis": {
        "schema",
        "sources",
        "trace",
        "telemetry",
        "memory",
        "attribution",
        "measures",
        "quality",
        "bottlenecks",
        "replay",
        "report",
    },
    "comparison": {
        "bottlenecks",
        "schema",
        "knowledge",
        "trace",
        "memory",
        "roofline",
        "attribution",
        "measures",
        "replay",
        "report",
        "diagnosis",
    },
    "text": {
        "bottlenecks",
        "schema",
        "sources",
        "knowledge",
        "trace",
        "replay",
        "report",
        "comparison",
        "review",
        "drilldown",
    },
    "review": {"bottlenecks", "schema", "sources", "knowledge", "report", "comparison"},
    "drilldown": {
        "bottlenecks",
        "schema",
        "knowledge",
        "trace",
        "memory",
        "roofline",
        "attribution",
        "measures",
        "replay",
        "report",
        "jobs",
    },
    "export": {"schema", "trace", "attribution", "jobs", "diagnosis"},
    "plugin": {
        "bottlenecks",
        "schema",
        "sources",
        "knowledge",
        "report",
        "jobs",
        "comparison",
        "review",
        "drilldown",
        "diagnosis",
        "telemetry",
        "live",
        "workers",
        "trial",
    },
    "doctor": {
        "bottlenecks",
        "native",
        "schema",
        "sources",
        "knowledge",
        "trace",
        "telemetry",
        "attribution",
        "measures",
        "quality",
        "report",
        "diagnosis",
        "monitor",
        "plugin",
        "text",
    },
    "agents": {
        "schema",
        "sources",
        "report",
        "review",
        "live",
        "diagnosis",
        "plugin",
        "workers",
        "text",
    },
    "commands": {
        "bottlenecks",
        "native",
        "agents",
        "doctor",
        "schema",
        "sources",
        "report",
        "diagnosis",
        "jobs",
        "comparison",
        "review",
        "export",
        "drilldown",
        "live",
        "trial",
        "monitor",
        "text",
    },
    "__main__": {"commands"},
    "__init__": {"diagnosis", "comparison", "monitor", "schema", "text"},
    **{name: set() for name in BASE},
}
# Heavy or optional packages, and the only layers that may import them.
THIRD_PARTY = {
    "torch": {"monitor", "trial", "doctor"},
    "pynvml": {"monitor"},
    "psutil": {"monitor", "live"},
    "amdsmi": {"monitor"},
    "mcp": {"agents"},
    "threadpoolctl": {"monitor"},
    "lightning": {"monitor"},
    "pytorch_lightning": {"monitor"},
    "transformers": {"monitor"},
    "werkzeug": {"plugin"},
    "tensorboard": {"plugin", "sources"},
    "msgspec": {"sources", "base", "knowledge", "live"},
    "zlib_ng": {"sources"},
    "zstandard": {"sources"},
    "lz4": {"sources"},
    "fsspec": {"sources"},
    "distributed": {"jobs"},
    "pyarrow": {"export"},
    "platformdirs": {"base"},
    "rich": {"text", "live", "commands"},
}
EVERYWHERE = sys.stdlib_module_names | {"numpy", "google", "tomli"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.endswith("_pb2.py"))
MOST_MODULES, MOST_LEVELS = 20, 2
"""Modules in one folder, and folders above it inside the package."""


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


@cache
def imported(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction of a dependency"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_layer_imports_only_the_layers_below_it(path):
    layer = path.relative_to(PACKAGE).with_suffix("").parts[0]
    assert layer in ALLOWED, f"{layer} is not a known layer"
    for name in imported(path):
        top = name.split(".")[0]
        if top == "tb_bottleneck":
            target = layer_of(name)
            assert target in ALLOWED[layer] | BASE | {layer}, f"{layer} imports {name}"
        elif top in THIRD_PARTY:
            assert layer in THIRD_PARTY[top], f"{layer} imports {top}"
        else:
            assert top in EVERYWHERE, f"{layer} imports {top}"


def test_the_layers_have_no_cycle():
    assert_no_cycle(ALLOWED)


def test_the_modules_have_no_cycle():
    names = {name_of(path): path for path in MODULES}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        targets = {target if target in names else target.rpartition(".")[0] for target in imported(path)}
        graph[name] = {target for target in targets if target in names and target != name}
    assert_no_cycle(graph)


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=lambda path: path.name)
def test_a_folder_has_few_modules_and_is_not_deep(folder):
    loose = [path for path in MODULES if path.parent == folder and path.name != "__init__.py"]
    assert len(loose) <= MOST_MODULES
    assert len(folder.relative_to(PACKAGE).parts) <= MOST_LEVELS


MAY_IMPORT = {"facts": {"facts"}, "rule": {"facts", "rule"}, "fixes": {"facts", "fixes"}}
"""Inside bottlenecks/: facts come first, then rules, which see facts only, and fixes, which are independent of
rules."""


def part_of_slice(module: str) -> str:
    """Returns "rule", "fixes" or "facts" for a module in the folder of a bottleneck; "" for any other module."""
    parts = module.split(".")
    if parts[:2] != ["tb_bottleneck", "bottlenecks"] or len(parts) < 4:
        return ""
    return {"rule": "rule", "telemetry_rule": "rule", "fixes": "fixes", "worker_number": "fixes"}.get(parts[3], "facts")


@pytest.mark.parametrize("path", [path for path in MODULES if part_of_slice(name_of(path))], ids=name_of)
def test_rules_and_fixes_of_a_bottleneck_see_facts_only(path):
    part = part_of_slice(name_of(path))
    for name in imported(path):
        target = part_of_slice(name) if (PACKAGE.parent / name.replace(".", "/")).with_suffix(".py").exists() else ""
        target = target or part_of_slice(name.rpartition(".")[0])
        assert not target or target in MAY_IMPORT[part], f"{part} imports {name}"


def assert_no_cycle(graph: dict[str, set[str]]) -> None:
    rest = {name: set(targets) for name, targets in graph.items()}
    while rest:
        imported_by_rest = set().union(*rest.values())
        free = {name for name, targets in rest.items() if not targets or name not in imported_by_rest}
        assert free, f"a cycle among {sorted(rest)}"
        rest = {name: targets - free for name, targets in rest.items() if name not in free}


# --- The native scanner ---

NATIVE = PACKAGE / "native"
_INCLUDE = re.compile(r"^#include (<.+>|\".+\")", re.MULTILINE)


@pytest.mark.parametrize("path", [*NATIVE.glob("*.c"), *NATIVE.glob("*.h")], ids=lambda path: path.name)
def test_only_the_binding_of_the_scanner_knows_python(path):
    """So the rest can be fuzzed as plain C. A header is included by its own folder only."""
    for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
        assert name != "<Python.h>" or path.name == "module.c"
        assert name.startswith("<") or (NATIVE / name.strip('"')).exists()


def test_the_native_scanner_is_small():
    code = [re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S) for path in NATIVE.glob("*.[ch]")]
    assert sum(bool(line.strip()) for text in code for line in text.splitlines()) <= 2_500, "without comments"


# --- The front end ---

FRONTEND = PACKAGE.parent / "frontend" / "src"
BETWEEN_FEATURES: set[tuple[str, str]] = set()
"""Imports between features."""
SCRIPTS = sorted(path for path in FRONTEND.rglob("*.ts*") if not path.name.endswith(".d.ts"))
_IMPORT = re.compile(r'(?:from |import |import\()"(\.[^"]+)"')


@cache
def imported_scripts(path: Path) -> tuple[Path, ...]:
    """Returns the files of static, type-only and dynamic imports; style sheets are left out."""
    bases = [(path.parent / name).resolve() for name in _IMPORT.findall(path.read_text(encoding="utf-8"))]
    found = []
    for base in bases:
        candidates = [base.with_name(base.name + end) for end in (".ts", ".tsx")]
        file = next((file for file in candidates if file.exists()), None)
        assert file is not None or base.suffix == ".css", f"{path} imports {base}"
        found += [file] if file is not None else []
    return tuple(found)


def part_of(path: Path) -> tuple[str, ...]:
    """Returns ("app",), ("shared",) or ("features", name)."""
    parts = path.relative_to(FRONTEND).parts
    return parts[:2] if parts[0] == "features" else parts[:1]


def test_the_front_end_imports_point_one_way():
    """app imports features and shared, features import shared, shared imports neither."""
    assert len(SCRIPTS) > 80
    between = set()
    for path in SCRIPTS:
        for target in imported_scripts(path):
            source, goal = part_of(path), part_of(target)
            if source == goal or source == ("app",) or goal == ("shared",):
                continue
            assert source[0] == goal[0] == "features", f"{path} imports {target}"
            between.add((source[1], goal[1]))
    assert between == BETWEEN_FEATURES


def test_the_scripts_have_no_cycle():
    assert_no_cycle({str(path): {str(target) for target in imported_scripts(path)} for path in SCRIPTS})
