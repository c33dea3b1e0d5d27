"""Where the wall time of a run went, as the report shows it."""

from functools import cache

import numpy as np

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measures.telemetry.run_time import Part, RunTime
from tb_bottleneck.schema import bottleneck_pb2 as pb

_DECIMALS = 4


def run_time_of(account: RunTime | None) -> pb.RunTime | None:
    """Returns the account of a whole run: the parts with any time, or None without steps."""
    if account is None:
        return None
    length = np.maximum(account.bins.sum(axis=0), 1.0)
    shares = np.round(account.bins / length, _DECIMALS)
    return pb.RunTime(
        begin_ns=account.begin,
        elapsed_ns=account.elapsed,
        parts=[
            pb.RunPart(
                kind=part,
                title=title_of(part),
                meaning=_texts()[part]["meaning"],
                ns=account.ns[part],
                share=account.share(part),
                bins=shares[row].tolist(),
            )
            for row, part in enumerate(Part)
            if account.ns[part] > 0
        ],
    )


def title_of(part: Part) -> str:
    """Returns the label of a part."""
    return _texts()[part]["title"]


@cache
def _texts() -> dict[str, dict[str, str]]:
    return {name: table for name, table in load("run_time.toml").items() if isinstance(table, dict)}
