"""Classifies kernels with unknown names by the operators that launch them."""

import numpy as np

from tb_bottleneck.base.order_statistics import distinct_rows
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Bools, Ints

WORK_OF = {"contraction": Work.CONTRACTION, "collective": Work.COLLECTIVE, "pointwise": Work.STREAMING}
# torch's own operators that knowledge/operators.toml does not list stream memory. Custom operators stay unknown.
_TORCHS_OWN = "aten::"


def work_of_operator(name: str) -> Work:
    """Returns the kind of work of an operator's kernels, or UNKNOWN."""
    kind = first_match(operator_patterns(), name)
    if kind is not None:
        return WORK_OF[kind]
    return Work.STREAMING if name.startswith(_TORCHS_OWN) else Work.UNKNOWN


def work_from_operators(work: Ints, launched: Bools, operator: Ints, names: tuple[str, ...]) -> Ints:
    """Returns `work` with UNKNOWN entries classified by their operator.

    `launched` is True for operations with a recorded launching operator, `operator` is its row in `names`.
    """
    unknown = np.flatnonzero(launched & (work == Work.UNKNOWN))
    first, which = distinct_rows(operator[unknown])
    classified = np.array([work_of_operator(names[name]) for name in operator[unknown[first]].tolist()], np.int64)
    work = np.array(work)
    work[unknown] = classified[which]
    return work
