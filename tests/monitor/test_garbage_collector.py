"""The stack of another thread is read without a collection, which lets that thread leave a frame that is being read."""

import gc
import os
import subprocess
import sys

import pytest

from tb_bottleneck.monitor import garbage_collector

PROGRAM = """
import gc, random, sys, threading, time
from tb_bottleneck.monitor.writer.stall_stacks import StallStacks

sys.setswitchinterval(1e-5)
gc.set_threshold(40)
gc.callbacks.append(lambda phase, info: sum(range(5000)))  # long enough for the other thread to go on
calls = []
for number in range(40):  # frames of different sizes
    values = "".join(f"    v{each} = {each}.5\\n" for each in range(number % 13 * 5))
    scope = {"calls": calls, "random": random}
    exec(f"def call(depth):\\n{values}    return random.choice(calls)(depth - 1) if depth else [0]", scope)
    calls.append(scope["call"])
until, walks = time.time() + 3, 0

def walk():
    global walks
    stacks = StallStacks()
    while time.time() < until:
        stacks.look(None)
        stacks.all_threads(None)
        walks += 1

thread = threading.Thread(target=walk)
thread.start()
kept = []
while time.time() < until:
    kept = kept[-1000:] + [calls[20](20)]
thread.join()
assert time.time() >= until and walks > 100, walks
"""


def test_collections_do_not_disturb_the_reading_of_stacks() -> None:
    """Without the pause, Python 3.11 reads frames in memory that is used again: it fails or crashes."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the collector stays on")
@pytest.mark.parametrize("before", [True, False])
def test_the_collector_is_as_before_afterwards(before: bool) -> None:
    (gc.enable if before else gc.disable)()
    try:
        with garbage_collector.off():
            assert not gc.isenabled()
        assert gc.isenabled() == before
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_is_forked_meanwhile_has_its_collector() -> None:
    with garbage_collector.off():
        child = os.fork()
        if not child:
            enabled = gc.isenabled()
            with garbage_collector.off():  # the lock is free, too
                os._exit(0 if enabled else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
