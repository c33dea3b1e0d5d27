"""Detects the end of each step from the hooks' events, and sums up the times within the step.

A step ends after its last optimizer update. With a loader, the next fetch of a batch shows which update was the last.
Several optimizers (as in a GAN) and several backward passes (gradient accumulation) can therefore make one step:

    fetch  forward backward  D.step  backward  G.step   | fetch ...
    ^--------------------- one step ----------------^     the fetch shows that the step ended after G.step

Without fetches, a step ends when an optimizer that already stepped in it steps again. The optimizer that stepped last
is then known to be the last one of each step, and from then on its update ends the step at once. The same applies if
one batch is trained on indefinitely (after REPEATS repeated updates in one step). The first call of `Monitor.step()`
disables this detection: from then on, each `step()` ends a step, and nothing else does.

The time of an event after an update, such as a checkpoint, belongs to the same step only if another update of that step
follows the event. Otherwise it belongs to the next step. The wall times of the steps are divided in the same way.

Batches are not training batches if gradients were off when they were fetched, if their iterator ran out before any
backward pass followed, or if their iterator gave several batches while another iterator is known to be trained on. The
time of such batches is in the column `evaluation`; their waits and samples do not count. The time of a forward pass in
evaluation mode with gradients off is in the column `evaluation`, too.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident

from tb_bottleneck.monitor.steps.row_queue import StepRow

Listener = Callable[[StepRow], None]
REPEATS = 16
MAX_TRAINED_ITERATORS = 8


@dataclass(slots=True)
class PendingBatches:
    """Batches that an iterator returned since the last backward pass: fetched, but not yet known to be trained on.

    `began` is the time of the first request, `wait` the total time of the requests; both are in nanoseconds. `batches`
    is the number of batches. `samples` is the number of samples in all batches; NaN if the size of a batch is
    unknown."""

    began: int
    wait: int = 0
    batches: int = 0
    samples: float = 0.0


class StepClock:
    """Receives the events of the hooks on the training thread, and calls `ended` with the StepRow of each finished
    step.

    `now` returns nanoseconds. There are no locks: everything except `is_training_thread` and `trained_iterators` is for
    the training thread, which is the thread of the first backward pass, update or `step()`. If the first fetch was on
    another thread, the training takes its batches from that thread. The time of fetches is then no wait of the
    training, and does not count."""

    def __init__(self, ended: Listener, now: Callable[[], int] = time.perf_counter_ns) -> None:
        self._ended = ended
        self.now = now
        self.thread: int | None = None
        """The id of the training thread; None while the training thread is not known."""
        self.steps = 0
        self.updates = 0
        """Number of updates by optimizers."""
        self.known: dict[str, float] = {}
        """The figures (with the value 0) that each new step begins with. A figure is added at its first event, so every
        later row has it. `samples` is not added, because no step has 0 samples."""
        self.began: int | None = None
        """The start of the open step; None before the first event."""
        self.in_backward = False
        self.step_has_backward = False
        self.fetched_elsewhere = False
        """True if another thread fetches the batches."""
        self._first_fetch_by: int | None = None
        self._figures: dict[str, float] = {}
        self._since_update: dict[str, float] = {}
        self._pending: dict[int, PendingBatches] = {}
        self._trained_iterators: dict[int, None] = {}
        self._evaluating = False
        self._any_backward = False
        self._stepped: dict[int, None] = {}
        self._repeats = 0
        self._step_has_fetch = False
        self._fetch_began = self._stepped_at = 0
        self._last_of_cycle: int | None = None
        self._in_optimizer: tuple[int, int] | None = None
        self._manual_steps = False

    def is_training_thread(self) -> bool:
        """Returns True on the training thread; also on any other thread while the training thread is not known yet."""
        return self.thread is None or self.thread == get_ident()

    def add(self, column: str, amount: float) -> None:
        """Adds `amount` to the figure `column` of the open step. After an optimizer's update, the amount is kept apart,
        because it may belong to the next step."""
        figures = self._since_update if self._stepped else self._figures
        if column in figures:
            figures[column] += amount
            return
        figures[column] = amount
        if column != "samples":
            self.known[column] = 0.0

    def add_time_since(self, column: str, began: int) -> None:
        """Adds the time since `began` (ns) to `column`. If this is called within an optimizer's step, because the
        optimizer runs the model itself (`closure`), subtracts the time from the optimizer's time."""
        spent = self.now() - began
        self.add(column, spent)
        if self._in_optimizer is not None:
            optimizer, since = self._in_optimizer
            self._in_optimizer = (optimizer, since + spent)

    def forward_ends(self, column: str, began: int, for_training: bool) -> None:
        """Adds the time of a forward pass, which began at `began` (ns), to `column` or to the column "evaluation".

        `for_training` is False in evaluation mode with gradients off. After the first backward pass, such a forward
        pass counts as evaluation, unless its batches come from a loader: in this case, the clock counts the whole time
        between the fetches as evaluation."""
        if for_training or not self._any_backward or self._evaluating or self._pending:
            self.add_time_since(column, began)
        else:
            self.add("evaluation", self.now() - began)

    def iterator_begins(self, iterator: int) -> bool:
        """Registers a new iterator with the id `iterator`. Python reuses ids, so earlier data under this id belongs to
        a deleted iterator, and is removed.

        Returns True if a deleted iterator with this id was trained on, otherwise False."""
        left, was_trained_on = self._pending.pop(iterator, None), iterator in self._trained_iterators
        if left is not None and self._trained_iterators and not was_trained_on:
            self.add("evaluation", max(0, self._fetch_began - left.began))
        self._trained_iterators.pop(iterator, None)
        return was_trained_on

    def trained_iterators(self) -> list[int]:
        """Returns the ids of the iterators whose batches were trained on, the newest last. Any thread may call this."""
        return list(self._trained_iterators)

    def fetch_begins(self, iterator: int) -> None:
        """Records that a batch is requested from the iterator with the id `iterator`."""
        now = self.now()
        if self._stepped and not self._manual_steps:
            self._last_of_cycle = None
            self._close(self._stepped_at)
            now = self.now()  # work at the end of a step, such as writing a trace, is no wait for the loader
        if self.began is None:
            self.began = now
            self._first_fetch_by = get_ident()
        if self._evaluating:
            self.add("evaluation", now - self._fetch_began)
            self._evaluating = False
        self._fetch_began = now
        self._in_optimizer = None

    def fetch_ends(self, iterator: int, samples: float | None, for_training: bool) -> None:
        """Records that the iterator returned the requested batch. `samples` is the size of the batch; None if unknown.
        `for_training` is False if gradients are off."""
        if self.fetched_elsewhere:
            return
        if "evaluation" not in self.known:
            self.add("evaluation", 0.0)
        if not for_training:
            self._evaluating = True
            return
        self._step_has_fetch = True
        pending = self._pending.setdefault(iterator, PendingBatches(self._fetch_began))
        pending.wait += self.now() - self._fetch_began
        pending.batches += 1
        pending.samples += math.nan if samples is None else samples

    def fetch_fails(self, iterator: int, for_training: bool) -> None:
        """Records that the iterator returned no batch: it has no more, or the loader only created it. `for_training` is
        False if gradients are off."""
        if self.fetched_elsewhere:
            return
        now = self.now()
        pending = self._pending.get(iterator)
        if pending is not None and self._any_backward and iterator not in self._trained_iterators:
            del self._pending[iterator]
            self.add("evaluation", now - pending.began)
        else:
            self.add("loader_wait" if for_training else "evaluation", now - self._fetch_began)

    def backward_begins(self) -> int:
        """Records the start of a backward pass. Returns the time in ns, for `backward_ends`."""
        now = self.now()
        if self.began is None:
            self.began = now
        if self.thread is None:
            self._set_training_thread()
        self._any_backward = self.step_has_backward = self.in_backward = True
        self._train_on_pending()
        return now

    def backward_ends(self, began: int) -> None:
        """Records the end of the backward pass; `began` is the result of `backward_begins`."""
        self.in_backward = False
        self.add_time_since("backward", began)
        if self._stepped and self._stepped_at >= began:  # an optimizer stepped inside the backward pass
            self._stepped_at = self.now()
            self._include_since_update()

    def optimizer_begins(self, optimizer: int) -> None:
        """Records the start of a step of the optimizer with the id `optimizer`. A step inside another optimizer's step
        counts as part of the outer step."""
        now = self.now()
        if self.began is None:
            self.began = now
        if self._in_optimizer is None or self._in_optimizer[0] == optimizer:
            self._in_optimizer = (optimizer, now)

    def optimizer_ends(self, optimizer: int) -> bool:
        """Records the end of a step of the optimizer with the id `optimizer`. Returns False if this step was inside
        another optimizer's step, otherwise True."""
        if self._in_optimizer is None or self._in_optimizer[0] != optimizer:
            return False
        now = self.now()
        self.updates += 1
        if self.thread is None:
            self._set_training_thread()
        self._train_on_pending()
        if optimizer in self._stepped and not self._manual_steps:
            self._repeats += 1
            if not self._step_has_fetch or self._repeats >= REPEATS:
                self._last_of_cycle = next(reversed(self._stepped))
                self._close(self._stepped_at)
        self.add("optimizer", now - self._in_optimizer[1])
        self._in_optimizer = None
        now = max(now, self.began or now)  # at the end of a step, the training may have waited (session.py)
        if self._manual_steps:
            return True
        self._include_since_update()
        self._stepped[optimizer] = None
        self._stepped_at = now
        if optimizer == self._last_of_cycle:
            self._close(now)
        return True

    def step(self, samples: float | None = None) -> None:
        """Ends a step, because the training called Monitor.step. `samples` is the number of samples in the step; None
        if unknown."""
        now = self.now()
        if self.thread is None:
            self._set_training_thread()
        self._train_on_pending()
        self._manual_steps = True
        if samples is not None:
            self.add("samples", samples - self._figures.get("samples", 0.0))
        if self.began is None:
            self.began = now  # the start of the first step is unknown, so it has no row
            return
        self._include_since_update()
        self._close(now)

    def finish(self) -> None:
        """Ends the run. Closes the last step if it is finished but no fetch followed it."""
        if self._stepped and not self._manual_steps:
            self._close(self._stepped_at)

    def _set_training_thread(self) -> None:
        self.thread = get_ident()
        self.fetched_elsewhere = self._first_fetch_by not in (None, self.thread)
        if self.fetched_elsewhere:
            self._pending.clear()
            self._evaluating = self._step_has_fetch = False
            for column in ("loader_wait", "evaluation", "samples"):
                self._figures.pop(column, None)
                self._since_update.pop(column, None)
                self.known.pop(column, None)

    def _train_on_pending(self) -> None:
        self._evaluating = False
        if not self._pending:
            return
        some_known = any(iterator in self._trained_iterators for iterator in self._pending)
        for iterator, pending in self._pending.items():
            if some_known and pending.batches > 1 and iterator not in self._trained_iterators:
                self.add("evaluation", max(0, self._fetch_began - pending.began))
                continue
            self._trained_iterators[iterator] = None
            self.add("loader_wait", pending.wait)
            if not math.isnan(pending.samples):
                self.add("samples", pending.samples)
        self._pending.clear()
        while len(self._trained_iterators) > MAX_TRAINED_ITERATORS:
            del self._trained_iterators[next(iter(self._trained_iterators))]

    def _include_since_update(self) -> None:
        """Adds the figures since the last optimizer update to the open step."""
        for column, amount in self._since_update.items():
            self._figures[column] = self._figures.get(column, 0.0) + amount
        self._since_update.clear()

    def _close(self, end: int) -> None:
        began = end if self.began is None else self.began
        row = StepRow(self.steps, end, end - began, self._figures)
        self._figures = self.known | self._since_update
        self._since_update.clear()
        self.steps += 1
        self.began = end
        self.step_has_backward = self._step_has_fetch = False
        self._repeats = 0
        self._stepped.clear()
        self._ended(row)


def clock_cost_ns(steps: int = 200) -> float:
    """Returns the time in ns that the clock itself takes per ordinary step on this machine, with warm CPU caches. It is
    measured over `steps` steps."""
    clock = StepClock(lambda _row: None)
    began = time.perf_counter_ns()
    for _ in range(steps):
        clock.fetch_begins(1)
        clock.fetch_ends(1, 8.0, True)
        clock.backward_ends(clock.backward_begins())
        clock.optimizer_begins(1)
        clock.optimizer_ends(1)
    return (time.perf_counter_ns() - began) / steps
