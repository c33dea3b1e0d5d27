"""Tests of the bounded map."""

from tb_bottleneck.plugin.state.run_index import LruCache


def test_the_least_recently_used_entry_is_dropped() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_only_selected_entries_are_kept() -> None:
    cache: LruCache[str, int] = LruCache(9)
    for number, key in enumerate("abc"):
        cache.put(key, number)
    cache.keep({"b"}.__contains__)
    assert [cache.get(key) for key in "abc"] == [None, 1, None]
