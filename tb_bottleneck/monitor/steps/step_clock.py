"""Tells where one step ends and the next begins, and adds up what lay in it, from what the hooks see.

A step ends where an optimizer is done. With a loader, that is told when the next batch is fetched, so that several
optimizers (a GAN's) and several backward passes (gradient accumulation) make one step:

    fetch  forward backward  D.step  backward  G.step   | fetch ...
    ^--------------------- one step ----------------^     told here, ended there

Where no batch was fetched, an optimizer that stepped before steps again; from then on the cycle's last one ends the
step at once. So it is too where one batch is trained on for ever (after REPEATS updates by the same optimizer). The
first `step()` from outside switches all of that off: then each `step()` ends a step, and nothing else does.

Batches fetched with gradients off were not trained on. Neither were those of an iterator that ran out before any
backward pass followed, or that gave several while another one is known to be trained on. The time spent on them is
`evaluation`, their waits and samples count nowhere.
"""

import math
import time
from collections.abc import Callable
from threading import get_ident

from tb_bottleneck.monitor.steps.pending_batches import Fetched
from tb_bottleneck.monitor.steps.step_rows import StepRow

Listener = Callable[[StepRow], None]
REPEATS = 16
MOST_LOADERS = 8


class StepClock:
    """Gets each hook's news on the training thread; calls `ended` with each row.

    `now` gives nanoseconds. Nothing here is locked: all but `is_mine` is for the training thread alone, which is the
    one that runs the first backward pass, the first update or the first `step()`. Where another thread fetched before
    that, the training takes its batches from there: what fetching took is then nobody's wait, and counts nowhere.
    """

    def __init__(self, ended: Listener, now: Callable[[], int] = time.perf_counter_ns) -> None:
        self._ended = ended
        self.now = now
        self.thread: int | None = None
        """The training thread, once it is known."""
        self.steps = 0
        self.known: dict[str, float] = {}
        """Figures that every row has, at 0 where nothing added to them: a signal joins with its first news. Not so
        `samples`, which no step has none of."""
        self.began: int | None = None
        """Where the open step began; None until the first news."""
        self.in_backward = False
        self.trained = False  # whether the open step had a backward pass yet
        self.fetched_elsewhere = False  # whether another thread fetches the batches
        self._first_fetch_by: int | None = None
        self._figures: dict[str, float] = {}
        self._pending: dict[int, Fetched] = {}
        self._trained: dict[int, None] = {}
        self._evaluating = False
        self._saw_backward = False
        self._stepped: dict[int, None] = {}
        self._repeats = 0
        self._fetched = False
        self._fetch_began = self._stepped_at = 0
        self._last_of_cycle: int | None = None
        self._in_optimizer: tuple[int, int] | None = None
        self._by_hand = False

    def is_mine(self) -> bool:
        """Whether this is the training thread, or that is not known yet."""
        return self.thread is None or self.thread == get_ident()

    def add(self, column: str, amount: float) -> None:
        """Adds to a figure of the open step."""
        figures = self._figures
        if column in figures:
            figures[column] += amount
            return
        figures[column] = amount
        if column != "samples":
            self.known[column] = 0.0

    def spent(self, column: str, began: int) -> None:
        """Adds the time since a moment, and takes it from the optimizer's where it runs the model by itself
        (`closure`)."""
        spent = self.now() - began
        self.add(column, spent)
        if self._in_optimizer is not None:
            optimizer, since = self._in_optimizer
            self._in_optimizer = (optimizer, since + spent)

    def iterator_begins(self, loader: int) -> bool:
        """An iterator was made. What is known under its number is of one that has gone, because Python gives numbers
        again. Returns whether that one was trained on."""
        left, was_trained_on = self._pending.pop(loader, None), loader in self._trained
        if left is not None and self._trained and not was_trained_on:
            self.add("evaluation", max(0, self._fetch_began - left.began))
        self._trained.pop(loader, None)
        return was_trained_on

    def trained_on(self) -> list[int]:
        """The iterators that were trained on, the newest last; for any thread."""
        return list(self._trained)

    def fetch_begins(self, loader: int) -> None:
        """A batch is asked for. `loader` tells one iterator from another."""
        now = self.now()
        if self._stepped and not self._by_hand:
            self._last_of_cycle = None
            self._close(self._stepped_at)
        if self.began is None:
            self.began = now
            self._first_fetch_by = get_ident()
        if self._evaluating:
            self.add("evaluation", now - self._fetch_began)
            self._evaluating = False
        self._fetch_began = now
        self._in_optimizer = None

    def fetch_ends(self, loader: int, samples: float | None, for_training: bool) -> None:
        """The batch is there."""
        if self.fetched_elsewhere:
            return
        if "evaluation" not in self.known:
            self.add("evaluation", 0.0)
        if not for_training:
            self._evaluating = True
            return
        self._fetched = True
        fetched = self._pending.setdefault(loader, Fetched(self._fetch_began))
        fetched.wait += self.now() - self._fetch_began
        fetched.batches += 1
        fetched.samples += math.nan if samples is None else samples

    def fetch_fails(self, loader: int, for_training: bool) -> None:
        """There was no batch left, or the loader was only made ready."""
        if self.fetched_elsewhere:
            return
        now = self.now()
        fetched = self._pending.get(loader)
        if fetched is not None and self._saw_backward and loader not in self._trained:
            del self._pending[loader]
            self.add("evaluation", now - fetched.began)
        else:
            self.add("loader_wait" if for_training else "evaluation", now - self._fetch_began)

    def backward_begins(self) -> int:
        """Returns the moment."""
        now = self.now()
        if self.began is None:
            self.began = now
        if self.thread is None:
            self._is_here()
        self._saw_backward = self.trained = self.in_backward = True
        self._train_on_pending()
        return now

    def backward_ends(self, began: int) -> None:
        """`began` is what `backward_begins` returned."""
        self.in_backward = False
        self.spent("backward", began)
        if self._stepped and self._stepped_at >= began:  # by an optimizer that runs inside the backward pass
            self._stepped_at = self.now()

    def optimizer_begins(self, optimizer: int) -> None:
        """An optimizer that runs inside another one's step is part of that."""
        now = self.now()
        if self.began is None:
            self.began = now
        if self._in_optimizer is None or self._in_optimizer[0] == optimizer:
            self._in_optimizer = (optimizer, now)

    def optimizer_ends(self, optimizer: int) -> bool:
        """Returns whether this was a whole update, not one inside another's."""
        if self._in_optimizer is None or self._in_optimizer[0] != optimizer:
            return False
        now = self.now()
        self.add("optimizer", now - self._in_optimizer[1])
        self._in_optimizer = None
        if self.thread is None:
            self._is_here()
        self._train_on_pending()
        if self._by_hand:
            return True
        if optimizer in self._stepped:
            self._repeats += 1
            if not self._fetched or self._repeats >= REPEATS:
                self._last_of_cycle = next(reversed(self._stepped))
                self._close(self._stepped_at)
        self._stepped[optimizer] = None
        self._stepped_at = now
        if optimizer == self._last_of_cycle:
            self._close(now)
        return True

    def step(self, samples: float | None = None) -> None:
        """A step ends here, says the training itself."""
        now = self.now()
        if self.thread is None:
            self._is_here()
        self._train_on_pending()
        self._by_hand = True
        if samples is not None:
            self.add("samples", samples - self._figures.get("samples", 0.0))
        if self.began is None:
            self.began = now  # the first step has no beginning, so it is no row
            return
        self._close(now)

    def finish(self) -> None:
        """The run is over: ends the step that an optimizer was done with, and that no fetch came after."""
        if self._stepped and not self._by_hand:
            self._close(self._stepped_at)

    def _is_here(self) -> None:
        """This is the training thread."""
        self.thread = get_ident()
        self.fetched_elsewhere = self._first_fetch_by not in (None, self.thread)
        if self.fetched_elsewhere:
            self._pending.clear()
            self._evaluating = self._fetched = False
            for column in ("loader_wait", "evaluation", "samples"):
                self._figures.pop(column, None)
                self.known.pop(column, None)

    def _train_on_pending(self) -> None:
        self._evaluating = False
        if not self._pending:
            return
        some_known = any(loader in self._trained for loader in self._pending)
        for loader, fetched in self._pending.items():
            if some_known and fetched.batches > 1 and loader not in self._trained:
                self.add("evaluation", max(0, self._fetch_began - fetched.began))
                continue
            self._trained[loader] = None
            self.add("loader_wait", fetched.wait)
            if not math.isnan(fetched.samples):
                self.add("samples", fetched.samples)
        self._pending.clear()
        while len(self._trained) > MOST_LOADERS:
            del self._trained[next(iter(self._trained))]

    def _close(self, end: int) -> None:
        began = end if self.began is None else self.began
        row = StepRow(self.steps, end, end - began, self._figures)
        self._figures = self.known.copy()
        self.steps += 1
        self.began = end
        self.trained = self._fetched = False
        self._repeats = 0
        self._stepped.clear()
        self._ended(row)
