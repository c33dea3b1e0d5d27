"""Turns: the variants of a trial train one at a time, for a part of a second each, although all of them are started.

A machine is often faster or slower for some seconds, because other programs use its caches, memory or clock. Blocks of
seconds, one after the other, meet different times; short turns meet the same. On a shared machine with two cores, the
step times of equal programs differed by 11 to 19 % (standard deviation of 5 pairs of blocks of 2 s, one after the
other), by 7 % in turns of 0.5 s, by 3.6 % in turns of 0.25 s, and by 2.1 and 2.7 % in turns of 0.125 s.

The parent grants each turn through a pipe, and the program reports through another one. Without a turn, the program
waits at the end of a step with its device idle, and the parent stops the group of its processes, so that neither loader
workers nor other threads prepare batches, and no thread spins until it gets work.
"""

import os
import signal

TURN_S = 0.125
MAX_TURNS = 64
SKIPPED_PART = 1 / 3
"""Of a turn, the largest part for the steps that are not measured: those with batches that workers had begun."""
LOADED, DONE = 255, 0
"""Reports of a program: torch is imported; a turn is over. Any other number is reported after the warm-up: how many
turns the block can have."""
END = 0
"""Granted after the last turn. Any other number grants a turn, and is the number of turns of the block."""


def possible_turns(measured_s: float, step_s: float, workers: int) -> int:
    """Returns the number of turns that a block of `measured_s` seconds can be divided into: an even number, or 1.
    `step_s` is the step time in s, `workers` the number of the loader's workers; both make the shortest possible turn
    longer."""
    shortest = max(TURN_S, step_s, step_s * workers * (1 / SKIPPED_PART - 1))
    turns = min(int(measured_s / shortest), MAX_TURNS)
    return max(turns - turns % 2, 1)


class Turns:
    """The program's end of the pipes to its parent. `receive` and `send` are file descriptors."""

    def __init__(self, receive: int, send: int) -> None:
        self._receive, self._send = receive, send

    def wait(self, report: int) -> int:
        """Sends `report` to the parent, waits for the next turn, and returns the granted value. If the parent is gone,
        ends this process and those that it started."""
        try:
            os.write(self._send, bytes([report]))
            granted = os.read(self._receive, 1)
        except OSError:
            granted = b""
        if not granted:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        return granted[0]
