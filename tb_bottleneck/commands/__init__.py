"""The commands of the command line, one file each, in the order that `--help` shows them.

Each has `add(commands)`, which declares its arguments and sets `run`, a function from the parsed options to the exit
status, and where it runs a program of the user's, `theirs`, which does so, outside of our own border for errors. A
command imports what it works with when it runs, so that asking for help costs nothing.
"""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import argparse

    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
