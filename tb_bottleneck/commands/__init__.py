"""The commands of the command line, one module each, in the order of `--help`.

Each module has `add(commands)`, which declares the arguments of its command and sets `run`, a function that takes the
parsed options and returns the exit status. A command that runs the user's own program also sets `run_program`, which is
called after `run`, outside of the error handling of the command line. A command imports the modules that it needs only
when it runs, so that `--help` is fast.
"""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import argparse

    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
