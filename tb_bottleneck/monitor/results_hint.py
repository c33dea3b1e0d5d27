"""Tells the user at the end of a training how to see what the monitor recorded."""

import logging
import shlex
import sys
from pathlib import Path

_log = logging.getLogger("tb_bottleneck.monitor")
_told: set[str] = set()


def hint_of(logdir: str) -> str:
    """Returns one line that names the commands for showing the results in `logdir`."""
    folder = shlex.quote(logdir)
    return (
        f"tb_bottleneck recorded this training. To see why it is slow: tensorboard --logdir {folder}, then open "
        f"Bottlenecks; or: tb-bottleneck diagnose {folder}"
    )


def tell_results(logdir: Path) -> None:
    """Prints the line of `hint_of` once per logdir: to the monitor's logger if it has handlers, otherwise to standard
    error unless warnings are disabled."""
    text = hint_of(str(logdir))
    if text in _told:
        return
    _told.add(text)
    if _log.hasHandlers():
        _log.info("%s", text)
    elif sys.stderr is not None and _log.isEnabledFor(logging.WARNING):
        print(text, file=sys.stderr)
