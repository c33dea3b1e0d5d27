"""The command line: `tb-bottleneck`, or `python -m tb_bottleneck`."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tb_bottleneck.base.errors import NoCluster, NotFound, Unreadable, Unusable
from tb_bottleneck.commands.arguments import Parser, version_text

_MODULES = {
    "diagnose": "diagnose",
    "list": "list_runs",
    "tree": "tree",
    "compare": "compare",
    "what-if": "what_if",
    "export": "export",
    "review": "review",
    "run": "run",
    "watch": "watch",
    "capture": "capture",
    "try": "try_change",
    "doctor": "doctor",
    "mcp": "mcp",
}
"""The modules of the commands, in the order of the list of commands."""

REPLACED = {
    "calibrate": "`tb-bottleneck doctor` measures the peak rates of this machine's device and stores them",
    "schema": "the JSON Schemas are files of the package: tb_bottleneck/schema/json",
    "tables": "`tb-bottleneck tree RUN --by operator` (or kernel, communication; waits: `--by line --sort wait`)",
    "skill": "the pages for coding agents are files of the package: tb_bottleneck/docs/skill",
}
"""What replaces the commands of version 1.0.0 that no longer exist."""
INTERRUPTED = 130
"""Exit status that a shell reports for a program that SIGINT ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status: 0; 1 if a gate fails, a recording is unreadable or a file cannot be
    written; 2 for wrong usage, a missing path or no recording; 130 after Ctrl-C. If the command `run` runs a program,
    the exit status and the exceptions are those of the program."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command: list[str] = []
    if arguments[:1] and arguments[0] in REPLACED:
        print(f"tb-bottleneck: there is no command {arguments[0]} any more: {REPLACED[arguments[0]]}", file=sys.stderr)
        return 2
    if arguments[:1] == ["try"]:  # what follows -- is the command of a program, with options of its own
        from tb_bottleneck.commands.try_change import command_of

        arguments, command = command_of(arguments)
    options = argument_parser(*arguments[:1]).parse_args(arguments)
    options.command = command
    run_program = getattr(options, "run_program", None)
    try:
        if run_program is None and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # for a terminal without "µ"
        status = int(options.run(options))
        sys.stdout.flush()
    except (NoCluster, NotFound, Unusable, Unreadable) as error:
        from tb_bottleneck.base.units import one_line

        print(f"tb-bottleneck: {one_line(error)}", file=sys.stderr)
        return 1 if isinstance(error, Unreadable) else 2
    except BrokenPipeError:
        # The reader of our output has ended, as `| head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if run_program is None else int(run_program(options))


def argument_parser(first: str = "") -> argparse.ArgumentParser:
    """Returns the parser of the command line for arguments that begin with `first`: with one command if `first` is its
    name, else with all commands."""
    names = () if first == "--version" else (first,) if first in _MODULES else tuple(_MODULES)
    modules = {name: import_module(f"tb_bottleneck.commands.{_MODULES[name]}") for name in names}
    parser = Parser(
        prog="tb-bottleneck",
        description="Explains why a PyTorch training run is slow, and what to change first.",
        epilog=modules["diagnose"].EXAMPLES if len(modules) > 1 else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="show the version and which reader of traces is used")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in modules.values():
        module.add(commands)
    return parser


class _Version(argparse.Action):
    """Prints the version."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(parser.prog, version_text())
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
