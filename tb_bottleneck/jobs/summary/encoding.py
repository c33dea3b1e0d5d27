"""Encodes a summary as bytes of limited size: a header in JSON, then the columns of the tables, all compressed.

The decoder checks everything: a summary may come from a cache or from another machine.
"""

import json
import zlib
from dataclasses import asdict, fields, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.jobs.machines import FIGURES
from tb_bottleneck.jobs.summary.rank_summary import (
    Communications,
    KernelTimes,
    Points,
    RankFacts,
    RankSummary,
    StepWork,
)
from tb_bottleneck.trace.header import MAX_GROUPS, ProcessGroup
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.trace.table import Ints, Table

MAX_BYTES = 64 * 1024
"""Largest size of an encoded summary. If a summary is larger, its last steps are left out; a single step is always
kept."""

_MAGIC = b"tb_bottleneck rank 3\n"
_MAX_DECODED = 64 << 20
_TABLES: tuple[tuple[str, type[Table]], ...] = (
    ("work", StepWork),
    ("kernels", KernelTimes),
    ("communications", Communications),
    ("points", Points),
)

T = TypeVar("T", bound=Table)


def encode(summary: RankSummary) -> bytes:
    """Returns the summary as bytes, with as many of its first steps as fit into MAX_BYTES. At least one step is kept,
    even if the result is then larger."""
    text = _encoded(summary)
    while len(text) > MAX_BYTES and summary.steps > 1:
        fitting = summary.steps * MAX_BYTES // len(text)
        summary = first_steps(summary, min(max(fitting, 1), summary.steps - 1))
        text = _encoded(summary)
    return text


def first_steps(summary: RankSummary, steps: int) -> RankSummary:
    """Returns the summary with only the first `steps` steps. `facts.cut` counts the steps that are left out."""
    keep = summary.communications.step < steps
    row = np.cumsum(keep) - 1
    end = int(summary.edges[steps])
    inside = (summary.points.time <= end) & keep[summary.points.communication]
    points = summary.points.take(inside)
    return replace(
        summary,
        facts=replace(summary.facts, cut=summary.facts.cut + summary.steps - steps),
        numbers=summary.numbers[:steps],
        edges=summary.edges[: steps + 1],
        account=summary.account[:steps],
        work=summary.work.take(slice(0, steps)),
        communications=summary.communications.take(keep),
        points=replace(points, communication=row[points.communication]),
    )


def decode(text: bytes) -> RankSummary:
    """Returns the summary that `encode` has encoded as `text`. Raises Unreadable if `text` is not an encoded summary or
    has values that contradict each other."""
    try:
        return _decoded(text)
    except (ValueError, TypeError, KeyError, IndexError, zlib.error, RecursionError) as error:
        raise Unreadable(f"not the summary of a rank: {type(error).__name__}") from error


def _encoded(summary: RankSummary) -> bytes:
    """Returns the whole summary as bytes, of any size."""
    columns = [summary.edges, summary.account.ravel()]
    for name, kind in _TABLES:
        table = getattr(summary, name)
        columns += [getattr(table, item.name) for item in fields(kind)]
    head = {
        "facts": asdict(summary.facts),
        "groups": [list(group) for group in map(_group_values, summary.groups)],
        "numbers": summary.numbers,
        "lengths": [len(column) for column in columns],
    }
    body = b"".join(map(_packed, columns))
    return _MAGIC + zlib.compress(json.dumps(head, separators=(",", ":")).encode() + b"\n" + body, 6)


def _group_values(group: ProcessGroup) -> tuple[Any, ...]:
    return group.name, group.description, _ranges(group.ranks), group.size


def _ranges(ranks: tuple[int, ...]) -> list[list[int]]:
    """Returns the ranks as a list of ranges [first, step, count]: one range if the ranks are equally spaced, as in
    usual groups, otherwise one range per rank."""
    if len(ranks) < 2:
        return [[rank, 1, 1] for rank in ranks]
    step = ranks[1] - ranks[0]
    if all(b - a == step for a, b in pairwise(ranks)):
        return [[ranks[0], step, len(ranks)]]
    return [[rank, 1, 1] for rank in ranks]


