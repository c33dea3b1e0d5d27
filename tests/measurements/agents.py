"""Measures what an agent has to read to solve problems of the demo: `python tests/measurements/agents.py [--write]`.

A scripted client of `tb-bottleneck mcp` lists the trainings of a problem, reads the brief of the slow one, and takes
the cause and the fix from it. Tokens are characters / 4, of the answers; the list of the tools is read once per
session. Next to them stand the tokens of the report as JSON, and of the recordings (decompressed). The table goes to
stdout, and with --write to tests/measurements/AGENTS.md. It needs the package mcp.
"""

import argparse
import asyncio
import contextlib
import gzip
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from helpers.agent_client import CHARACTERS_PER_TOKEN, Agent, connected  # noqa: E402
from pages import publish  # noqa: E402

from tb_bottleneck.__main__ import main as run_command  # noqa: E402

RECORDED = HERE.parents[1] / "demo" / "recorded"
PROBLEMS = {
    "checkpointing": ("checkpointing", "if step % 1000 == 0:", "--rev BRANCH"),
    "for_loop_optimizer": ("optimizer_for_loop", "fused=True", "fused"),
    "garbage_collection": ("garbage_collection", "gc.freeze()", "gc_freeze"),
    "growing_memory": ("growing_memory", "output.detach()", ""),
    "loader_in_main_process": ("loader_in_main_process", "num_workers=", "workers="),
    "oversubscribed_threads": ("oversubscribed_threads", "torch.set_num_threads(", "threads="),
    "simulated/pageable_copies": ("pageable_copies", "pin_memory=True", "pin_memory"),
    "simulated/slow_rank_of_eight": ("throttled_rank", "nvidia-smi", ""),
}
"""The folders of demo/recorded with the cause that a client must name, a part of the code that it must propose, and how
the change begins with which it would try it; empty if a trial cannot show the fix."""

_SEVERITIES = ("critical", "warning", "info", "none", "")


@dataclass(frozen=True)
class Solved:
    """What a client found about one problem, and the tokens that it read for it."""

    problem: str
    cause: str
    code: str
    trial: str
    list_tokens: int
    brief_tokens: int

    @property
    def tokens(self) -> int:
        """All tokens, without the list of the tools."""
        return self.list_tokens + self.brief_tokens

    @property
    def right(self) -> bool:
        """Whether it is the cause and the fix of the problem."""
        cause, code, trial = PROBLEMS[self.problem]
        tried = self.trial.startswith(trial) if trial else not self.trial
        return self.cause == cause and code in self.code and tried


async def solve(agent: Agent, problem: str) -> Solved:
    """Lists the trainings of a problem, and reads the brief of the most severe one."""
    before = agent.tokens
    rows = (await agent.call("list_runs", find=f"{problem}/"))["rows"]
    listed = agent.tokens
    worst = min(rows, key=lambda row: _SEVERITIES.index(row.get("severity", "")))
    text = (await agent.call("brief", id=worst["id"]))["brief"]
    cause = re.search(r"^Cause: .* \[(\w+)\]", text, re.MULTILINE)
    code = re.search(r"^Fix:\n((?:    .*\n)+)", text, re.MULTILINE)
    trial = re.search(r"^To measure it: tb-bottleneck try (.*) -- ", text, re.MULTILINE)
    found = (match[1] if match else "" for match in (cause, code, trial))
    return Solved(problem, *found, listed - before, agent.tokens - listed)


async def solve_all() -> tuple[int, list[Solved]]:
    """Returns the tokens of the list of the tools, and what a client finds about each problem."""
    async with connected(RECORDED) as agent:
        await agent.tools()
        tools = agent.tokens
        return tools, [await solve(agent, problem) for problem in PROBLEMS]


def json_tokens(problem: str) -> int:
    """Returns the tokens of the reports of the slow training as JSON."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        run_command(["diagnose", str(RECORDED / problem / "slow"), "--json", "--processes", "1"])
    return len(output.getvalue()) // CHARACTERS_PER_TOKEN


def recording_tokens(problem: str) -> int:
    """Returns the tokens of the traces of the slow training, decompressed."""
    traces = sorted((RECORDED / problem / "slow").rglob("*.pt.trace.json.gz"))
    return sum(len(gzip.decompress(trace.read_bytes())) for trace in traces) // CHARACTERS_PER_TOKEN


def page() -> Iterator[str]:
    """Yields the lines of the page."""
    tools, solved = asyncio.run(solve_all())
    yield "# Tokens that an agent reads"
    yield ""
    yield "Written by `python tests/measurements/agents.py --write`: a scripted client of `tb-bottleneck mcp` lists the"
    yield "trainings of a problem of the demo, and reads the brief of the slow one. Tokens are"
    yield "characters / 4. This shows that the cause and the fix are in these answers; it does"
    yield "not show what a model makes of them."
    yield ""
    right = f"{sum(each.right for each in solved)} of {len(solved)}"
    yield f"The list of the tools has {tools:,} tokens and is read once. {right} answers have the cause, the code of"
    yield "the fix, and the command that tries it where a setting makes it."
    yield ""
    yield "| problem | cause and fix | list | brief | both | report as JSON | traces |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for each in solved:
        sizes = (each.list_tokens, each.brief_tokens, each.tokens, json_tokens(each.problem))
        figures = " | ".join(f"{size:,}" for size in (*sizes, recording_tokens(each.problem)))
        yield f"| {each.problem} | {'right' if each.right else f'wrong: {each.cause}'} | {figures} |"


def main() -> int:
    """Prints the page."""
    parser = argparse.ArgumentParser(description="Measures the tokens that an agent reads.")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/AGENTS.md as well")
    publish(page(), HERE / "AGENTS.md", parser.parse_args().write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
