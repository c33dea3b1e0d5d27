"""Evaluations that are not a function of their own: the time from `model.eval()` to `model.train()`.

Python frames show both calls. Scripts often evaluate between them in the body of the training loop, or in a function
whose name does not say so.
"""

import re

import numpy as np

from tb_bottleneck.attribution.training_detection import has_training, is_training_name
from tb_bottleneck.record import Record
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# pytorch torch/nn/modules/module.py; eval() calls train(False), and train() calls itself for the children.
_EVAL = re.compile(r"torch/nn/modules/module\.py\(\d+\): eval$")
_TRAIN = re.compile(r"torch/nn/modules/module\.py\(\d+\): train$")


class InlineEvaluations(Record, frozen=True, eq=False):
    """The frames of `eval`, and the times at which the next call of `train` begins, in ns; in order of time."""

    rows: Rows
    end: Ints


def inline_evaluations(trace: Trace) -> InlineEvaluations:
    """Returns the evaluations on all threads.

    Without a later `train()`, the end is not known. With a backward pass in between, it is a training in which some
    modules are in evaluation mode, such as frozen normalisations.
    """
    events, evaluates = trace.events, _named(trace, _EVAL)
    if not evaluates.any() or not has_training(trace):
        none = np.empty(0, np.int64)
        return InlineEvaluations(none, none)
    frames, operators = trace.rows(Kind.PYTHON), trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    rows = frames[evaluates[events.name[frames]]]
    train = by_thread(frames[_named(trace, _TRAIN)[events.name[frames]]], events.thread)
    trained = np.array([is_training_name(name) for name in trace.names], np.bool_)
    backward = events.start[operators[trained[events.name[operators]]]]
    found, ends = [rows[:0]], [rows[:0]]
    for thread, own in by_thread(rows, events.thread).items():
        starts = events.start[train[thread]] if thread in train else rows[:0]
        following = np.searchsorted(starts, events.end[own])
        own, following = own[following < len(starts)], following[following < len(starts)]
        end = starts[following]
        is_evaluation = np.searchsorted(backward, end) == np.searchsorted(backward, events.start[own])
        found.append(own[is_evaluation])
        ends.append(end[is_evaluation])
    every, end = np.concatenate(found), np.concatenate(ends)
    order = np.argsort(every, kind="stable")  # rows are in order of time
    return InlineEvaluations(every[order], end[order])


def _named(trace: Trace, pattern: re.Pattern[str]) -> Bools:
    """Returns a mask of the names that match."""
    return np.array([pattern.search(name) is not None for name in trace.names], np.bool_)
