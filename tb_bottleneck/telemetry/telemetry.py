"""One process's telemetry as far as it is read: what is plausible goes into columns, the rest is counted."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict, SerializeToJsonError

from tb_bottleneck.schema.signals import ENDED, HOST, SERIES, STEP_COLUMNS
from tb_bottleneck.schema.telemetry_pb2 import Note, Packet, RunContext, Series, StepRows
from tb_bottleneck.telemetry.bounded_columns import Bools, Floats, Rows, Times

SERIES_ROWS = 1 << 16
"""Rows of one series: nine hours at one reading a second as they were taken, and more in buckets."""

STEP_ROWS = 1 << 17
"""Rows of the table of steps, of which half are as they were taken."""

MOST_DEVICES = 64
"""A machine has at most 16 GPUs today; a file that names more devices than this is damaged or hostile."""

MOST_NOTES = 500
LARGEST_CONTEXT = 1 << 20  # bytes
LARGEST = 1e24  # of any reading; beyond every unit's own range
LATEST = 1 << 62  # ns since 1970: the year 2116
LONGEST_STEP = 1e15  # ns: eleven days

SINCE_LAST_TOLD = frozenset({"device_allocations", "device_frees", "allocation_retries"})
"""Step columns that are told every so many steps, for all steps since the last time."""

STEP_NAMES = ("wall", *STEP_COLUMNS)


class Telemetry:
    """Grows with every message. Not for several threads at once."""

    def __init__(self) -> None:
        self.context = RunContext()
        self.series: dict[tuple[str, str], Rows] = {}
        self.steps = Rows(("number", *STEP_NAMES), STEP_ROWS)
        self.notes: deque[Note] = deque(maxlen=MOST_NOTES)
        self.lost_packets = 0
        self.dropped: Counter[str] = Counter()
        """What was read and not used, by reason; in messages, series, columns or readings."""
        self.facts: dict[str, Any] = {}
        """The run's context: JSON-like values by name."""
        self.ended = False
        """Whether the monitor said that it ends, and nothing came after that."""
        self._expected = 0
        self._counting: set[str] = set()

    @property
    def last(self) -> int:
        """Time of the newest thing, ns since 1970; 0 where there is nothing."""
        return max([self.steps.last, *(rows.last for rows in self.series.values())])

    @property
    def devices(self) -> tuple[str, ...]:
        """The GPUs that have series."""
        return tuple(sorted({device for _, device in self.series if device != HOST}))

    def add(self, messages: Iterable[RunContext | Packet]) -> None:
        """Takes messages in the order they were written. Never raises for what they hold."""
        for message in messages:
            if isinstance(message, RunContext):
                self._set_context(message)
            elif message.sequence < self._expected:
                self.dropped["repeated"] += 1
            else:
                self.ended = any(note.code == ENDED for note in message.notes)
                self.lost_packets += message.sequence - self._expected
                self._expected = message.sequence + 1
                for series in message.series:
                    self._add_series(series)
                self._add_steps(message.steps)
                self.notes.extend(note for note in message.notes if abs(note.unix_ns) < LATEST)

    def _set_context(self, context: RunContext) -> None:
        if context.ByteSize() > LARGEST_CONTEXT:
            self.dropped["too_large"] += 1
            return
        try:
            facts = MessageToDict(context.facts)
        except (ValueError, SerializeToJsonError):
            self.dropped["implausible"] += 1  # it holds a number that is none
            return
        self.context, self.facts = context, facts
        del context.notes[MOST_NOTES:]
        for note in context.notes:
            note.unix_ns = note.unix_ns if abs(note.unix_ns) < LATEST else 0.0

    def _add_series(self, series: Series) -> None:
        name, device = series.name, series.device or HOST
        if name not in SERIES:
            self.dropped["unknown_name"] += 1
            return
        if len(series.unix_ns) != len(series.values):
            self.dropped["lengths_differ"] += 1
            return
        known = self.series.get((name, device))
        if known is None and device != HOST and device not in self.devices and len(self.devices) >= MOST_DEVICES:
            self.dropped["too_many_devices"] += 1
            return
        rows = known if known is not None else Rows(("value",), SERIES_ROWS)
        unit, when, values = SERIES[name].unit, np.array(series.unix_ns), np.array(series.values)
        if not _is_sound(when, values, rows.last):  # nearly all are, and of a day's run there are some hundred thousand
            good = self._plausible(values, unit) & self._later(when, rows.last)
            when, values = when[good], values[good]
        if len(when):
            self.series[name, device] = rows
            rows.append(when.astype(np.int64), {"value": np.minimum(values, 1.0) if unit == "share" else values})

    def _add_steps(self, steps: StepRows) -> None:
        length = len(steps.wall_ns)
        if not length:
            return
        if len(steps.number) != length or len(steps.end_unix_ns) != length:
            self.dropped["lengths_differ"] += 1
            return
        when, wall = np.array(steps.end_unix_ns), np.array(steps.wall_ns)
        with np.errstate(invalid="ignore"):
            plausible = (wall > 0) & (wall <= LONGEST_STEP)
        self._drop("implausible", length - plausible.sum())
        good = self._later(when, self.steps.last) & plausible
        columns = {"number": np.array(steps.number, float)[good], "wall": wall[good]}
        for column in steps.columns:
            if column.name not in STEP_COLUMNS:
                self.dropped["unknown_name"] += 1
            elif len(column.values) != length:
                self.dropped["lengths_differ"] += 1
            else:
                columns[column.name] = self._told(column.name, self._known(np.array(column.values)[good]))
        if good.any():
            self.steps.append(when[good].astype(np.int64), columns)

    def _told(self, name: str, values: Floats) -> Floats:
        """The values of a column; of one that counts since it was last told, zeros in between, so that means hold."""
        if name not in SINCE_LAST_TOLD:
            return values
        if not np.isnan(values).all():
            self._counting.add(name)
        return np.nan_to_num(values) if name in self._counting else values

    def _drop(self, reason: str, count: float) -> None:
        if count:
            self.dropped[reason] += int(count)

    def _known(self, values: Floats) -> Floats:
        """The values of a step column, NaN in the place of those that cannot be."""
        with np.errstate(invalid="ignore"):
            wrong = np.isinf(values) | (values < 0) | (values > LATEST)
        self._drop("implausible", wrong.sum())
        return np.where(wrong, np.nan, values)

    def _plausible(self, values: Floats, unit: str) -> Bools:
        with np.errstate(invalid="ignore"):
            good = np.isfinite(values) & (np.abs(values) < LARGEST)
            if unit != "celsius":
                good &= values >= 0
        self._drop("implausible", len(values) - good.sum())
        return good

    def _later(self, when: Floats, than: int) -> Bools:
        """Which times follow all that came before them; the others are counted."""
        with np.errstate(invalid="ignore"):
            possible = (when > than) & (when < LATEST)
        told: Times = np.where(possible, when, 0).astype(np.int64)
        before = np.concatenate(([than], np.maximum.accumulate(told)[:-1])) if len(told) else told
        good = possible & (told > before)
        self._drop("out_of_order", len(when) - good.sum())
        return np.asarray(good)


def _is_sound(when: Floats, values: Floats, last: int) -> bool:
    """Whether all readings can be taken as they are; a NaN fails every comparison."""
    if not len(when):
        return False
    return bool(
        values.min() >= 0
        and values.max() < LARGEST
        and when[0] > last
        and when[-1] < LATEST
        and (len(when) == 1 or (when[1:] - when[:-1]).min() >= 1.0)
    )
