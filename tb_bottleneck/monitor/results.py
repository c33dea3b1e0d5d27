"""Shows at the end of a training what limits it, in a few lines on standard error."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

QUIET = "TB_BOTTLENECK_QUIET"
"""Environment variable; with the value 1, nothing is printed."""
SECONDS = 2.0
"""The training process waits this long for the diagnosis, then it only says how to see it."""
_LINES = 12
_told: set[Path] = set()


def tell_results(logdir: Path, directory: str, steps: int, error: str) -> None:
    """Prints the diagnosis of the run `directory` in at most 12 lines, once per logdir.

    After an error (the name of its type), without steps, or if the diagnosis takes too long or fails, one line says
    how to see what was recorded. The diagnosis runs in a process of its own.
    """
    if os.environ.get(QUIET) == "1" or sys.stderr is None or logdir in _told:
        return
    _told.add(logdir)
    command = f"tb-bottleneck diagnose {shlex.quote(directory)}"
    if not steps:
        text = "tb_bottleneck saw no step of this training: a step ends with optimizer.step(), or call Monitor.step()"
    elif error not in ("", "SystemExit"):
        text = f"tb_bottleneck recorded {steps} steps before {error}: {command}"
    else:
        text = (
            _diagnosis(directory, str(logdir))
            or f"tb_bottleneck recorded {steps} steps. Why they take as long as they do: {command}"
        )
    print(text, file=sys.stderr, flush=True)


def _diagnosis(directory: str, logdir: str) -> str:
    """Returns the diagnosis of the run `directory`, and its gain since the last run of the program in `logdir`; what
    there is of it after SECONDS; empty if the diagnosis failed."""
    command = [sys.executable, "-m", "tb_bottleneck", "diagnose", "--lines", str(_LINES - 1)]
    command += ["--ledger", logdir, directory]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    # Modules next to the script may have names of the standard library.
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode("utf-8", "replace").rstrip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace").rstrip() if done.returncode == 0 else ""
