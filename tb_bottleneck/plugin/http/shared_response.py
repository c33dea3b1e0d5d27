"""A response that many clients share, because it takes long to make."""

import gzip
import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from tb_bottleneck.plugin.http.responses import Response

SHARE_OF_TIME = 0.05
"""Largest share of the time in which responses are made, however many clients ask."""

_LEVEL = 3  # of gzip, as in TensorBoard


class SharedResponse:
    """Makes the response on request, at most during a twentieth of the time; until then clients get the last one.

    The list of 8,000 recordings takes 0.3 s. While they are analysed it changes all the time, and each client would
    have a list of its own made, compressed and hashed every second. That list is 6 s old at most, one of ten recordings
    40 ms.

    Any thread may call `get`.
    """

    def __init__(self, make: Callable[[], Response], now: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._now = now
        self._making = threading.Lock()
        self._last: Response | None = None
        self._valid_until = 0.0
        self._content = b""

    def get(self) -> Response:
        """Returns the response, compressed. Raises what making it raises."""
        last = self._last
        if last is not None and (self._now() < self._valid_until or self._making.locked()):
            return last
        with self._making:
            if self._last is not None and self._now() < self._valid_until:
                return self._last  # another thread made it meanwhile
            return self._made()

    def _made(self) -> Response:
        began = self._now()
        made = self._make()
        if self._last is None or made.content != self._content:
            tag = hashlib.sha256(made.content).hexdigest()[:32]
            compressed = gzip.compress(made.content, _LEVEL, mtime=0)
            self._content = made.content
            self._last = replace(made, content=compressed, encoding="gzip", tag=tag)
        ended = self._now()
        self._valid_until = ended + (ended - began) * (1 / SHARE_OF_TIME - 1)
        return self._last
