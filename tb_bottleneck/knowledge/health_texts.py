"""Texts about the defects of recordings, from health.toml."""

from collections.abc import Mapping
from functools import cache
from string import Template

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Source, typed


class HealthAdvice(Record, frozen=True):
    """The texts of a defect of a recording; `detail` is a template.

    `fix_if` has the fixes for kinds of the defect that need another fix. Kinds without a fix have a sentence in
    `none_if`. `cuda` has the first and the last version of CUDA with the defect; empty if CUDA does not matter."""

    detail: Template
    fix: str
    source: Source
    fix_if: Mapping[str, str] = {}
    none_if: Mapping[str, str] = {}
    cuda: tuple[str, ...] = ()

    @property
    def fixes(self) -> tuple[str, ...]:
        """All fixes of the defect: `fix`, those in `fix_if`, and an empty text for each kind in `none_if`."""
        return (self.fix, *self.fix_if.values(), *("" for _ in self.none_if))


@cache
def health_advice(code: str) -> HealthAdvice:
    """Returns the texts of the defect `code`. Raises Unsourced if the defect has no source."""
    return typed("health.toml", dict[str, HealthAdvice])[code]
