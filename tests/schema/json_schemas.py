"""Generates the JSON Schemas of the command line from the proto files: `python tests/schema/json_schemas.py`.

A field with presence may be absent, and every other field is always there. A later version may add fields, so that
unknown ones are allowed. The tree has no message; its schema is written here.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
from schema.generate import PROTOS, ROOT

TARGET = ROOT / "tb_bottleneck" / "schema" / "json"
ROOTS = {
    "diagnose": ("Reports",),
    "compare": ("Comparison", "RunSeries"),
    "what-if": ("WhatIf", "WhatIfTable"),
}
"""The messages that a command prints with --json, by the command."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    _Field.TYPE_DOUBLE: "number",
    _Field.TYPE_FLOAT: "number",
    _Field.TYPE_INT32: "integer",
    _Field.TYPE_BOOL: "boolean",
    _Field.TYPE_STRING: "string",
}


def described() -> descriptor_pb2.FileDescriptorSet:
    """Returns the proto files with their comments."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--descriptor_set_out={target}"]
        subprocess.run([*command, "--include_source_info", *PROTOS], cwd=ROOT, check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())


def messages() -> dict[str, dict[str, Any]]:
    """Returns the schema of each message, by its name."""
    found = {}
    for file in described().file:
        comments = {tuple(each.path): each for each in file.source_code_info.location}
        for number, message in enumerate(file.message_type):
            fields = {
                field.name: _field(field) | _description(comments.get((4, number, 2, place)))
                for place, field in enumerate(message.field)
            }
            schema = {"type": "object", "properties": fields}
            required = [field.name for field in message.field if not _has_presence(field)]
            if required:
                schema["required"] = required
            found[message.name] = schema | _description(comments.get((4, number)))
    return found


def _has_presence(field: _Field) -> bool:
    if field.label == _Field.LABEL_REPEATED:
        return False
    return field.proto3_optional or field.type == _Field.TYPE_MESSAGE


def _field(field: _Field) -> dict[str, Any]:
    if field.type != _Field.TYPE_MESSAGE:
        one: dict[str, Any] = {"type": _TYPES[field.type]}
    elif field.type_name == ".google.protobuf.Struct":
        one = {"type": "object"}
    else:
        one = {"$ref": f"#/$defs/{field.type_name.rpartition('.')[2]}"}
    return {"type": "array", "items": one} if field.label == _Field.LABEL_REPEATED else one


def _description(location: Any) -> dict[str, str]:
    if location is None:
        return {}
    text = " ".join(f"{location.leading_comments} {location.trailing_comments}".split())
    return {"description": text} if text else {}


def _used(names: tuple[str, ...], known: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yields these messages and all that are part of them, each once."""
    seen, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        for field in known[name]["properties"].values():
            reference = field.get("$ref") or field.get("items", {}).get("$ref")
            if reference:
                waiting.append(reference.rpartition("/")[2])


def of_command(command: str, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the schema of what a command prints with --json."""
    roots = ROOTS[command]
    references = [{"$ref": f"#/$defs/{name}"} for name in roots]
    body = references[0] if len(references) == 1 else {"anyOf": references}
    definitions = {name: known[name] for name in sorted(_used(roots, known))}
    return _head(command) | body | {"$defs": definitions}


def _head(command: str) -> dict[str, Any]:
    return {
        "$schema": DRAFT,
        "$id": f"urn:tb_bottleneck:json:{command}",
        "title": f"tb-bottleneck {command} --json",
    }


def of_tree() -> dict[str, Any]:
    """Returns the schema of `tree --json`, with and without --against."""
    number, text = {"type": "number"}, {"type": "string"}
    times = ("time_ns", "share", "own_ns", "device_ns", "host_ns", "wait_ns", "backward_ns", "moved_bytes", "flops",
             "allocated_bytes", "bounded_ns", "ideal_ns")  # fmt: skip
    node = _object(
        name=text,
        kind=text,
        **dict.fromkeys(times, number),
        calls={"type": "integer"},
        regimes={"type": "object", "additionalProperties": number, "description": "ns by regime, without zeros"},
        children={"type": "array", "items": {"$ref": "#/$defs/Node"}},
    )
    node["description"] = "Totals of the window. own_ns is without the nodes below, which are in descending order."
    tree = {"$ref": "#/$defs/Node"}
    steps = {"type": "integer"}
    device = _object(index={"type": "integer"}, name=text, total_ns=number)
    side = _object(window_ns=number, steps=steps, tree=tree)
    whole = _object(
        schema={"const": 1}, run=text, by=text, begin_ns=number, window_ns=number, steps=steps,
        devices={"type": "array", "items": device}, notes={"type": "array", "items": text}, tree=tree,
    )  # fmt: skip
    against = _object(schema={"const": 1}, before=text, after=text, by=text, a=side, b=side)
    return _head("tree") | {"anyOf": [whole, against], "$defs": {"Node": node}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def texts() -> dict[str, str]:
    """Returns the content of each file, by its name."""
    known = messages()
    schemas = {command: of_command(command, known) for command in ROOTS} | {"tree": of_tree()}
    return {f"{name}.schema.json": f"{json.dumps(schema, indent=1)}\n" for name, schema in schemas.items()}


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for name, text in texts().items():
        (TARGET / name).write_text(text, encoding="utf-8")
