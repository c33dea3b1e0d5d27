"""Decides which question a worker process answers next, so that no recording and no client can occupy all of them."""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable

from tb_bottleneck.plugin.workers.questions import RecordingQuestion, paths_of

WAITING_LIMIT = 64  # a tab does not withdraw its questions, so old ones are dropped
MAX_PER_CLIENT = 2
"""Questions of one client that are answered at the same time: fewer than there are processes."""

Slot = Hashable


class QuestionSchedule:
    """The waiting and the running questions. It has no lock; its owner holds one.

    Questions about one file are answered one after the other: the first one reads it, a damaged file holds one process
    only. A process that has a file in memory goes first for it. Among the clients, the one with the fewest running
    questions is next, then the one that waits longest; of one client the newest question, which is on the screen.
    """

    def __init__(self) -> None:
        self.waiting: OrderedDict[RecordingQuestion, str] = OrderedDict()  # with their clients
        self.running: dict[RecordingQuestion, tuple[Slot, str]] = {}
        self._read_by: dict[Slot, frozenset[str]] = {}  # the files of the last question of each process
        self._turns = 0
        self._last_turn: dict[str, int] = {}

    def add(self, question: RecordingQuestion, client: str) -> None:
        """Adds a question, or makes it the newest one. Of too many, the oldest one of the client with most of them is
        dropped."""
        self.waiting[question] = client
        self.waiting.move_to_end(question)
        if len(self.waiting) > WAITING_LIMIT:
            busiest = Counter(self.waiting.values()).most_common(1)[0][0]
            del self.waiting[next(each for each, asked_by in self.waiting.items() if asked_by == busiest)]

    def next(self, slot: Slot, idle: Iterable[Slot]) -> RecordingQuestion | None:
        """Returns the question that this process should answer; None if it should wait. `idle` are all processes
        without a question."""
        busy = frozenset[str]().union(*map(paths_of, self.running))
        elsewhere = frozenset[str]().union(*(self._read_by.get(other, frozenset()) for other in idle if other != slot))
        elsewhere -= self._read_by.get(slot, frozenset())
        running = Counter(client for _, client in self.running.values())
        clients = [client for client in dict.fromkeys(self.waiting.values()) if running[client] < MAX_PER_CLIENT]
        for client in sorted(clients, key=lambda client: (running[client], self._last_turn.get(client, 0))):
            for question in reversed([each for each, asked_by in self.waiting.items() if asked_by == client]):
                if not paths_of(question) & (busy | elsewhere):
                    return question
        return None

    def start(self, question: RecordingQuestion, slot: Slot) -> None:
        """Records that this process answers a waiting question."""
        client = self.waiting.pop(question)
        self.running[question] = slot, client
        self._read_by[slot] = paths_of(question)
        self._turns += 1
        self._last_turn[client] = self._turns
        if len(self._last_turn) > WAITING_LIMIT:
            del self._last_turn[min(self._last_turn, key=self._last_turn.__getitem__)]

    def end(self, question: RecordingQuestion) -> str:
        """Records that a question is not answered any more. Returns its client."""
        _, client = self.running.pop(question)
        return client

    def forget(self, slot: Slot) -> None:
        """Removes a process that ended."""
        self._read_by.pop(slot, None)
