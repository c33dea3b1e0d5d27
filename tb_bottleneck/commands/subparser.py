"""Declares a command, with a help text that is wrapped to the terminal and examples that are not wrapped."""

import argparse
import shutil
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

MIN_WIDTH = 40  # characters


def add_subparser(
    commands: "Subparsers", name: str, summary: str, description: str, examples: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """Returns the parser of a new command. `summary` is shown in the list of commands, `examples` below the options."""
    width = max(shutil.get_terminal_size().columns - 2, MIN_WIDTH)
    return commands.add_parser(
        name,
        help=summary,
        usage=usage,
        description=textwrap.fill(description, width),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
