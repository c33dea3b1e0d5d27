"""`tb-bottleneck skill`: installs the instructions for coding agents."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck skill                            prints the first page
  tb-bottleneck skill --install .claude/skills   writes .claude/skills/tb-bottleneck/SKILL.md and its pages

The pages say how to record, to diagnose, and to confirm a fix. A page that you have changed is not overwritten.

exit status: 0; 1 if a file cannot be written; 2 if a page was changed and --force is not given
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    skill = add_subparser(
        commands,
        "skill",
        "install instructions for coding agents: record, diagnose, confirm",
        "Copies a skill for coding agents: how to record a training, to diagnose it, and to confirm a fix.",
        EXAMPLES,
    )
    skill.add_argument("--install", metavar="DIR", help="the folder of the skills of your agent")
    skill.add_argument("--force", action="store_true", help="overwrite pages that were changed")
    skill.set_defaults(run=_skill)


def _skill(options: argparse.Namespace) -> int:
    from tb_bottleneck.agents.skill import NAME, install, pages

    if options.install is None:
        print(pages()["SKILL.md"].decode("utf-8"), end="")
        return 0
    try:
        written = install(Path(options.install), options.force)
    except OSError as error:
        print(f"tb-bottleneck: {error.filename}: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    for path in written:
        print(path)
    if not written:
        print(f"{Path(options.install) / NAME} is up to date")
    return 0
