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

def perfetto_begin() -> object:
    """Begins to read a native trace of Perfetto, as torch 2.15 writes it. Returns the trace for the next three
    functions, of which only `perfetto_scan` may run in several threads at a time.
    """

def perfetto_read(trace: object, block: bytes, /) -> None:
    """Reads the next bytes of the file, without compression. The GIL is released meanwhile. Raises MemoryError, also
    if more than 4 GB of names and arguments, 16 million names, 1 million tracks or 134 million events must be kept.
    """

def perfetto_end(trace: object, /) -> tuple[bytes, int, bool, bool, bool]:
    """Must be called once, after the last bytes. Returns the top-level keys as JSON, up to the begin of the list of
    events; the number of events; whether the last packet is complete; whether there are slices; and whether events
    that are left to Python need exact times. Raises MemoryError.
    """

def perfetto_scan(
    trace: object, first: int, end: int, size: int, categories: tuple[tuple[bytes, int], ...], /
) -> tuple[int, int, Result]:
    """Scans the events from the number `first` to `end`, as `scan` does with the JSON that torch writes for the same
    events. The GIL is released meanwhile. Stops earlier when about `size` bytes of text have been made, from names and
    arguments.

    Returns the number of the next event, the bytes of text, and the result. Raises MemoryError.
    """
