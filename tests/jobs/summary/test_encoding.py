"""Encoded summaries are small, exact and checked."""

import zlib
from dataclasses import fields, replace

import numpy as np
import pytest
from jobs.summary.drawn_summaries import WAITING, summary

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.jobs.summary import encoding
from tb_bottleneck.jobs.summary.encoding import decode, encode, first_steps

RANK = {"backend": "nccl", "rank": 1, "world_size": 2}
GROUPS = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}]


def tables_of(found):
    for table in (found.work, found.kernels, found.communications, found.points):
        for item in fields(table):
            yield item.name, getattr(table, item.name).tolist()


def test_ranks_share_the_lists_of_their_groups():
    """With 10,000 ranks, a list of all ranks per rank would take a gigabyte."""
    text = encode(summary(WAITING, distributedInfo={**RANK, "pg_config": GROUPS}))
    assert all(a is b for a, b in zip(decode(text).groups, decode(text).groups, strict=True))


def test_a_summary_survives():
    found = summary(WAITING)
    again = decode(encode(found))
    assert list(tables_of(again)) == list(tables_of(found))
    assert (again.facts, again.groups, again.numbers) == (found.facts, found.groups, found.numbers)
    assert (again.account.tolist(), again.edges.tolist()) == (found.account.tolist(), found.edges.tolist())


def test_of_a_large_summary_the_first_steps_are_kept(monkeypatch):
    found = summary(WAITING)
    monkeypatch.setattr(encoding, "MAX_BYTES", len(encode(first_steps(found, 1))))
    again = decode(encode(found))
    assert (again.steps, again.facts.cut, again.numbers) == (1, 1, found.numbers[:1])
    assert again.communications.step.max() == 0
    assert again.points.communication.max() < len(again.communications)


def test_ten_steps_of_a_hundred_collectives_fit():
    found = summary(WAITING)
    count, random = 1000, np.random.default_rng(0)
    start = np.cumsum(random.integers(10_000, 3_000_000, count))
    names = {item.name: np.zeros(count, np.int64) for item in fields(found.communications)}
    names |= {"step": np.arange(count) // 100, "order": np.arange(count), "start": start, "end": start + 5_000}
    names["bytes"] = random.integers(1, 50, count) << 20
    row = np.repeat(np.arange(count), 2)
    own = {kind: random.integers(0, 1_000_000, 2 * count) for kind in ("device", "host")}
    points = {item.name: np.zeros(2 * count, np.int64) for item in fields(found.points)}
    points |= {"time": np.repeat(start, 2), "communication": row, "resumes": np.arange(2 * count) % 2, **own}
    large = replace(
        found,
        edges=np.arange(11) * (start[-1] // 10 + 10_000),
        account=np.ones((10, 12), np.int64),
        numbers=tuple(range(10)),
        work=type(found.work)(*(np.ones(10, np.int64) for _ in fields(found.work))),
        communications=type(found.communications)(**names),
        points=type(found.points)(**points),
    )
    text = encode(large)
    assert len(text) < 64 * 1024
    assert decode(text).steps == 10


@pytest.mark.parametrize("cut", [0, 5, 30, -1])
def test_a_cut_summary_is_refused(cut):
    with pytest.raises(Unreadable):
        decode(encode(summary(WAITING))[:cut])


def test_damaged_bytes_are_refused_or_consistent():
    text = encode(summary(WAITING))
    head, body = text[: len(encoding._MAGIC)], zlib.decompress(text[len(encoding._MAGIC) :])
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        damaged = bytearray(body)
        damaged[random.integers(len(damaged))] = random.integers(256)
        try:
            decode(head + zlib.compress(bytes(damaged)))
        except Unreadable:
            refused += 1
    assert refused > 50
