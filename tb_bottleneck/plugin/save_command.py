"""The command that saves the report of a job, for users to copy."""

import os
import shlex

from tb_bottleneck.sources.local_files import display_name


def save_command(trace: str) -> str:
    """Returns the command for the job of a trace: it writes the report into the directory of the trace."""
    return f"tb-bottleneck diagnose --write {shlex.quote(display_name(os.path.dirname(trace)))}"
