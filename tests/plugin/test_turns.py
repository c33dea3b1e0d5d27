"""A long loop lets other threads run."""

import time

from tb_bottleneck.plugin.turns import in_turns


def test_other_threads_run_before_each_count_of_items(monkeypatch):
    done, given_way = [], []
    monkeypatch.setattr(time, "sleep", lambda seconds: given_way.append((len(done), seconds)))
    for item in in_turns("abcdefg", 3):
        done.append(item)
    assert done == list("abcdefg")
    assert given_way == [(0, 0), (3, 0), (6, 0)]
