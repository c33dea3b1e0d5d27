Key = bytes | None
"""The four parts of a key as written in the text, with a zero byte between them; None for an event left to Python."""

Columns = tuple[bytes, ...]
"""Columns of int64 in native order."""

Result = tuple[int, Columns, list[Key], list[Key], Columns, list[Key], list[tuple[int, bytes]]]

def scan(lists: tuple[bytes, ...], categories: tuple[tuple[bytes, int], ...], exact: bool, /) -> Result | int:
    """Scans lists of events, each a JSON array, into columns. The GIL is released meanwhile.

    `categories` are the known categories as written, with quotes, and what the arguments of their events are read for,
    as bits: 1 for the inputs of operators, 2 for the correlation, 4 for device work. `exact`: times are decimals and
    not float64.

    Returns the number of events, columns of complete events, labels (category, name, process, thread), signatures
    (shapes, shapes of old versions, types, values), columns of memory events, their callers (empty, empty, process,
    thread), and the events that are left to Python with their rows. If a list is not one of events, or must be read by
    Python as a whole, returns its index. Raises MemoryError.
    """

def perfetto(packets: bytes, arguments: tuple[bytes, ...], /) -> object:
    """Reads a native trace of Perfetto, as torch 2.15 writes it, without compression. The GIL is released meanwhile.
    `arguments` are the names of those that are written for events; without any, all are.

    Returns an object for `perfetto_text`, which keeps `packets` alive. Raises MemoryError, also for more than 134
    million events.
    """

def perfetto_text(trace: object, size: int, /) -> bytes:
    """Returns the next part of the trace as the JSON that torch writes for the same events, about `size` bytes; an
    empty text after the last one. Only a trace whose last packet is complete has an end of the list.
    """
