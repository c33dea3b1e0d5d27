"""The fuzzer: a short search with each test run, and the detection of planted defects."""

import random
import re
from pathlib import Path

import fuzz
import pytest
from fuzz import MUTATIONS, Fuzzer, corpus, damaged
from fuzz_entries import ENTRIES, behaviour_of

CASES = 150


@pytest.fixture(scope="module")
def inputs():
    return corpus()


def fuzzer(inputs, folder, seed=1):
    return Fuzzer(random.Random(seed), folder, list(inputs))


def test_real_recordings_are_among_the_inputs(inputs):
    assert any(b"ProfilerStep#" in data and len(data) > 10_000 for data in inputs)
    assert all(len(data) <= fuzz.LARGEST for data in inputs if b"deviceProperties" in data)


@pytest.mark.nightly
def test_a_short_search_finds_nothing(inputs, tmp_path):
    search = fuzzer(inputs, tmp_path)
    for _ in range(CASES):
        search.one()
    assert search.finds == []
    assert len(search.seen) > CASES // 10, "all its files are alike"


def test_a_defect_is_found_and_reduced_to_the_part_that_shows_it(inputs, tmp_path, monkeypatch):
    real = fuzz.diagnose

    def defective(path):
        if re.search(rb'"dur":\s*-', Path(path).read_bytes()):
            raise ZeroDivisionError
        return real(path)

    monkeypatch.setattr(fuzz, "diagnose", defective)
    search = fuzzer(inputs, tmp_path)
    data = b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": -5}, {"ph": "X", "ts": 7, "dur": 1}]}'
    words, _ = search.examine(data)
    assert words.startswith("ZeroDivisionError in test_fuzz.py:")
    assert search.shrunk(data, words) == b'"dur":-'


def test_a_slow_file_is_a_find(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "SLOW_SECONDS", -1.0)
    assert fuzzer([], tmp_path).examine(b"{}")[0] == "slow"


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_every_mutation_changes_a_recording_and_accepts_an_empty_file(mutate, inputs):
    chance, changed = random.Random(7), 0
    for data in (*inputs[:40], b""):
        made = bytearray(data)
        mutate(made, chance, inputs[0])
        changed += made != data
    assert changed > 10


def test_the_same_seed_makes_the_same_files(inputs):
    one, two = (damaged(inputs[3], random.Random(5), inputs[4]) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_short_search_of_every_entry_finds_nothing(entry, tmp_path):
    sound = ENTRIES[entry].inputs()
    search = Fuzzer(random.Random(1), tmp_path, list(sound), entry)
    for _ in range(25):
        search.one()
    assert search.finds == []
    assert any(behaviour_of(ENTRIES[entry], tmp_path, data)[0] for data in sound), "no input gets a result"
