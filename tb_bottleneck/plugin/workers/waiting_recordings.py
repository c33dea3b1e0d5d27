"""The recordings that wait for their analysis, in the order in which they are taken."""

from heapq import heapify, heappop, heappush
from itertools import count

from tb_bottleneck.sources.logdir import RecordingFile

_Aged = tuple[int, str, int, RecordingFile]
"""Minus the time of change, so that the newest is first; its path; and a number of its own, since the same recording
may be added again before its first entry is dropped."""


class WaitingRecordings:
    """Those that were asked for come first, the last one asked for before the others; then the newest.

    Every method but `replace` takes about the same time for ten as for ten thousand. One thread at a time.
    """

    def __init__(self) -> None:
        self._waiting: set[RecordingFile] = set()
        self._asked: dict[RecordingFile, None] = {}  # in the order of the last question; some wait no longer
        self._aged: list[_Aged] = []  # a heap; some wait no longer
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._waiting)

    def all(self) -> frozenset[RecordingFile]:
        """Returns all of them."""
        return frozenset(self._waiting)

    def add(self, recording: RecordingFile) -> None:
        """Adds a recording, if it does not wait already."""
        if recording not in self._waiting:
            self._waiting.add(recording)
            heappush(self._aged, self._aged_entry(recording))

    def ask_for(self, recording: RecordingFile) -> None:
        """Adds a recording, and moves it to the head."""
        self.add(recording)
        self._asked.pop(recording, None)
        self._asked[recording] = None

    def replace(self, recordings: frozenset[RecordingFile]) -> None:
        """Makes these the only ones. Those that were asked for stay at the head."""
        self._waiting = set(recordings)
        self._asked = {each: None for each in self._asked if each in recordings}
        self._aged = [self._aged_entry(each) for each in recordings]
        heapify(self._aged)

    def take(self) -> RecordingFile:
        """Removes the first recording, and returns it. Raises IndexError if none waits."""
        while self._asked:
            recording = self._asked.popitem()[0]
            if recording in self._waiting:
                self._waiting.remove(recording)
                return recording
        while True:
            recording = heappop(self._aged)[-1]
            if recording in self._waiting:
                self._waiting.remove(recording)
                return recording

    def _aged_entry(self, recording: RecordingFile) -> _Aged:
        return -recording.mtime_ns, recording.path, next(self._numbers), recording
