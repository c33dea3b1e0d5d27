"""Patterns of names: kernels, operators, calls, frames, precisions and process groups.

The patterns are loaded from the TOML files of this folder. Entries without a source are refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import tomli

_FOLDER = Path(__file__).parent


class Unsourced(ValueError):
    """Raised if an entry of the knowledge base has no source, or lacks another field."""


@dataclass(frozen=True)
class NamePattern:
    """A pattern for names. `label` is the label of names that match. `example` is a real name that must match."""

    label: str
    pattern: re.Pattern[str]
    example: str


@cache
def load(name: str, folder: Path = _FOLDER) -> Mapping[str, Any]:
    """Returns the content of the TOML file `name` in `folder`, by default that of this module. Raises Unsourced if an
    entry has no source."""
    data = tomli.loads((folder / name).read_text(encoding="utf-8"))
    refuse_unsourced(name, data)
    return data


T = TypeVar("T")
Source = Annotated[str, msgspec.Meta(pattern=r"\S")]


def typed(file: str, kind: type[T], data: Any = None) -> T:
    """Returns the content of the TOML file `file`, or `data` from it, as `kind`. Keys without a field are ignored.

    Raises:
        Unsourced: a text lacks its source or another field; the message names the key.
    """
    try:
        return msgspec.convert(
            load(file) if data is None else data, kind, dec_hook=lambda kind, text: kind(text.strip())
        )
    except msgspec.ValidationError as error:
        raise Unsourced(f"{file}: {error}") from None


def all_texts() -> list[Mapping[str, Any]]:
    """Returns the content of each TOML file of the whole package tb_bottleneck."""
    return [load(path.name, path.parent) for path in sorted(_FOLDER.parent.rglob("*.toml"))]


def refuse_unsourced(name: str, data: Mapping[str, Any]) -> None:
    """Raises Unsourced if an entry of a list in `data` has no `source`. `name` is the name of the file."""
    for key, entries in data.items():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and not str(entry.get("source", "")).strip():
                raise Unsourced(f"{name}: an entry of {key} has no source: {entry}")


@cache
def kernel_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for the kind of work of kernels, in order of precedence."""
    return _patterns("kernels.toml", "kernel", "work", "")


@cache
def fusible_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for kernels that a compiler merges with their neighbours, in order of precedence."""
    return _patterns("kernels.toml", "fusible", "fuses", "")


@cache
def call_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for the role of runtime and driver calls, in order of precedence."""
    return _patterns("calls.toml", "call", "role", r"^(?:cuda|cu|hip)")


def first_match(patterns: tuple[NamePattern, ...], name: str) -> str | None:
    """Returns the label of the first pattern that matches `name`, or None."""
    return next((entry.label for entry in patterns if entry.pattern.search(name)), None)


def _patterns(file: str, table: str, label_key: str, prefix: str) -> tuple[NamePattern, ...]:
    return tuple(
        NamePattern(
            label=entry[label_key],
            pattern=re.compile(prefix + entry["pattern"], re.IGNORECASE if entry.get("ignore_case") else 0),
            example=entry["example"],
        )
        for entry in load(file)[table]
    )


@cache
def activity_patterns(on: str, trains: bool = True) -> tuple[NamePattern, ...]:
    """Returns the patterns for the activity of events on the host. `on` is annotation, python, operator or overhead.

    If `trains` is False, the patterns for evaluation and similar events are left out: such events interrupt a training,
    but they are the work itself in a recording without training.
    """
    entries = load("host_activities.toml")["activity"]
    entries = [entry for entry in entries if entry["on"] == on and (trains or not entry.get("amid_training"))]
    return tuple(NamePattern(entry["does"], re.compile(entry["pattern"]), entry["example"]) for entry in entries)


@cache
def frame_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for what a Python frame does in a loader, such as "read", "decode", "collate" or "pin"."""
    return _patterns("frames.toml", "frame", "does", "")


@cache
def installed_packages() -> frozenset[str]:
    """Returns prefixes of paths of well-known packages, for example `pandas/` or `six.py`.

    The list is fixed in frames.toml; the packages that are installed here are not inspected.
    """
    entries = load("frames.toml")["packages"]
    folders = (f"{name}/" for entry in entries for name in entry.get("folders", ()))
    return frozenset((*folders, *(f"{name}.py" for entry in entries for name in entry.get("files", ()))))


@cache
def operator_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns of operator names that decide an operator's kind of work, in order of precedence."""
    return _patterns("operators.toml", "operator", "work", "")


@cache
def host_operator_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for what an operator does in host memory: "describes", "computes" or "creates" tensors."""
    return _patterns("operators.toml", "host_operator", "does", "")


@cache
def precision_patterns() -> tuple[NamePattern, ...]:
    """Returns the patterns for contraction kernels, with labels "UNIT [DTYPE]", in order of precedence."""
    return _patterns("precisions.toml", "precision", "runs", "")


# Names are untrusted text; in all real names that were seen, the type is within this length.
MAX_NAME_READ = 2000

UNITS = ("tensor", "vector", "unknown")
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")

# CUTLASS names the widest load, in elements, that shapes and pointers allow: 8 half-precision or 4 single-precision
# elements are the 16 bytes that tensor cores need. With 1 and 2 elements, the fast kernels cannot be used. For example,
# a recording on an H100 with a sequence length of 5185 uses cutlass_75_tensorop_bf16_s1688gemm_..._align1 for 42 % of
# its kernel time.
_NARROW_LOAD = re.compile(r"tensorop.*_align[12](?!\d)")


@dataclass(frozen=True)
class Precision:
    """The unit and the operand type of a contraction kernel.

    `unit` is "tensor" (tensor cores, AMD's matrix units), "vector" (other units) or "unknown". `dtype` is one of
    DTYPES, or None if the name of the kernel does not contain the type.
    """

    unit: str
    dtype: str | None


@lru_cache(maxsize=4096)
def precision_of(kernel_name: str) -> Precision | None:
    """Returns the precision of a contraction kernel, or None for other kernels and unknown names."""
    name = kernel_name[:MAX_NAME_READ]
    if first_match(kernel_patterns(), name) != "contraction":
        return None
    runs = first_match(precision_patterns(), name)
    if runs is None:
        return None
    unit, _, dtype = runs.partition(" ")
    return Precision(unit, dtype or None)


def misaligned(kernel_name: str) -> bool:
    """Returns True for a tensor-core kernel that was chosen because shapes or pointers do not allow 16-byte loads.

    Returns False for kernels without tensor cores (simt). Such kernels always load single elements, so "align1" at the
    end of their names means nothing.
    """
    return _NARROW_LOAD.search(kernel_name[:MAX_NAME_READ]) is not None


@cache
def _process_group_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(entry["pattern"]), entry["kind"]) for entry in load("process_groups.toml")["description"])


def kind_of_description(description: str) -> str | None:
    """Returns the kind of the process group with this description; "unknown" if the group is over several dimensions,
    None if no pattern matches."""
    text = description.lower()
    return next((kind for pattern, kind in _process_group_patterns() if pattern.search(text)), None)


@cache
def group_annotations() -> tuple[tuple[str, frozenset[str], str], ...]:
    """Returns triples (prefix, operations, kind). If the name of an annotation has the prefix, collectives inside the
    annotation that do one of the operations belong to a process group of the kind."""
    entries = load("process_groups.toml")["annotation"]
    return tuple((entry["prefix"], frozenset(entry["operations"]), entry["serves"]) for entry in entries)
