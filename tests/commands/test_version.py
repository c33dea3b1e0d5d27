"""`--version` names the reader, and a diagnosis imports only what it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.native import VARIABLE
from tb_bottleneck.version import __version__

TRACE = Path(__file__).parents[1] / "traces" / "sound.json"
PACKAGES = {"numpy", "msgspec", "google", "zlib_ng", "tb_bottleneck", "tomli", "typing_extensions"}
"""Third-party packages that the diagnosis of a trace imports."""
NOT_IMPORTED = {
    "asyncio",
    "concurrent",
    "email",
    "http",
    "multiprocessing",
    "numpy.ma",
    "rich",
    "sqlite3",
    "ssl",
    "unittest",
}


def version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_reader_is_named(capsys, monkeypatch):
    monkeypatch.setenv(VARIABLE, "pure")
    assert version(capsys) == f"tb-bottleneck {__version__} (reader: pure)\n"
    monkeypatch.setenv(VARIABLE, "other")
    assert version(capsys).startswith(f"tb-bottleneck {__version__} (reader: none: {VARIABLE} is 'other'")


def test_a_diagnosis_imports_few_packages():
    code = (
        "import sys; before = set(sys.modules); from tb_bottleneck.__main__ import main; "
        f"main(['diagnose', '--no-cache', '--json', {str(TRACE)!r}]); "
        "print(*(set(sys.modules) - before), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(run.stderr.split())
    packages = {module.partition(".")[0].split("$")[0] for module in modules} - sys.stdlib_module_names
    packages = {package for package in packages if not package.endswith("__mypyc")}  # the compiled part of tomli
    assert packages <= PACKAGES, packages - PACKAGES
    assert not (modules & NOT_IMPORTED)
