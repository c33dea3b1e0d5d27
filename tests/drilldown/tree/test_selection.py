"""Parts of a tree: no value gets lost, and nothing is shown without what is above it."""

import numpy as np
import pytest
from drilldown.tree.recorded_model import recorded_steps

from tb_bottleneck.drilldown.tree.message import aligned
from tb_bottleneck.drilldown.tree.selection import REST, Selection, largest, largest_change, matching, selected_tree


@pytest.fixture
def tree(tmp_path):
    return selected_tree(recorded_steps().inspected(tmp_path), Selection("module"))


@pytest.mark.parametrize("limit", [1, 3, 8, 1000])
def test_what_is_left_out_is_one_row_per_parent(tree, limit):
    part = largest(tree, limit)
    assert np.allclose(part.regimes[:, 0], tree.regimes[:, 0])
    assert sum(kind != REST for kind in part.kind) <= max(limit, 1)
    for column in (part.exclusive, *part.columns.values()):
        assert (part.own(column) > -1).all()
    own = part.own(part.exclusive).sum() - sum(tree.own(tree.exclusive))
    assert own == pytest.approx(0, abs=1)
    counts = [int(name.split()[0]) for name, kind in zip(part.name, part.kind, strict=True) if kind == REST]
    assert sum(counts) + sum(kind != REST for kind in part.kind) == len(tree.parent)


def test_a_part_can_be_chosen_by_any_column(tree):
    assert "aten::mm" in largest(tree, 9, "device").name
    assert all(parent < row for row, parent in enumerate(largest(tree, 5, "calls").parent[1:], 1))


def test_names_are_found_with_what_is_above_and_below(tree):
    part, found = matching(tree, "LINEAR_1")
    assert [part.name[row] for row in found] == ["Linear_1"]
    assert {"Net_0", "aten::addmm"} <= set(part.name)
    assert "Linear_0" not in part.name


def test_two_recordings_have_the_same_nodes(tmp_path, tree):
    recorder = recorded_steps()
    for event in recorder.events:
        event["name"] = event["name"].replace("Linear_1", "Linear_9").replace("train.py(30)", "train.py(35)")
    by_module = selected_tree(recorder.inspected(tmp_path), Selection("module"))
    a, b = aligned(tree, by_module)
    assert (a.name, a.parent.tolist()) == (b.name, b.parent.tolist())
    before, after = a.exclusive[a.name.index("Linear_1")], b.exclusive[b.name.index("Linear_1")]
    assert before > 0
    assert after == 0
    assert a.exclusive[0] == tree.exclusive[0]
    first, second = largest_change(a, b, 5)
    assert {"Linear_1", "Linear_9"} <= set(first.name)
    assert second.exclusive[0] == by_module.exclusive[0]


def test_a_function_that_moved_to_another_line_is_the_same(tmp_path):
    recorder = recorded_steps()
    before = selected_tree(recorder.inspected(tmp_path), Selection("line"))
    for event in recorder.events:
        event["name"] = event["name"].replace("train.py(30)", "train.py(35)")
    a, b = aligned(before, selected_tree(recorder.inspected(tmp_path), Selection("line")))
    assert np.allclose(a.regimes, b.regimes)
    assert "train.py(35): step" in a.name
