"""Tests of the installed package: entry points, dependencies, import cost, and the content of wheel and sdist."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import entry_points, packages_distributions, version
from pathlib import Path

import pytest

import tb_bottleneck

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tb_bottleneck"

HEAVY = (
    "numpy",
    "torch",
    "msgspec",
    "google.protobuf",
    "werkzeug",
    "tb_bottleneck.plugin.plugin",
    "tb_bottleneck.schema",
)


def imported_by(module: str, suspects: tuple[str, ...]) -> list[str]:
    """Returns those of the suspects that a fresh interpreter has loaded after importing `module`."""
    script = f"import sys, {module}; print(*(name for name in {suspects} if name in sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()


def test_tensorboard_finds_the_plugin_by_its_entry_point() -> None:
    (found,) = [entry for entry in entry_points(group="tensorboard_plugins") if entry.name == "tb_bottleneck"]
    assert found.load().__name__ == "BottleneckLoader"


def test_the_entry_module_imports_almost_nothing() -> None:
    """An import error in it would prevent TensorBoard from starting, so it imports none of our layers."""
    assert imported_by("tb_bottleneck.plugin.entry", HEAVY) == []


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert imported_by("tb_bottleneck", (*HEAVY, "tensorboard")) == []


def test_the_public_names_are_imported_on_first_use() -> None:
    assert tb_bottleneck.__all__ == [
        "Monitor",
        "__version__",
        "as_metadata",
        "brief",
        "compare",
        "diagnose",
        "trace_handler",
    ]
    assert all(getattr(tb_bottleneck, name) for name in tb_bottleneck.__all__)
    assert '"schema": 1' in tb_bottleneck.as_metadata()
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = tb_bottleneck.absent


OPTIONAL = {
    "torch": "the user's own; never installed or pinned by this package",
    "amdsmi": "the AMD driver stack provides it",
    "lightning": "only for the callback of its users",
    "pytorch_lightning": "only for the callback of its users",
    "transformers": "only for the callback of its users",
}
"""Third-party packages that are imported if they are installed, and why they are not declared."""


def imported_packages() -> set[str]:
    """Returns the top-level names of all imports in the package, except our own and the standard library's."""
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"tb_bottleneck"}


def declared_distributions() -> set[str]:
    """Returns the normalised names of install_requires and of the extras that users install."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    (call,) = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and ast.unparse(node.func) == "setup"
    ]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    extras = ast.literal_eval(keywords["extras_require"])
    users = [requirement for extra in extras.keys() - {"test", "demo"} for requirement in extras[extra]]
    requirements = ast.literal_eval(keywords["install_requires"]) + users
    return {normalised(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}  # type: ignore[index]


def normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_every_third_party_import_is_declared() -> None:
    distributions = packages_distributions() | {
        "google": ["protobuf"],
        "tomli": ["tomli"],
        "distributed": ["distributed"],
        "mcp": ["mcp"],
    }
    undeclared = {
        name
        for name in imported_packages() - OPTIONAL.keys()
        if not declared_distributions() & set(map(normalised, distributions.get(name, [])))
    }
    assert undeclared == set()


def test_the_version_is_kept_in_one_place() -> None:
    assert version("tb_bottleneck") == tb_bottleneck.__version__


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with a stub in place of the built tab, so that npm is not needed."""
    copy = tmp_path_factory.mktemp("packaging") / "checkout"
    unwanted = shutil.ignore_patterns("static", "__pycache__", "node_modules", "*.egg-info", "build", "dist")
    copy.mkdir()
    for name in ("tb_bottleneck", "frontend"):
        shutil.copytree(ROOT / name, copy / name, ignore=unwanted)
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=lambda folder, names: {*names} - {"test_packaging.py"})
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy)
    static = copy / "tb_bottleneck" / "plugin" / "static"
    static.mkdir()
    (static / "index.js").write_text("export function render() {}\n")
    (static / "LICENSES.txt").write_text("none\n")
    return copy


def build(checkout: Path, kind: str) -> Path:
    """Builds a wheel or an sdist with the installed setuptools and returns the file."""
    made = checkout / "made" / kind
    run = [sys.executable, "setup.py", "-q", kind, "--dist-dir", str(made)]
    without_npm = {**os.environ, "TB_BOTTLENECK_NO_TAB": "1"}
    subprocess.run(run, cwd=checkout, env=without_npm, check=True, capture_output=True)
    (archive,) = made.iterdir()
    return archive


def test_the_wheel_contains_the_package_and_nothing_else(checkout: Path) -> None:
    with zipfile.ZipFile(build(checkout, "bdist_wheel")) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        entries = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("entry_points.txt"))
        licences = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
    code = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py")}
    facts = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.toml")}
    data = {
        f"tb_bottleneck/{name}"
        for name in (
            "py.typed",
            "native/scanner.pyi",
            "plugin/http_api.md",
            "plugin/static/LICENSES.txt",
            "plugin/static/index.js",
        )
    }
    schema = {path.relative_to(ROOT).as_posix() for end in ("proto", "pyi") for path in PACKAGE.glob(f"schema/*.{end}")}
    schema |= {path.relative_to(ROOT).as_posix() for path in PACKAGE.glob("schema/json/*.json")}
    skill = {path.relative_to(ROOT).as_posix() for path in PACKAGE.glob("docs/skill/*.md")}
    scanner = {name for name in held if re.fullmatch(r"tb_bottleneck/native/scanner\.(abi3\.so|pyd)", name)}
    assert len(scanner) <= 1  # none without a compiler
    assert held - scanner == code | facts | data | schema | skill
    assert "tb-bottleneck = tb_bottleneck.__main__:main" in entries
    assert licences


def test_the_sdist_contains_the_built_tab_and_its_sources(checkout: Path) -> None:
    (checkout / "frontend" / "node_modules" / "x").mkdir(parents=True)
    (checkout / "frontend" / "node_modules" / "x" / "big.js").write_text("")
    with tarfile.open(build(checkout, "sdist")) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"setup.py", "LICENSE", "tb_bottleneck/plugin/static/index.js", "frontend/package.json"} <= held
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "frontend" / "src").rglob("*.ts*")} <= held
    unwanted = ("frontend/node_modules", "frontend/pictures", "frontend/test", "tests", "demo")
    assert not [name for name in held if name.startswith(unwanted)]
