"""Reads allocator snapshots, which are pickles of plain data, without executing anything in them."""

import re

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.sources.paths import first_bytes

# Endings of the file names that torch's documentation passes to torch.cuda.memory._dump_snapshot.
SNAPSHOT_ENDINGS = (".pickle", ".pkl", ".pickle.gz", ".pkl.gz")
_JSON_ENDINGS = (".json", ".json.gz")
_TRACE_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
_PICKLE = b"\x80"  # the opcode that every pickle of protocol 2 and newer begins with
_KEYS = re.compile(rb"segments|device_traces|total_size")
_JSON = re.compile(rb'\s*(?:\{\s*"(?:segments|device_traces)"\s*:|\[\s*\{\s*"(?:device|address|total_size)"\s*:)')
_HEAD = 1000


def looks_like_snapshot(head: bytes) -> bool:
    """Returns True if a file with these first bytes, inflated, is an allocator snapshot. Nothing is decoded."""
    if head.startswith(_PICKLE):
        return bool(_KEYS.search(head[:_HEAD]))
    return bool(_JSON.match(head))


def is_snapshot(path: str) -> bool:
    """Returns True if the file at `path` is an allocator snapshot.

    Pickles are recognised by the ending of the name only, JSON files by the ending and their first bytes. Returns False
    for a JSON file that cannot be read.
    """
    if path.endswith(_TRACE_ENDINGS) or not path.endswith((*SNAPSHOT_ENDINGS, *_JSON_ENDINGS)):
        return False
    try:
        return path.endswith(SNAPSHOT_ENDINGS) or looks_like_snapshot(first_bytes(path, _HEAD))
    except (OSError, Unreadable):
        return False
