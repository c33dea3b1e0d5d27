"""A window over the plain bytes of a file that moves forward."""

from collections.abc import Iterator

from tb_bottleneck.base.errors import Unreadable


class ByteSource:
    """`data` from `at` on is not consumed yet. `need` makes sure that enough of it is there."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.data = b""
        self.at = 0
        self._blocks = blocks

    def need(self, count: int) -> None:
        """Makes at least `count` bytes available after `at`. Raises Unreadable at the end of the file."""
        if not self.fill(count):
            raise Unreadable("The snapshot ends early: the process that wrote it was stopped or ran out of disk space.")

    def fill(self, count: int) -> bool:
        """Returns True if `count` bytes are available after `at`, after reading as much as is needed."""
        if len(self.data) - self.at >= count:
            return True
        parts, have = [self.data[self.at :]], len(self.data) - self.at
        while have < count:
            block = next(self._blocks, b"")
            if not block:
                break
            parts.append(block)
            have += len(block)
        self.data, self.at = b"".join(parts), 0
        return have >= count

    def take(self, count: int) -> bytes:
        """Returns the next bytes."""
        self.need(count)
        begin = self.at
        self.at += count
        return self.data[begin : self.at]
