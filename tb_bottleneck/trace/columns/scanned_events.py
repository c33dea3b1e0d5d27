"""Converts the results of the native scanner to columns of the event table.

The scanner describes each event by keys. The keys become labels (columns/labels.py) and signatures
(columns/event_args.py), in the order of the file.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tb_bottleneck.native import Categories
from tb_bottleneck.sources.scan.results import Scanned
from tb_bottleneck.trace.columns.event_args import Signatures, has_signature, joined_signature, roles_of
from tb_bottleneck.trace.columns.labels import Labels, event_of
from tb_bottleneck.trace.kinds import KIND_OF, kind_of
from tb_bottleneck.trace.table import Ints

COLUMNS = (
    "start", "duration", "label", "sequence", "signature", "correlation", "device", "stream", "bytes", "blocks",
    "multiprocessors", "occupancy",
)  # fmt: skip
"""Columns of complete events, in the order in which the native scanner returns them."""

# Categories as written in traces: torch until 1.11 writes a capital first letter. An unknown category is added when its
# first event is read.
_WRITTEN = tuple(
    dict.fromkeys(word for name in (*KIND_OF, "ac2g", "gpu_user_annotation") for word in (name, name.title()))
)
# A recording has about ten categories.
_MAX_CATEGORIES = 200
# Most keys whose labels are remembered. No usual recording has more. A file with more keys is read, too, but slower.
_MAX_KEYS = 1 << 17


class ScannedColumns:
    """Converts the results of the native scanner to columns. Remembers the label of each key for later results."""

    def __init__(self, labels: Labels, signatures: Signatures) -> None:
        self._labels = labels
        self._signatures = signatures
        self._label_of: dict[bytes, int] = {}
        self._categories = {b'"%s"' % word.encode(): roles_of(kind_of(word)) for word in _WRITTEN}

    def categories(self) -> Categories:
        """Returns pairs of a known category (JSON text with quotes) and the bits of its arguments (see `roles_of`)."""
        return tuple(self._categories.items())

    def of(self, scanned: Scanned) -> dict[str, Ints]:
        """Returns the COLUMNS of all events in `scanned`.

        The scanner does not read some events itself (`scanned.decoded`). The rows of these events are placeholders,
        which the caller has to fill.
        """
        if len(self._label_of) > _MAX_KEYS:
            self._label_of.clear()
        columns = dict(zip(COLUMNS, (np.frombuffer(data, np.int64) for data in scanned.columns), strict=True))
        labels = np.array(list(self._label_rows(scanned)), np.int64)
        columns["label"] = labels[columns["label"]] if len(labels) else columns["label"]
        columns["signature"] = self._signatures_of(scanned, columns["signature"])
        return columns

    def _label_rows(self, scanned: Scanned) -> Iterator[int]:
        decoded = iter(scanned.decoded)
        for key in scanned.labels:
            if key is None:
                event = next(decoded)
                yield self._label_of_decoded(event) if event.ph == "X" else 0
            else:
                label = self._label_of.get(key)
                yield self._new_label(key) if label is None else label

    def _new_label(self, key: bytes) -> int:
        event = event_of(key)
        self._label_of[key] = label = self._labels[event.cat, event.name, event.pid, event.tid]
        return label

    def _label_of_decoded(self, event: Any) -> int:
        word = event.cat or ""
        if word.isascii() and word.isidentifier() and len(self._categories) < _MAX_CATEGORIES:
            self._categories[b'"%s"' % word.encode()] = roles_of(kind_of(word))
        return self._labels[event.cat, event.name, event.pid, event.tid]

    def _signatures_of(self, scanned: Scanned, rows: Ints) -> Ints:
        """Returns the row of each event's signature.

        `rows` has for each event an index into `scanned.signatures`, or -1 if the event has no signature.
        """
        before = self._signatures.lost
        signatures = np.array([*self._signature_rows(scanned), 0], np.int64)
        if self._signatures.lost > before:  # each event counts, and not each key
            missing = [key is None or key not in self._signatures for key in scanned.signatures]
            markers = [key is None for key in scanned.signatures]
            self._signatures.lost = before + int(np.array([*missing, False])[rows].sum() - sum(markers))
        return signatures[rows]

    def _signature_rows(self, scanned: Scanned) -> Iterator[int]:
        decoded = iter(scanned.decoded)
        for key in scanned.signatures:
            if key is not None:
                yield self._signatures[key]
                continue
            event = next(decoded)
            if event.ph == "X" and event.args is not None and has_signature(kind_of(event.cat or "")):
                self._signatures[joined_signature(event.args)]  # it gets its row before those of later events
            yield 0
