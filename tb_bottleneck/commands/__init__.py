"""The commands of the command line, one module each, in the order of `--help`.

Each module has `add(commands)`, which declares its arguments and sets `run`: a function from the parsed options to the
exit status. A command that runs the user's own program also sets `run_program`, which is called afterwards, outside of
our handling of errors. A command imports what it needs when it runs, so that `--help` is fast.
"""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import argparse

    Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
