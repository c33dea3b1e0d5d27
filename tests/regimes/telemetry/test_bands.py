"""The stretches of a run: drawn, one letter for ten seconds."""

import pytest

from tb_bottleneck.measures.telemetry import testimony
from tb_bottleneck.regimes.telemetry.bands import bands_of
from tb_bottleneck.telemetry.telemetry import Telemetry
from tests.telemetry.simulated import S, Stretch, simulate, stretch

LETTER_NS = 10 * S
LETTERS = {"input": "i", "launch": "l", "compute": "c", "gpu_unused": "g", "memory": "m", "unexplained": "?"}


def drawn(*stretches: Stretch, seed: int = 0) -> str:
    """A letter for each ten seconds: the regime's first, in capitals where it is worth a warning or more."""
    telemetry = Telemetry()
    telemetry.add(simulate(stretches, seed))
    line = ""
    for band in bands_of(testimony.Testimony(telemetry)):
        letter = LETTERS[band.regime]
        line += (letter.upper() if band.severity in ("critical", "warning") else letter) * round(
            (band.end - band.begin) / LETTER_NS
        )
    return line


@pytest.mark.parametrize(
    ("stretches", "expected"),
    [
        ([stretch("healthy")], "cccccccccccc"),
        ([stretch("healthy"), stretch("starved"), stretch("healthy")], "ccccccccccccIIIIIIIIIIIIcccccccccccc"),
        ([stretch("healthy"), stretch("hot")], "ccccccccccccCCCCCCCCCCCC"),
        ([stretch("memory"), stretch("launches", 60.0)], "mmmmmmmmmmmmLLLLLL"),
        ([stretch("on_cpu")], "GGGGGGGGGGGG"),
        # Twelve seconds are no stretch: a validation, a slow file.
        ([stretch("healthy"), stretch("starved", 9.0), stretch("healthy")], "ccccccccccccccccccccccccc"),
    ],
    ids=["healthy", "starved for a while", "hot", "two illnesses", "on the CPU", "a moment is no stretch"],
)
def test_when_it_became_slow_and_why(stretches, expected):
    found = drawn(*stretches)
    assert abs(len(found) - len(expected)) <= 1
    differ = sum(a != b for a, b in zip(found, expected, strict=False))
    assert differ <= 2, f"\n{expected}\n{found}"
    assert _runs(found) == _runs(expected), f"\n{expected}\n{found}"


@pytest.mark.parametrize("seed", range(5))
def test_a_regime_at_the_threshold_does_not_flicker(seed):
    """Waits of 10 % of the step, a little more or less from window to window."""
    wavering = [stretch("starved", 20.0, severity=0.09 + 0.02 * (at % 2)) for at in range(12)]
    assert len(_runs(drawn(*wavering, seed=seed))) <= 2


def _runs(line: str) -> str:
    """The line with runs of one letter as one."""
    return "".join(letter for at, letter in enumerate(line) if at == 0 or line[at - 1] != letter)
