"""`tb-bottleneck schema`: prints the JSON Schema of what a command prints with --json."""

import argparse
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

NAMES = ("diagnose", "compare", "what-if", "tree", "tables")
EXAMPLES = """\
examples:
  tb-bottleneck schema                             the names
  tb-bottleneck schema diagnose > diagnose.schema.json

The schemas are JSON Schema, draft 2020-12. Later versions may add fields, so unknown ones are allowed.
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    schema = add_subparser(
        commands,
        "schema",
        "print the JSON Schema of the --json output of a command",
        "Prints the JSON Schema of what a command prints with --json. Without a name, prints the names.",
        EXAMPLES,
    )
    schema.add_argument("name", nargs="?", choices=NAMES, metavar="NAME", help=f"the command: {', '.join(NAMES)}")
    schema.set_defaults(run=_schema)


def _schema(options: argparse.Namespace) -> int:
    from importlib.resources import files

    if options.name is None:
        print("\n".join(NAMES))
        return 0
    folder = files("tb_bottleneck") / "schema" / "json"
    print((folder / f"{options.name}.schema.json").read_text(encoding="utf-8"), end="")
    return 0
