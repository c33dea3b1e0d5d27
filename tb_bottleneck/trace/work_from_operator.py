"""What kernels do whose names nobody knows: the operators that launch them are the second witness."""

import numpy as np

from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.table import Bools, Ints

WORK_OF = {"contraction": Work.CONTRACTION, "collective": Work.COLLECTIVE, "pointwise": Work.STREAMING}
# torch's own operators that knowledge/operators.toml does not name stream memory; of other people's nothing is known.
_TORCHS_OWN = "aten::"


def work_of_operator(name: str) -> Work:
    """What an operator's kernels do, UNKNOWN where its name does not tell."""
    told = first_match(operator_patterns(), name)
    if told is not None:
        return WORK_OF[told]
    return Work.STREAMING if name.startswith(_TORCHS_OWN) else Work.UNKNOWN


def told_by_operators(work: Ints, launched: Bools, operator: Ints, names: tuple[str, ...]) -> Ints:
    """The work of device operations, where it is UNKNOWN by their operator.

    `launched` tells which were launched by an operator that was recorded, `operator` are their rows of names.
    """
    asked = np.flatnonzero(launched & (work == Work.UNKNOWN))
    distinct, which = np.unique(operator[asked], return_inverse=True)
    told = np.array([work_of_operator(names[name]) for name in distinct.tolist()], np.int64)
    work = work.copy()
    work[asked] = told[which]
    return work
