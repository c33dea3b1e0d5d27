"""`tb-bottleneck mcp`: serves the recordings of a logdir to coding agents, over the Model Context Protocol."""

import argparse
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck mcp runs/                                       on stdin and stdout, until the client ends
  claude mcp add tb-bottleneck -- tb-bottleneck mcp /data/runs  adds it to Claude Code

All tools only read, and only what is under LOGDIR: recordings have the ids of the tab. Needs the SDK of the protocol:
pip install "tb_bottleneck[mcp]".

Pages that tell an agent how to record, diagnose and confirm are in the package: tb_bottleneck/docs/skill. Copy the
folder to the skills of your agent, for example to .claude/skills/tb-bottleneck.

exit status: 0 when the client ends; 2 if there is no such folder, or the SDK is not installed
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    mcp = add_subparser(
        commands,
        "mcp",
        "serve the recordings of a logdir to coding agents (MCP)",
        "Serves read-only tools over the Model Context Protocol: runs with verdicts, briefs and reports, the tree, "
        "tables, comparisons, predictions, how to record what is missing, reviews, live jobs.",
        EXAMPLES,
    )
    mcp.add_argument("logdir", metavar="LOGDIR", help="the --logdir (or --logdir_spec) of TensorBoard")
    mcp.set_defaults(run=_mcp)


def _mcp(options: argparse.Namespace) -> int:
    try:
        from tb_bottleneck.agents.server import serve
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise Unusable('the SDK of the protocol is not installed: pip install "tb_bottleneck[mcp]"') from error
    serve(options.logdir)
    return 0
