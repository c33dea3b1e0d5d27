"""The sentence about the line that most of a cause's cost is in."""

import pytest

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.user_code.places import Place
from tb_bottleneck.report.builders.evidence_source_texts import most_of_it, place_rows

LINE = Place(0.6, "train.py", 41, "add", chain=("train.py(41): add",))


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ((LINE, Place(0.4, "train.py", 80, "main")), " Most of it is in add (train.py:41)."),
        ((Place(0.6, "train.py", 41, "<module>", exact=True),), " Most of it is in train.py:41."),
        ((Place(0.6, "train.py", 41, "step", exact=True),), " Most of it is in train.py:41 (step)."),
        ((Place(0.6, "train.py", 0, "<module>"),), " Most of it is in <module> (train.py)."),
        ((Place(0.4, "train.py", 41, "add"),), ""),
        ((Place(0.9, block="publish metrics"),), ""),
        ((), ""),
    ],
)
def test_only_a_line_with_most_of_the_cost_is_in_the_headline(places, sentence):
    assert most_of_it({(Regime.HOST, "host_python"): places}, Regime.HOST, "host_python") == sentence
    assert most_of_it({}, Regime.HOST, "host_python") == ""


def test_the_rows_are_those_of_the_cause():
    [row] = place_rows({(Regime.HOST, "host_python"): (LINE,)}, Regime.HOST, "host_python")
    assert (row.file, row.line, row.function, row.share, list(row.chain)) == (
        "train.py",
        41,
        "add",
        0.6,
        ["train.py(41): add"],
    )
    assert place_rows({}, Regime.HOST, "host_python") == []
