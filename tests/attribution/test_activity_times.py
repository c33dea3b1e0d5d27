"""The host's time before each item, by activity."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import ActivityTimes, no_time, times_of

LOADING = np.array([0, 5, 7])


def some_times() -> ActivityTimes:
    return times_of([np.zeros(3, np.int64)] * len(Activity)).with_column(Activity.LOAD_BATCH, LOADING)


def test_the_total_is_that_of_all_activities():
    times = some_times().with_column(Activity.OTHER, np.array([1, 0, -2]))
    assert times.total().tolist() == [1, 5, 5]
    assert len(times) == 3
    assert times[1:].total().tolist() == [5, 5]


def test_a_graph_with_another_column_shares_the_rest():
    times, other = some_times(), some_times().with_column(Activity.OTHER, np.array([1, 1, 1]))
    assert other.of(Activity.LOAD_BATCH) is LOADING
    assert times.of(Activity.OTHER).tolist() == [0, 0, 0]
    assert not times.equals(other)
    assert times.equals(other.with_column(Activity.OTHER, np.zeros(3, np.int64)))


def test_a_column_of_zeros_takes_no_memory():
    assert some_times().of(Activity.COPY).strides == no_time(3).strides == (0,)
    assert some_times().with_column(Activity.LOAD_BATCH, np.zeros(3, np.int64)).of(Activity.LOAD_BATCH).strides == (0,)


def test_each_column_is_changed():
    assert some_times().each(lambda column: column * 2).total().tolist() == [0, 10, 14]
