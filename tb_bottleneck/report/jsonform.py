"""The JSON form of the messages: snake_case names, every field without presence printed."""

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message


def as_dict(message: Message) -> dict[str, Any]:
    """The message as JSON-ready values. Fields without presence are there even where empty; absent messages are not."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def as_json(message: Message, indent: int | None = None) -> str:
    """The message as JSON text. NaN and infinities are refused: a measure that has none is absent instead."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(as_dict(message), allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)
