"""Runs a program in this process, as Python would run it."""

import os
import runpy
import sys
from collections.abc import Sequence


def run_script(script: str, arguments: Sequence[str]) -> None:
    """Runs the script like `python script arguments…`: its folder comes first on the search path."""
    sys.argv = [script, *arguments]
    _put_first_on_path(os.path.dirname(os.path.realpath(script)))
    runpy.run_path(script, run_name="__main__")


def run_module(arguments: Sequence[str]) -> None:
    """Runs the module like `python -m module arguments…`: the working directory comes first on the search path."""
    sys.argv = list(arguments)
    _put_first_on_path(os.getcwd())
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _put_first_on_path(folder: str) -> None:
    """Replaces our own folder, which Python has put first on the path. With `-P`, Python puts none there."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
