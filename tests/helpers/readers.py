"""Reads a file with one of the two readers, and compares what they return."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.native import VARIABLE
from tb_bottleneck.sources.blocks import BOUNDS, Bounds
from tb_bottleneck.sources.kineto import KinetoReader
from tb_bottleneck.trace.events import EventsBuilder


@contextmanager
def reader(name: str) -> Iterator[None]:
    """Selects the reader: "pure" or "native"."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def all_of(path: str, name: str, bounds: Bounds = BOUNDS) -> dict[str, Any]:
    """Returns everything that this reader returns about a file, including an error."""
    builder = EventsBuilder()
    source = KinetoReader(path, bounds=bounds, categories=builder.categories)
    try:
        with reader(name):
            for batch in source.batches():
                builder.add(batch)
    except BottleneckError as error:
        return {"error": repr(error)}
    tables = tables_of(builder)
    tables["lost"] += source.lost
    return tables | {
        "truncated": source.truncated,
        "header": repr(source.header),  # NaN is not equal to itself
    }


def tables_of(builder: EventsBuilder) -> dict[str, Any]:
    """Returns everything that a builder has built."""
    memory, events = builder.memory(), builder.build()
    tables = {
        f"{type(table).__name__}.{item.name}": getattr(table, item.name)[:]
        for table in (events, memory)
        for item in fields(table)
    }
    return tables | {
        "names": builder.names(),
        "threads": builder.threads(),
        "signatures": builder.signatures(),
        "messages": builder.messages(),
        "lost": builder.lost,
    }


def differences(path: str, bounds: Bounds = BOUNDS) -> list[str]:
    """Returns the names of what differs between the two readers."""
    return differing(all_of(path, "pure", bounds), all_of(path, "native", bounds))


def differing(pure: dict[str, Any], native: dict[str, Any]) -> list[str]:
    """Returns the names of what differs."""
    if pure.keys() != native.keys():
        return ["error"]
    return [name for name, value in pure.items() if not _equal(value, native[name])]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)
