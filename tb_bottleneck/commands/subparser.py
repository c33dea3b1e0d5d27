"""Declares a command so that its help teaches: prose as wide as the terminal, examples as they were laid out."""

import argparse
import shutil
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

NARROWEST = 40


def add_subparser(
    commands: "Subparsers", name: str, summary: str, description: str, examples: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """The parser of a new command. `summary` stands in the list of commands, `examples` below the options."""
    width = max(shutil.get_terminal_size().columns - 2, NARROWEST)
    return commands.add_parser(
        name,
        help=summary,
        usage=usage,
        description=textwrap.fill(description, width),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
