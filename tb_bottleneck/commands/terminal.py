"""The terminal that a command writes to: its width, and whether it shows colours. `rich` is imported for a terminal."""

import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_bottleneck.report.rendering.layout import Layout

PIPE_WIDTH = 100  # characters, unless COLUMNS says otherwise
MIN_WIDTH = 40


def stdout_layout() -> "Layout":
    """Returns the layout of standard output. NO_COLOR, TERM=dumb and a pipe switch styles off."""
    from tb_bottleneck.report.rendering.layout import Layout

    width = max(shutil.get_terminal_size((PIPE_WIDTH, 0)).columns, MIN_WIDTH)
    return Layout(width, styled=sys.stdout.isatty() and _shows_styles())


def _shows_styles() -> bool:
    from rich.console import Console

    console = Console()
    return console.is_terminal and not (console.no_color or console.is_dumb_terminal or console.legacy_windows)
