"""Progress and output of the scripts that write a page of figures."""

import sys
from collections.abc import Iterable
from pathlib import Path


def progress(what: str, number: int, whole: int) -> None:
    """Prints one line to stderr: overwrites it on a terminal, and elsewhere prints every tenth."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what} {number} of {whole}")
        sys.stderr.flush()
    elif number % 10 == 0:
        print(f"{what} {number} of {whole}", file=sys.stderr)


def publish(lines: Iterable[str], page: Path, write: bool) -> None:
    """Prints the lines to stdout, and with `write` also writes them to the page's file."""
    text = "\n".join(lines) + "\n"
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    print(text, end="")
    if write:
        page.write_text(text, encoding="utf-8")
