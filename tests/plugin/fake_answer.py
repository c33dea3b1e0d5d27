"""Answers to questions that do what the question tells: the tests of the plugin run it in a real process."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def answer(question: Mapping[str, Any], progress: Callable[[int, int], None] | None = None) -> bytes:
    """The id, the number of this process, and what was asked; worse things where that is what is asked."""
    assert progress is not None
    progress(1, 4)
    ask = question["ask"]
    if ask == "raise":
        raise RuntimeError("a defect")
    if ask == "exit":
        os._exit(3)
    if ask == "gate":  # a named pipe: reading it ends when the test has opened and closed it
        Path(question["path"]).read_bytes()
    return f"{question['id']} {os.getpid()} {ask}".encode()
