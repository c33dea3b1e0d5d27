"""A shared response is made at most during a twentieth of the time, and by one thread."""

import gzip
import threading

import pytest

from tb_bottleneck.plugin.http.responses import Response, SharedResponse


class Clock:
    """A clock that the test sets; making a response takes a second."""

    def __init__(self) -> None:
        self.time, self.made = 0.0, 0

    def now(self) -> float:
        return self.time

    def make(self) -> Response:
        self.made += 1
        self.time += 1.0
        return Response(b"%d" % (self.made // 3), "application/json")


def test_it_is_made_again_after_twenty_times_the_time_that_it_took() -> None:
    clock = Clock()
    shared = SharedResponse(clock.make, clock.now)
    for _ in range(50):
        shared.get()
    assert clock.made == 1
    clock.time += 18.9
    shared.get()
    assert clock.made == 1
    clock.time += 0.2
    shared.get()
    assert clock.made == 2


def test_clients_get_compressed_content_with_a_tag_that_changes_with_it() -> None:
    clock = Clock()
    shared = SharedResponse(clock.make, clock.now)
    tags = []
    for number in range(4):
        answer = shared.get()
        assert gzip.decompress(answer.content) == b"%d" % ((number + 1) // 3)
        tags.append(answer.tag)
        clock.time += 20
    assert tags[0] == tags[1] != tags[2] == tags[3]


def test_while_a_thread_makes_the_next_one_others_get_the_last_one() -> None:
    begun, go_on = threading.Event(), threading.Event()
    clock = Clock()

    def make() -> Response:
        made = clock.make()
        if clock.made == 2:
            begun.set()
            assert go_on.wait(10)
        return made

    shared = SharedResponse(make, clock.now)
    first = shared.get()
    clock.time += 20
    slow = threading.Thread(target=shared.get)
    slow.start()
    assert begun.wait(10)
    clock.time += 100
    assert shared.get() is first
    go_on.set()
    slow.join(10)
    assert clock.made == 2


def test_after_an_exception_it_is_made_again() -> None:
    def make() -> Response:
        if not failures:
            return Response(b"text", "text/plain")
        raise failures.pop()

    failures = [RuntimeError("once")]
    shared = SharedResponse(make)
    with pytest.raises(RuntimeError, match="once"):
        shared.get()
    assert gzip.decompress(shared.get().content) == b"text"
