"""The terminal that a command writes to: its width, its support of styles, and the progress bar.

`rich` is imported only for a terminal.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tb_bottleneck.text.terminal import Layout


PIPE_WIDTH = 100  # characters, unless COLUMNS says otherwise
MIN_WIDTH = 40


def stdout_layout() -> "Layout":
    """Returns the layout of standard output: its width, and whether it has styles.

    NO_COLOR, TERM=dumb and a pipe switch styles off.
    """
    from tb_bottleneck.text.terminal import Layout

    width = max(shutil.get_terminal_size((PIPE_WIDTH, 0)).columns, MIN_WIDTH)
    return Layout(width, styled=sys.stdout.isatty() and _shows_styles())


def _shows_styles() -> bool:
    from rich.console import Console

    console = Console()
    return console.is_terminal and not (console.no_color or console.is_dumb_terminal or console.legacy_windows)


ProgressCallback = Callable[[int, int], None]


@contextmanager
def progress_bar() -> Iterator[Callable[[str], ProgressCallback]]:
    """Yields a function that starts a new bar with a given text, and returns the progress callback of this bar.

    A new bar replaces the one before. The bar is drawn on stderr if stderr is a terminal. Otherwise, nothing is drawn,
    and `rich` is not imported.
    """
    if not sys.stderr.isatty():
        yield lambda text: _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield partial(_line, bar)


def _line(bar: "Progress", text: str) -> ProgressCallback:
    for task in bar.task_ids:
        bar.remove_task(task)
    from tb_bottleneck.base.units import one_line

    return partial(_show, bar, bar.add_task(one_line(text), total=None))


def _show(bar: "Progress", task: "TaskID", done: int, total: int) -> None:
    bar.update(task, completed=done, total=total)


def _nothing(done: int, total: int) -> None:
    """A progress callback that does nothing."""
