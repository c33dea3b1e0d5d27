"""The text of the lines that a report names, read from the program's files if they exist and are unchanged.

The file names in a recording are untrusted. Therefore, a file is opened only if it is a Python file below one folder,
its path is relative and without links, and its size and modification time are those in the recording. The text is not
stored.
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tb_bottleneck.base.persistence import open_regular
from tb_bottleneck.base.units import NS_PER_US, one_line
from tb_bottleneck.schema import bottleneck_pb2 as pb

VARIABLE = "TB_BOTTLENECK_SOURCE"
"""Environment variable: the folder of the program instead of the working directory, or `off`."""
MAX_FILE_BYTES = 4 << 20
MAX_LINE = 160
AROUND = 2
"""Number of lines that are shown before and after the line that runs."""


def source_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the folder with the program's files: the folder in the environment variable VARIABLE or, if the variable
    is not set, the working directory. Returns None if the variable is "off", or if the folder does not exist."""
    value = environment.get(VARIABLE, "")
    try:
        return None if value.lower() == "off" else Path(value or os.getcwd()).resolve(strict=True)
    except OSError:
        return None


def add_source(report: pb.Report, folder: Path | None) -> None:
    """Sets the source lines of each place in the findings of `report`: the line that runs and the lines around it.

    Removes source lines that a place already has. With `folder` None, no lines are set."""
    for finding in report.findings:
        for place in finding.where:
            place.ClearField("source")
            lines = source_lines(folder, place) if folder is not None else []
            if lines:
                place.source_begin = max(_running(place) - AROUND, 1)
                place.source.extend(lines)


def source_lines(folder: Path, place: pb.Place) -> list[str]:
    """Returns the source line that runs at `place`, with the lines around it; empty if the file is missing or has
    changed."""
    number = _running(place)
    lines = (unchanged_text(folder, place) or "").splitlines() if number else []
    shown = lines[max(number - 1 - AROUND, 0) : number + AROUND] if number <= len(lines) else []
    return [one_line(line.expandtabs(4).rstrip(), MAX_LINE) for line in shown]


def unchanged_text(folder: Path, place: pb.Place) -> str | None:
    """Returns the text of the file of `place`; None if it is missing, has changed, or must not be read."""
    name = PurePosixPath(place.file.replace("\\", "/"))
    inside = not name.is_absolute() and ".." not in name.parts and ":" not in place.file
    if not (place.file_time_us and inside and name.suffix == ".py"):
        return None
    try:
        with open_regular(folder / name, follow_links=False) as file:
            facts = os.fstat(file.fileno())
            same = (facts.st_size, facts.st_mtime_ns // NS_PER_US) == (place.file_bytes, place.file_time_us)
            if not same or facts.st_size > MAX_FILE_BYTES:
                return None
            return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _running(place: pb.Place) -> int:
    """Returns the number of the source line that runs at `place`; 0 if it is not known."""
    return place.line if place.exact else place.hottest_line
