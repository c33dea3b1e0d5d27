"""The command line: `tb-bottleneck`, or `python -m tb_bottleneck`."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from tb_bottleneck.commands import calibrate, capture, compare, diagnose, run, sweep_loader, what_if
from tb_bottleneck.errors import NotFound, Unusable
from tb_bottleneck.version import __version__

_COMMANDS = (diagnose, compare, what_if, run, capture, calibrate, sweep_loader)
INTERRUPTED = 130
"""As a shell tells it of a program that SIGINT ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status: 0; 1 where a budget is not kept or a file could not be written; 2
    where a path does not exist or the usage is wrong; 130 where Ctrl-C ended it. A program of the user's that a command
    runs ends as it ends without us.
    """
    options = _parser().parse_args(argv)
    theirs = getattr(options, "theirs", None)
    try:
        if theirs is None and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that knows no "µ" still shows the rest
        status = int(options.run(options))
        sys.stdout.flush()
    except (NotFound, Unusable) as error:
        print(f"tb-bottleneck: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if theirs is None else int(theirs(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tb-bottleneck",
        description="Tells why a PyTorch training run is slow, and what to change first.",
        epilog=diagnose.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
