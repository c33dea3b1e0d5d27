"""The pickle opcodes that are refused, and why."""

from tb_bottleneck.base.errors import Unreadable

FORBIDDEN = {
    b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"R": "REDUCE", b"b": "BUILD", b"i": "INST", b"o": "OBJ",
    b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4",
    b"P": "PERSID", b"Q": "BINPERSID", b"\x97": "NEXT_BUFFER", b"\x98": "READONLY_BUFFER",
}  # fmt: skip
"""Opcodes that import, call or construct something."""


def refusal(code: bytes) -> Unreadable:
    """Returns the error for an opcode that is not plain data."""
    name = FORBIDDEN.get(code)
    if name is not None:
        return Unreadable(
            f"The snapshot is refused: it has the pickle opcode {name}, which can execute code. Snapshots written by "
            "torch have only plain data. Do not load this file with pickle."
        )
    return Unreadable("The file is no allocator snapshot, or it is damaged: an unknown pickle opcode.")
