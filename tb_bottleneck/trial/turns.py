"""Turns: the programs of a trial are all started, but train one at a time, for a fraction of a second each.

A machine is often faster or slower for some seconds, because other programs use its caches, memory or clock. If
programs run for seconds, one after the other, this affects them differently. With short turns, it affects all programs
alike. On a shared machine with two cores, the step times of equal programs differed by 11 to 19 % (standard deviation
of 5 pairs of blocks of 2 s, one after the other), by 7 % in turns of 0.5 s, by 3.6 % in turns of 0.25 s, and by 2.1 and
2.7 % in turns of 0.125 s.

The parent process grants each turn through a pipe, and the program sends reports through another one. Between its
turns, a program waits at the end of a step with an idle device, and the parent stops the program's process group. So
neither loader workers nor other threads prepare batches, and no thread uses the CPU while it waits for work.
"""

import os
import signal

TURN_S = 0.125
MAX_TURNS = 64
SKIPPED_PART = 1 / 3
"""Largest part of a turn for steps that are not measured, because loader workers had begun their batches before the
turn."""
LOADED, DONE = 255, 0
"""Reports of a program to the parent. LOADED: torch is imported. DONE: a turn is over. Any other number is reported
after the warm-up, and is the number of turns that the block can have."""
END = 0
"""The value that the parent grants after the last turn. Any other value grants a turn, and is the number of turns that
the block has."""


def possible_turns(measured_s: float, step_s: float, workers: int) -> int:
    """Returns the number of turns into which a block of `measured_s` seconds can be divided: an even number, or 1.

    `step_s` is the step time in s, and `workers` the number of loader workers. The larger they are, the longer a turn
    must be, because it must contain a whole step, and the first steps of a turn with workers are not measured.
    """
    shortest = max(TURN_S, step_s, step_s * workers * (1 / SKIPPED_PART - 1))
    turns = min(int(measured_s / shortest), MAX_TURNS)
    return max(turns - turns % 2, 1)


class Turns:
    """The program's end of the pipes to its parent. `receive` and `send` are file descriptors."""

    def __init__(self, receive: int, send: int) -> None:
        self._receive, self._send = receive, send

    def wait(self, report: int) -> int:
        """Sends `report` (LOADED, DONE or a number of possible turns) to the parent, and waits until it grants the next
        turn. Returns the number of turns in this block, or END if there are no more.

        If the parent process is gone, kills this process and the processes that it started.
        """
        try:
            os.write(self._send, bytes([report]))
            granted = os.read(self._receive, 1)
        except OSError:
            granted = b""
        if not granted:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        return granted[0]