def _packed(column: Ints) -> bytes:
    """Returns the differences of consecutive values as bytes: first the lowest byte of all differences, then the next
    one, and so on. In this order, the equal high bytes compress well. Negative values are zigzag-encoded."""
    values = column.astype(np.int64)
    differences: Ints = values - np.concatenate(([0], values[:-1]))
    zigzag = (differences << 1) ^ (differences >> 63)
    return np.ascontiguousarray(zigzag.astype("<i8").view(np.uint8).reshape(-1, 8).T).tobytes()


def _unpacked(data: bytes) -> Ints:
    """Returns the column that _packed has encoded."""
    planes = np.frombuffer(data, np.uint8).reshape(8, -1)
    zigzag = np.ascontiguousarray(planes.T).view("<u8").ravel()
    differences = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)
    return np.cumsum(differences, dtype=np.int64)


def _decoded(text: bytes) -> RankSummary:
    """Returns the decoded summary. Raises ValueError, TypeError, KeyError, IndexError, zlib.error or RecursionError for
    invalid content."""
    if not text.startswith(_MAGIC):
        raise ValueError("wrong magic")
    inflater = zlib.decompressobj()
    data = inflater.decompress(text[len(_MAGIC) :], _MAX_DECODED)
    if not inflater.eof:
        raise ValueError("too large or cut")
    head_text, _, body = data.partition(b"\n")
    head = json.loads(head_text)
    columns = _columns(head["lengths"], body)
    edges, account = next(columns), next(columns)
    tables = {name: kind(*(next(columns) for _ in fields(kind))) for name, kind in _TABLES}
    summary = RankSummary(
        facts=RankFacts(**head["facts"]),
        groups=tuple(
            _group(str(name), str(description), tuple(map(tuple, ranges)), int(size))
            for name, description, ranges, size in head["groups"]
        ),
        numbers=tuple(map(int, head["numbers"])),
        edges=edges,
        account=account.reshape(-1, len(REGIMES)),
        **tables,  # type: ignore[arg-type]
    )
    _check(summary)
    return summary


def _columns(lengths: list[int], body: bytes) -> Any:
    """Yields the columns in `body`, whose numbers of values are `lengths`. Raises ValueError if the columns do not fit
    into `body`."""
    at = 0
    for length in lengths:
        if length < 0 or at + 8 * length > len(body):
            raise ValueError("columns exceed the body")
        yield _unpacked(body[at : at + 8 * length])
        at += 8 * length


@lru_cache(maxsize=MAX_GROUPS)
def _group(name: str, description: str, ranges: tuple[tuple[int, int, int], ...], size: int) -> ProcessGroup:
    """Returns the group with the ranks in `ranges` (first, step, count). Equal groups share one object, because all
    ranks of a job list the same groups."""
    ranks = tuple(first + step * position for first, step, count in ranges for position in range(min(count, 1 << 17)))
    return ProcessGroup(name, description, ranks, size)


def _check(summary: RankSummary) -> None:
    """Raises ValueError if values of `summary` contradict each other or refer to rows that do not exist."""
    steps, communications, points = summary.steps, summary.communications, summary.points
    checks = (
        steps >= 1 and bool((np.diff(summary.edges) > 0).all()),
        len(summary.account) == len(summary.work) == steps,
        len(summary.numbers) in (0, steps),
        _within(communications.step, steps),
        _within(communications.group, len(summary.groups)),
        _within(communications.operation, 12),
        _within(points.communication, len(communications)),
        bool((communications.end >= communications.start).all()),
        0 <= summary.facts.rank < summary.facts.world_size,
        isinstance(summary.facts.attentions, int) and 0 <= summary.facts.attentions < 1 << 31,
        isinstance(summary.facts.machine, dict)
        and all(name in FIGURES and positive(value) for name, value in summary.facts.machine.items()),
    )
    if not all(checks):
        raise ValueError("inconsistent summary")


def _within(column: Ints, limit: int) -> bool:
    return not len(column) or bool(column.min() >= 0 and column.max() < limit)
