"""Describes files of other profilers that users try to read, and what to record instead."""

_BY_ENDING = {
    (".nsys-rep", ".qdrep", ".qdstrm"): "a report of Nsight Systems",
    (".ncu-rep",): "a report of Nsight Compute, which measures single kernels",
    (".xplane.pb", ".xplane.pb.gz"): "a trace of XLA's profiler, which xprof reads",
    (".rpd",): "a database of AMD's rocmProfileData",
    (".sqlite", ".db"): "a database, as Nsight Systems exports it",
}
_SQLITE = b"SQLite format 3\0"


def what_it_is(path: str, head: bytes) -> str:
    """Returns sentences that say what a file without a list of events is. `head` has the first bytes of the file."""
    named = next((what for endings, what in _BY_ENDING.items() if path.endswith(endings)), None)
    if named is None and head.startswith(_SQLITE):
        named = _BY_ENDING[".sqlite", ".db"]
    if named is None and _is_binary(head):
        packed = ", and is not compressed with gzip, as its name says" if path.endswith(".gz") else ""
        return f"The file has binary data in place of JSON{packed}. It is damaged, or no trace of torch.profiler."
    if named is None:
        return 'No list "traceEvents" was found. A trace written by torch.profiler has one.'
    return (
        f"This is {named}. It does not have what a verdict needs: operators, Python frames and steps. Record the same "
        "steps with torch.profiler: `tb-bottleneck run -- python train.py` does it without a change of the script."
    )


def _is_binary(head: bytes) -> bool:
    """Returns True if `head` begins neither like JSON nor like text."""
    begin = head.lstrip()[:64]
    return bool(begin) and begin[:1] not in b'{["' and any(byte < 9 or byte >= 0x80 for byte in begin)
