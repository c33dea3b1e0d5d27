"""The machines of a job's ranks: which one is slower at the same work, by figures and in a job of two real ranks."""

import json
import os
import subprocess
import sys
from random import Random

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.jobs.machines import SlowMachine, figure_table, slow_machines, verdict_text

USUAL = {
    "product": 745e12,
    "device_copy": 2.6e12,
    "to_device": 50e9,
    "host_memory": 9e9,
    "core": 30e6,
    "core_cpu": 31e6,
}


def figures(ranks: int, seed: int = 0, noise: float = 0.01, **slower: dict[int, float]) -> list[dict[str, float]]:
    """Returns figures of `ranks` ranks with noise; `slower` has factors by figure and rank."""
    random, usual = Random(seed), {**USUAL, "link": 20e9}
    return [
        {name: value * random.gauss(1, noise) * slower.get(name, {}).get(rank, 1.0) for name, value in usual.items()}
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({}, []),
        ({"product": {3: 0.82}}, [(3, "its device multiplies matrices 1")]),
        ({"core": {1: 0.5}}, [(1, "its process runs 5")]),
        ({"core": {1: 0.7}, "core_cpu": {1: 0.7}}, [(1, "the clock of its core is lower")]),
        ({"link": {2: 0.3}}, [(2, "messages from the rank before it are 7")]),
    ],
    ids=["none", "device", "busy core", "slow core", "link"],
)
def test_a_slow_machine_is_told_from_equal_ones(planted, said, seed):
    found = slow_machines(figures(8, seed, **planted), on_cpu=False)
    assert [each.rank for each in found] == [rank for rank, _ in said]
    for each, (_, text) in zip(found, said, strict=True):
        assert text in each.sentence
    assert ("look at the code" in verdict_text(found, 8)) == (not said)


def test_on_a_cpu_a_busy_core_explains_the_other_figures():
    planted = {name: {1: 0.5} for name in ("core", "product", "host_memory")}
    assert [each.figure for each in slow_machines(figures(4, **planted), on_cpu=True)] == ["core"]


@pytest.mark.parametrize(
    ("planted", "ranks"),
    [
        ({"core": {1: 0.6}}, []),
        ({"core": {1: 0.6}, "product": {1: 0.95}}, []),
        ({"core": {1: 0.6}, "product": {1: 0.7}}, [1]),
        ({"core": {1: 0.6}, "host_memory": {1: 0.6}}, [1]),
        ({"link": {1: 0.5}}, []),
        ({"link": {1: 0.3}}, [1]),
    ],
    ids=["the core alone", "little more", "with products", "with memory", "a link at half", "a slow link"],
)
def test_on_a_cpu_a_core_alone_and_a_link_at_half_of_the_speed_are_noise(planted, ranks):
    assert [each.rank for each in slow_machines(figures(2, **planted), on_cpu=True)] == ranks


def test_a_link_far_below_all_others_is_slow_although_they_differ():
    """Measured with four ranks on two cores."""
    for slow, others in ((434, (1970, 3020, 3240)), (431, (1400, 2070, 2140)), (434, (434, 3020, 3240))):
        found = slow_machines([{"link": float(speed)} for speed in (*others[:1], slow, *others[1:])], on_cpu=True)
        assert [each.rank for each in found] == ([1] if others[0] > slow else [])


def test_figures_that_differ_on_all_ranks_are_no_machine():
    assert not slow_machines(figures(8, noise=0.08), on_cpu=True)


def test_what_was_not_measured_is_not_slow():
    assert not slow_machines([{"core": 1.0}, {}, {"core": 1.0, "core_cpu": 1.0}], on_cpu=True)
    assert "core" in next(figure_table([{"core": 1.0}]))


def test_outside_of_a_job_the_command_says_how_to_start_it(monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    assert main(["doctor", "--job"]) == 2
    assert "torchrun" in capsys.readouterr().err


def test_the_ranks_of_a_job_measure_together(tmp_path):
    """Which rank is slow depends on what else this machine does; all figures have to be there."""
    environment = os.environ | {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29871"}
    command = [sys.executable, "-m", "tb_bottleneck", "doctor", "--job", "--json"]
    ranks = [
        subprocess.Popen(command, env=environment | {"RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    assert printed[1:] == ["", ""]
    result = json.loads(printed[0])
    assert len(result["ranks"]) == 3
    for each in result["ranks"]:
        assert {"product", "host_memory", "core", "core_cpu", "all_reduce", "link"} <= each.keys()
        assert all(value > 0 for value in each.values())


def test_a_sentence_names_rank_figure_and_difference():
    assert SlowMachine(3, "product", 0.18, False).sentence == (
        "Rank 3: its device multiplies matrices 18 % slower than on the other ranks."
    )
