"""Runs a program in this process, as Python would run it."""

import os
import runpy
import sys
from collections.abc import Sequence


def run_script(script: str, arguments: Sequence[str]) -> None:
    """Runs the Python file `script` like `python script arguments…`: its folder comes first on the search path."""
    sys.argv = [script, *arguments]
    _put_first_on_path(os.path.dirname(os.path.realpath(script)))
    runpy.run_path(script, run_name="__main__")


def run_module(arguments: Sequence[str]) -> None:
    """Runs a module like `python -m module arguments…`. The first of `arguments` is the module. The working directory
    comes first on the search path."""
    sys.argv = list(arguments)
    _put_first_on_path(os.getcwd())
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _put_first_on_path(folder: str) -> None:
    """Replaces the first entry of `sys.path` with `folder`. Python has put the folder of this program there. With `-P`,
    Python puts none there, and nothing changes."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
