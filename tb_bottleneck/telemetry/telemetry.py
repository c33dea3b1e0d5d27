"""The telemetry of one process: plausible data is stored in columns, and other data is only counted."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict, SerializeToJsonError

from tb_bottleneck.schema.signals import ENDED, HOST, SERIES, SPARSE_COUNTS, STEP_COLUMNS
from tb_bottleneck.schema.telemetry_pb2 import Note, Packet, RunContext, Series, StepRows
from tb_bottleneck.telemetry.bounded_columns import Bools, Floats, Rows, Times

SERIES_ROWS = 1 << 16
"""Maximum rows of one series. At one reading per second, up to nine hours of recent readings stay single rows; older
readings are merged into buckets."""

STEP_ROWS = 1 << 17
"""Maximum rows of the table of steps; half of them are single steps."""

MAX_TELEMETRY_DEVICES = 64
"""A machine has at most 16 GPUs today; a file that names more devices than this is damaged or malicious."""

MAX_TELEMETRY_NOTES = 500
MAX_CONTEXT_BYTES = 1 << 20
MAX_READING = 1e24  # of any reading; beyond every unit's own range
MAX_TIME_NS = 1 << 62  # ns since 1970: the year 2116
MAX_STEP_TIME_NS = 1e15  # ns, of all steps that one table row contains: eleven days
MAX_STEPS_PER_ROW = 1_000_000
"""The monitor writes 25 rows per second of a fast loop: at 1 us per step, 40,000 steps per row."""

STEP_NAMES = ("wall", *STEP_COLUMNS)


class Telemetry:
    """The telemetry of one process that was read so far; each message adds to it. Not thread-safe."""

    def __init__(self) -> None:
        self.context = RunContext()
        self.series: dict[tuple[str, str], Rows] = {}
        self.steps = Rows(("number", *STEP_NAMES), STEP_ROWS)
        self.notes: deque[Note] = deque(maxlen=MAX_TELEMETRY_NOTES)
        self.lost_packets = 0
        self.dropped: Counter[str] = Counter()
        """Number of messages, series, columns or readings that were read but could not be used, by reason."""
        self.facts: dict[str, Any] = {}
        """The run's context: JSON-like values by name."""
        self.ended = False
        """True if the last packet has the note that the monitor ends."""
        self._expected = 0
        self._counting: set[str] = set()

    @property
    def last(self) -> int:
        """Time of the newest row, ns since 1970; 0 if there are no rows."""
        return max([self.steps.last, *(rows.last for rows in self.series.values())])

    @property
    def devices(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs that have series."""
        return tuple(sorted({device for _, device in self.series if device != HOST}))

    def add(self, messages: Iterable[RunContext | Packet]) -> None:
        """Adds messages in the order in which they were written. Never raises an exception because of the content of a
        message."""
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
                self.notes.extend(note for note in message.notes if abs(note.unix_ns) < MAX_TIME_NS)

    def _set_context(self, context: RunContext) -> None:
        if context.ByteSize() > MAX_CONTEXT_BYTES:
            self.dropped["too_large"] += 1
            return
        try:
            facts = MessageToDict(context.facts)
        except (ValueError, SerializeToJsonError):
            self.dropped["implausible"] += 1  # the context contains NaN or infinity
            return
        self.context, self.facts = context, facts
        del context.notes[MAX_TELEMETRY_NOTES:]
        for note in context.notes:
            note.unix_ns = note.unix_ns if abs(note.unix_ns) < MAX_TIME_NS else 0.0

    def _add_series(self, series: Series) -> None:
        name, device = series.name, series.device or HOST
        if name not in SERIES:
            self.dropped["unknown_name"] += 1
            return
        if len(series.unix_ns) != len(series.values):
            self.dropped["lengths_differ"] += 1
            return
        known = self.series.get((name, device))
        if (
            known is None
            and device != HOST
            and device not in self.devices
            and len(self.devices) >= MAX_TELEMETRY_DEVICES
        ):
            self.dropped["too_many_devices"] += 1
            return
        rows = known if known is not None else Rows(("value",), SERIES_ROWS)
        unit, when, values = SERIES[name].unit, np.array(series.unix_ns), np.array(series.values)
        # The quick check saves time: nearly all series messages are sound, and a day has a few hundred thousand.
        if not _is_sound(when, values, rows.last):
            good = self._plausible(values, unit) & self._later(when, rows.last)
            when, values = when[good], values[good]
        if len(when):
            self.series[name, device] = rows
            rows.append(when.astype(np.int64), {"value": np.minimum(values, 1.0) if unit == "share" else values})

    def _add_steps(self, steps: StepRows) -> None:
        length = len(steps.wall_ns)
        if not length:
            return
        if len(steps.number) != length or len(steps.end_unix_ns) != length or len(steps.steps) not in (0, length):
            self.dropped["lengths_differ"] += 1
            return
        when, wall = np.array(steps.end_unix_ns), np.array(steps.wall_ns)
        count = np.array(steps.steps, np.int64) if steps.steps else np.ones(length, np.int64)
        with np.errstate(invalid="ignore"):
            plausible = (wall > 0) & (wall * count <= MAX_STEP_TIME_NS) & (count > 0) & (count <= MAX_STEPS_PER_ROW)
        self._drop("implausible", length - plausible.sum())
        good = self._later(when, self.steps.last) & plausible
        columns = {"number": np.array(steps.number, float)[good], "wall": wall[good]}
        for column in steps.columns:
            if column.name not in STEP_COLUMNS:
                self.dropped["unknown_name"] += 1
            elif len(column.values) != length:
                self.dropped["lengths_differ"] += 1
            else:
                columns[column.name] = self._fill_gaps(
                    column.name, self._plausible_or_nan(np.array(column.values)[good])
                )
        if good.any():
            self.steps.append(when[good].astype(np.int64), columns, count[good])

    def _fill_gaps(self, name: str, values: Floats) -> Floats:
        """Returns `values`, the values of the step column `name`. In a sparse count that had any value so far, NaN
        becomes 0, so that means are correct."""
        if name not in SPARSE_COUNTS:
            return values
        if not np.isnan(values).all():
            self._counting.add(name)
        return np.nan_to_num(values) if name in self._counting else values

    def _drop(self, reason: str, count: float) -> None:
        if count:
            self.dropped[reason] += int(count)

    def _plausible_or_nan(self, values: Floats) -> Floats:
        """Returns the values of a step column with NaN in place of impossible ones."""
        with np.errstate(invalid="ignore"):
            wrong = np.isinf(values) | (values < 0) | (values > MAX_TIME_NS)
        self._drop("implausible", wrong.sum())
        return np.where(wrong, np.nan, values)

    def _plausible(self, values: Floats, unit: str) -> Bools:
        with np.errstate(invalid="ignore"):
            good = np.isfinite(values) & (np.abs(values) < MAX_READING)
            if unit != "celsius":
                good &= values >= 0
        self._drop("implausible", len(values) - good.sum())
        return good

    def _later(self, when: Floats, than: int) -> Bools:
        """Returns a mask over `when` (ns): True for a time that is later than `than` and than all earlier entries of
        `when`. Counts the other times as dropped."""
        with np.errstate(invalid="ignore"):
            possible = (when > than) & (when < MAX_TIME_NS)
        times: Times = np.where(possible, when, 0).astype(np.int64)
        before = np.concatenate(([than], np.maximum.accumulate(times)[:-1])) if len(times) else times
        good = possible & (times > before)
        self._drop("out_of_order", len(when) - good.sum())
        return np.asarray(good)


def _is_sound(when: Floats, values: Floats, last: int) -> bool:
    """Returns True if all readings are plausible and in order, so that they can be used as they are.

    `last` is the time of the previous reading. If a time or a value is NaN, the result is False, because comparisons
    with NaN are False."""
    if not len(when):
        return False
    return bool(
        values.min() >= 0
        and values.max() < MAX_READING
        and when[0] > last
        and when[-1] < MAX_TIME_NS
        and (len(when) == 1 or (when[1:] - when[:-1]).min() >= 1.0)
    )
