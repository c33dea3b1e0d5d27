"""Advised code for Windows, where worker processes are started by importing the program, from windows_code.toml."""

from collections.abc import Sequence

from tb_bottleneck.knowledge.catalogue import load

_STARTS_WORKERS = "num_workers="


def guarded(lines: Sequence[str]) -> list[str]:
    """Returns lines of code under a guard for the main process, from the first one on that starts workers."""
    first = next((at for at, line in enumerate(lines) if _STARTS_WORKERS in line), None)
    if first is None:
        return list(lines)
    guard: str = load("windows_code.toml")["worker_guard"]["line"]
    return [*lines[:first], guard, *(f"    {line}" for line in lines[first:])]
