"""Labels: one number for kind, name and thread."""

import numpy as np

from tb_bottleneck.sources.trace_event import Event
from tb_bottleneck.trace.columns.labels import MAX_NAME, Labels, Thread, kinds_of
from tb_bottleneck.trace.kinds import Kind


def event(name="op", cat="cpu_op", pid=1, tid=1):
    return Event(ph="X", cat=cat, name=name, pid=pid, tid=tid)


def test_a_label_stands_for_kind_name_and_thread():
    labels = Labels()
    found = labels.of([event("a"), event("b", cat="kernel", tid=2), event("a", tid=2), event("a")])
    assert found[0] == found[3]
    assert len(set(found.tolist())) == 3
    assert {name: column.tolist() for name, column in labels.columns(found).items()} == {
        "kind": [Kind.CPU_OP, Kind.KERNEL, Kind.CPU_OP, Kind.CPU_OP],
        "name": [0, 1, 0, 0],
        "thread": [0, 1, 1, 0],
    }
    assert labels.names() == ("a", "b")
    assert labels.threads({("1", "2"): "main"}) == (Thread("1", "1", ""), Thread("1", "2", "main"))


def test_the_label_alone_determines_the_kind():
    categories = ["cpu_op", "user_annotation", "python_function", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset"]
    categories += ["overhead", "mtia_ccp_events", "cuda_profiler_range", "whatever", None]
    labels = Labels()
    found = labels.of([event(cat=category) for category in categories])
    assert set(kinds_of(found).tolist()) == set(Kind)
    assert labels.columns(found)["kind"].tolist() == kinds_of(found).tolist()


def test_what_is_too_long_to_be_remembered_has_a_label_all_the_same():
    long = "x" * (MAX_NAME + 1)
    labels = Labels()
    found = labels.of([event(long), event(long), event("op", cat=long), event("op", pid=long)])
    assert not labels
    assert labels.columns(found)["name"].tolist() == [0, 0, 1, 1]
    assert [len(name) for name in labels.names()] == [MAX_NAME, 2]


def test_without_events_the_columns_are_empty():
    columns = Labels().columns(np.empty(0, np.int8))
    assert [len(column) for column in columns.values()] == [0, 0, 0]
