"""Declares a command, with a help text that is wrapped to the terminal and examples that are not wrapped."""

import argparse
import re
import shutil
import textwrap
from typing import TYPE_CHECKING, Any, NoReturn

from tb_bottleneck.errors import did_you_mean

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

MIN_WIDTH = 40  # characters


_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser whose messages about unknown commands, options and values name the most similar one.

    Python 3.14 has `suggest_on_error`, which leaves options out.
    """

    def error(self, message: str) -> NoReturn:
        """Prints the message with a suggestion, and exits with status 2."""
        choice = _CHOICE.search(message)
        super().error(message + (did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""))

    def parse_known_args(self, *arguments: Any, **options: Any) -> Any:
        """Parses the arguments; an unknown one is an error of this command, not of the main parser."""
        parsed, unknown = super().parse_known_args(*arguments, **options)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(unknown[0], known)}")
        return parsed, unknown


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
