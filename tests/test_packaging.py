"""What is installed: the entry points, what importing them costs, and what a wheel and an sdist hold."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import entry_points, version
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
    """Which of these modules a fresh interpreter has after importing `module`."""
    script = f"import sys, {module}; print(*(name for name in {suspects} if name in sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()


def test_tensorboard_finds_the_plugin_by_its_entry_point() -> None:
    (found,) = [entry for entry in entry_points(group="tensorboard_plugins") if entry.name == "tb_bottleneck"]
    assert found.load().__name__ == "BottleneckLoader"


def test_the_entry_module_imports_next_to_nothing() -> None:
    """An import error in it keeps TensorBoard from starting; so it imports no room of ours and nothing heavy."""
    assert imported_by("tb_bottleneck.plugin.entry", HEAVY) == []


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert imported_by("tb_bottleneck", (*HEAVY, "tensorboard")) == []


def test_the_version_is_kept_in_one_place() -> None:
    assert version("tb_bottleneck") == tb_bottleneck.__version__


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with a tab that was not really built, so that no npm is needed."""
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
    """Builds a wheel or an sdist with the setuptools that is here; the one file made."""
    made = checkout / "made" / kind
    run = [sys.executable, "setup.py", "-q", kind, "--dist-dir", str(made)]
    without_npm = {**os.environ, "TB_BOTTLENECK_NO_TAB": "1"}
    subprocess.run(run, cwd=checkout, env=without_npm, check=True, capture_output=True)
    (archive,) = made.iterdir()
    return archive


def test_the_wheel_holds_the_package_and_nothing_else(checkout: Path) -> None:
    with zipfile.ZipFile(build(checkout, "bdist_wheel")) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        entries = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("entry_points.txt"))
        licences = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
    code = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py")}
    facts = {path.relative_to(ROOT).as_posix() for path in (PACKAGE / "knowledge").rglob("*.toml")}
    data = {
        f"tb_bottleneck/{name}"
        for name in (
            "py.typed",
            "plugin/http_api.md",
            "plugin/static/LICENSES.txt",
            "plugin/static/index.js",
        )
    }
    schema = {path.relative_to(ROOT).as_posix() for end in ("proto", "pyi") for path in PACKAGE.glob(f"schema/*.{end}")}
    assert held == code | facts | data | schema
    assert "tb-bottleneck = tb_bottleneck.__main__:main" in entries
    assert licences


def test_the_sdist_holds_the_built_tab_and_its_sources(checkout: Path) -> None:
    (checkout / "frontend" / "node_modules" / "x").mkdir(parents=True)
    (checkout / "frontend" / "node_modules" / "x" / "big.js").write_text("")
    with tarfile.open(build(checkout, "sdist")) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"setup.py", "LICENSE", "tb_bottleneck/plugin/static/index.js", "frontend/package.json"} <= held
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "frontend" / "src").rglob("*.ts*")} <= held
    unwanted = ("frontend/node_modules", "frontend/pictures", "frontend/test", "tests", "demo")
    assert not [name for name in held if name.startswith(unwanted)]
