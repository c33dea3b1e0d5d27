"""The command line: `tb-bottleneck`, or `python -m tb_bottleneck`."""

import argparse
import os
import sys
from collections.abc import Sequence

from tb_bottleneck import __version__
from tb_bottleneck.commands import calibrate, capture, compare, diagnose, run, sweep_loader, what_if
from tb_bottleneck.errors import NotFound, Unusable

_COMMANDS = (diagnose, compare, what_if, run, capture, calibrate, sweep_loader)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status: 0; 1 where a budget is not kept or a file could not be written; 2
    where a path does not exist or the usage is wrong."""
    options = _parser().parse_args(argv)
    try:
        return int(options.run(options))
    except (NotFound, Unusable) as error:
        print(f"tb-bottleneck: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


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
