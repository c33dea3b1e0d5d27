"""Creates a large trace by repeating a real one in time: `python tests/bench/tile.py IN OUT.json.gz TIMES`.

Each repetition has the layout and every byte of the original, except values that must differ: times are shifted by the
whole recording, and ids of links (correlation, External id, flows, Python frames) and the numbers of the profiler's
steps continue from the last repetition. Both files may be gzipped or not, according to their names.
"""

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

GAP_US = 1000  # between two repetitions
LEVEL = 6  # of gzip

_IDS = ("correlation", "External id", "id", "Ev Idx", "Record function id", "Python id", "Python parent id")
_EVENTS = re.compile(r'"traceEvents"\s*:\s*(?=\[)')
# The shifted values: the whole part of a number after one of these keys.
_MOVED = re.compile(r'("(?:ts|' + "|".join(_IDS) + r')"|ProfilerStep#)(\s*:\s*|)(\d+)')
_STEP = re.compile(r"ProfilerStep#(\d+)")


def tile(source: Path, target: Path, times: int) -> int:
    """Writes the repeated recording `source` to `target`; returns the size of its JSON in bytes."""
    with _open(source, "rt") as file:
        text = file.read()
    found = _EVENTS.search(text)
    begin = found.end() if found else text.index("[")
    events, end = json.JSONDecoder(strict=False).raw_decode(text, begin)
    moves = _moves(events)
    pieces = _MOVED.split(text[begin + 1 : end - 1].rstrip())
    size = 0
    with _open(target, "wt") as file:
        for part in (text[: begin + 1], *_repetitions(pieces, moves, times), text[end - 1 :]):
            size += file.write(part)
    return size


def _open(path: Path, mode: str) -> Any:
    how = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
    if path.suffix != ".gz":
        return open(path, mode, **how)  # type: ignore[call-overload]
    return gzip.open(path, mode, compresslevel=LEVEL, **how)  # type: ignore[call-overload]


def _moves(events: list[dict[str, Any]]) -> dict[str, int]:
    """Returns the shift of each kind of number from one repetition to the next."""
    spans = [(float(one["ts"]), float(one.get("dur", 0))) for one in events if one.get("ph") == "X"]
    steps = [int(step) for one in events for step in _STEP.findall(str(one.get("name")))]
    numbers = [each.get(key) for one in events for each in (one, one.get("args") or {}) for key in _IDS]
    moves = dict.fromkeys((f'"{key}"' for key in _IDS), max((n for n in numbers if isinstance(n, int)), default=0) + 1)
    moves['"ts"'] = int(max(ts + dur for ts, dur in spans) - min(ts for ts, _ in spans)) + GAP_US
    moves["ProfilerStep#"] = max(steps) - min(steps) + 1 if steps else 0
    return moves


def _repetitions(pieces: list[str], moves: dict[str, int], times: int) -> Any:
    """Yields the body of the list repeatedly. `pieces` is text, key, colon, number, text, key, ..."""
    numbers = [int(number) for number in pieces[3::4]]
    # An id of 0 means that there is no link, so it stays 0.
    unlinked = {f'"{key}"' for key in _IDS}
    keyed = zip(pieces[1::4], numbers, strict=True)
    steps = [0 if number == 0 and key in unlinked else moves[key] for key, number in keyed]
    for time in range(times):
        pieces[3::4] = [str(number + time * step) for number, step in zip(numbers, steps, strict=True)]
        yield ("," if time else "") + "".join(pieces)


if __name__ == "__main__":
    print(tile(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
