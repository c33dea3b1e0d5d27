"""Finds the program in a command, and runs a program in this process, as Python would run it."""

import os
import runpy
import sys
from collections.abc import Sequence

from tb_bottleneck.base.units import one_line


def program_of(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the interpreter and the other words of a command such as `python train.py --epochs 3`.

    Raises:
        ValueError: the command does not start a Python program.
    """
    words = list(command)
    if not words:
        raise ValueError("there is no command: put it after --, for example: -- python train.py --epochs 3")
    name = os.path.basename(words[0])
    if name.startswith("python"):
        python = sys.executable if name in ("python", "python3") else words.pop(0)
        words = words if python != sys.executable else words[1:]
        while words and words[0] == "-u":
            words = words[1:]
    elif words[0].endswith(".py"):
        python = sys.executable
    else:
        raise ValueError(
            f"{one_line(words[0])} is no Python program. Give the command of one process: -- python train.py …; what "
            "torchrun or accelerate launch would start."
        )
    if not words or (words[0].startswith("-") and words[0] != "-m"):
        raise ValueError("only `python SCRIPT …` and `python -m MODULE …` can be tried")
    return python, tuple(words)


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
