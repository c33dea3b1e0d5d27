"""A step clock that is played: a drawing of the events of a training, with the times between them."""

from itertools import groupby

from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.monitor.steps.step_clock import StepClock

MS = 1_000_000


class Played:
    """A run of a drawing; `rows` are the clock's rows."""

    def __init__(self, drawing: str) -> None:
        self.now = 0
        self.rows: list[StepRow] = []
        self.clock = StepClock(self.rows.append, lambda: self.now)
        for letter, run in groupby(drawing):
            self._happens(letter, len(list(run)) * MS)

    def _happens(self, letter: str, took: int) -> None:
        clock, key = self.clock, ord(letter.upper())
        if letter in "LMVWlmvw":
            clock.fetch_begins(key)
            self.now += took
            for_training = letter.upper() != "V"
            if letter.isupper():
                clock.fetch_ends(key, 8, for_training)
            else:
                clock.fetch_fails(key, for_training)
        elif letter == "B":
            began = clock.backward_begins()
            self.now += took
            clock.backward_ends(began)
        elif letter in "ODG":
            clock.optimizer_begins(key)
            self.now += took
            clock.optimizer_ends(key)
        elif letter == "C":
            began = self.now
            self.now += took
            clock.add_time_since("checkpoint", began)
        elif letter == "|":
            clock.step()
        else:
            self.now += took if letter == "." else 0

    def ms(self, column: str) -> list[float]:
        return [row.figures.get(column, -1) / (1 if column == "samples" else MS) for row in self.rows]

    def over(self) -> "Played":
        self.clock.finish()
        return self

    @property
    def walls(self) -> list[float]:
        return [row.wall_ns / MS for row in self.rows]
