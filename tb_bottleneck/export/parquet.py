"""Writes the tables of recordings as Parquet files.

    DIRECTORY/events/00000_NAME.parquet   one file per recording; likewise kernels and collectives
    DIRECTORY/ranks.parquet               one row per recording

So `DIRECTORY/events/*.parquet` are the events of all recordings.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tb_bottleneck.base.errors import BottleneckError, Unusable
from tb_bottleneck.base.persistence import atomic_file
from tb_bottleneck.diagnosis.trace import diagnose_loaded
from tb_bottleneck.export.tables import (
    TABLES,
    Column,
    Numbers,
    Words,
    collectives_table,
    events_table,
    kernels_table,
    rank_row,
)
from tb_bottleneck.trace.trace import load

_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST_NAME = 80  # characters of a file name
_TABLES = {"events": events_table, "kernels": kernels_table, "collectives": collectives_table}
_TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64()}

Progress = Callable[[int, int], None]


def export(
    recordings: Iterable[tuple[str, str]], directory: Path, progress: Callable[[str], Progress]
) -> tuple[int, list[str]]:
    """Writes the tables of `recordings`, which are pairs (path, run), to `directory`, which must be new or empty.

    Returns the number of recordings that were written, and one sentence for each recording that could not be read.

    Raises:
        Unusable: the directory is not empty, or is a file.
        OSError: a file could not be written.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise Unusable(f"{directory} exists and is not an empty directory. Choose another one with --output.")
    ranks: list[dict[str, Any]] = []
    problems = []
    for path, run in recordings:
        source = os.path.basename(path)
        name = (source if run in ("", ".") else f"{run}/{source}").encode("utf-8", "replace").decode()
        try:
            ranks.append(_export(path, run, name, directory, len(ranks), progress(name)))
        except BottleneckError as error:
            problems.append(f"{name} is not exported: {error}")
    columns = [pa.array([row[column.name] for row in ranks], _TYPES[column.type]) for column in TABLES["ranks"]]
    _write(directory / "ranks.parquet", pa.table(columns, [column.name for column in TABLES["ranks"]]))
    return len(ranks), problems


def _export(path: str, run: str, name: str, directory: Path, number: int, progress: Progress) -> dict[str, Any]:
    """Writes the tables of one recording to `directory`. Returns the row of this recording for the table of ranks.
    `number` begins the file names."""
    trace = load(path, progress)
    report, recording = diagnose_loaded(trace, path, run=run)
    common = {"recording": name, "rank": report.rank if report.HasField("rank") else None}
    tables = {name: table(trace, recording) for name, table in _TABLES.items()}
    file = f"{number:05}_{_UNSAFE.sub('_', name)[-_LONGEST_NAME:]}.parquet"
    for table, columns in tables.items():
        rows = len(columns["start_ns"].rows)
        arrays = [_array(columns.get(column.name), column, common, rows) for column in TABLES[table]]
        _write(directory / table / file, pa.table(arrays, [column.name for column in TABLES[table]]))
    return {**common, **rank_row(report, trace)}


def _array(values: Words | Numbers | None, column: Column, common: dict[str, Any], rows: int) -> Any:
    """Returns a column of the table. If `values` is None, all rows have the value in `common`."""
    if values is None:
        value = common[column.name]
        if column.type != "text":
            return pa.array(np.full(rows, value or 0), pa.int64(), mask=np.full(rows, value is None))
        values = Words(np.zeros(rows, np.int64), [value])
    if isinstance(values, Numbers):
        return pa.array(values.rows, pa.int64(), mask=values.missing)
    # Only the words that occur, because each file would have those of all columns.
    used, indices = np.unique(values.rows, return_inverse=True)
    words = pa.array([values.words[row] for row in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32), mask=values.missing), words)


def _write(path: Path, table: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, 0o666) as file:
        pq.write_table(table, file, compression="zstd")
