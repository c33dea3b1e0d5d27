"""A tool of the server: its declaration, the objects that all calls share, and the check of its arguments."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tb_bottleneck.agents.training_reports import AgentLogdir, Trainings
from tb_bottleneck.agents.workers import Tell, Workers
from tb_bottleneck.base.errors import NotFound, did_you_mean

MAX_TEXT = 300
"""Largest number of characters of a text argument."""

MAX_NUMBER = 1 << 30
OFFSET = {"offset": {"type": "integer"}}
"""The argument of tools whose answers have pages. The value is the `next_offset` of the previous answer."""

ID = {"id": {"type": "string"}}


@dataclass(frozen=True)
class Session:
    """The objects that all calls of one server share."""

    logdir: AgentLogdir
    workers: Workers
    trainings: Trainings


Arguments = Mapping[str, Any]
Handler = Callable[[Session, Arguments, Tell], Awaitable[str]]


@dataclass(frozen=True)
class Tool:
    """A tool that only reads. `properties` maps each argument to its JSON Schema: a text, integer or list of texts."""

    name: str
    description: str
    run: Handler
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.properties)}
        return schema | ({"required": list(self.required)} if self.required else {})

    def checked(self, arguments: Mapping[str, Any]) -> Arguments:
        """Returns `arguments` without those that are None or an empty text.

        Raises:
            NotFound: an argument is unknown, missing, or does not match its schema.
        """
        for name, value in arguments.items():
            if name not in self.properties:
                raise NotFound(f"{self.name} has no argument {name[:MAX_TEXT]!r}{did_you_mean(name, self.properties)}")
            _check(name, value, self.properties[name])
        missing = [name for name in self.required if arguments.get(name) in (None, "", [])]
        if missing:
            raise NotFound(f"{self.name} needs the argument {missing[0]!r}")
        return {name: value for name, value in arguments.items() if value not in (None, "")}


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    if value is None:
        return
    kind = schema["type"]
    if kind == "string" and (not isinstance(value, str) or len(value) > MAX_TEXT):
        raise NotFound(f"{name} must be a text of at most {MAX_TEXT} characters")
    if kind == "integer" and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NUMBER):
        raise NotFound(f"{name} must be a whole number from 0 to {MAX_NUMBER}")
    if kind == "array":
        if not isinstance(value, list):
            raise NotFound(f"{name} must be a list")
        for each in value:
            _check(name, each, schema["items"])
    allowed = schema.get("enum", ())
    if allowed and value and value not in allowed:
        raise NotFound(f"{name} must be one of {', '.join(allowed)}")


def parts_of(message: Mapping[str, Any], left_out: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Returns the fields of `message` as rows: one row for all scalars, one row for each dict, and one row for each
    entry of a list. `part` of a row is the name of the field, or "summary" for the scalars. Dicts and lists in the
    fields `left_out` are skipped."""
    scalars = {name: value for name, value in message.items() if not isinstance(value, dict | list)}
    rows = [{"part": "summary", **scalars}]
    for name, value in message.items():
        if name in left_out:
            continue
        for each in value if isinstance(value, list) else [value] if isinstance(value, dict) else []:
            rows.append({"part": name, **(each if isinstance(each, dict) else {"text": each})})
    return rows
