"""Python's types of the documents that Rust defines.

usage: documents.py

Reads the JSON schemas of ``python/tierloom/schema/documents.json``, which a test of ``crates/model`` holds to the Rust
nouns, and writes ``python/tierloom/schema/documents.py``: a TypedDict for each. Tests hold the two files together.
"""

from __future__ import annotations

import json
import keyword
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "python" / "tierloom" / "schema"
SCHEMAS = HERE / "documents.json"
TYPES = HERE / "documents.py"

HEAD = '''"""The documents of machines, profiles, plans and comparisons, as their Rust nouns define them.

Written by `tools/documents.py`: change the nouns in `crates/model`, not this file.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''

PLAIN = {"Figure": "Figure", "Kind": "Kind", "Origin": "Origin", "Action": "Action", "Bound": "Bound"}
"""Types whose Python name is that of Rust; all others end in Doc."""

SHORTER = {"PolicyResult": "PolicyDoc", "FrontierPoint": "FrontierDoc"}

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

WIDTH = 120

Schema = Mapping[str, Any]


def main() -> None:
    """Writes the types."""
    TYPES.write_text(written(json.loads(SCHEMAS.read_text(encoding="utf-8"))), encoding="utf-8")


def written(schemas: Mapping[str, Schema]) -> str:
    """The Python file of all schemas; a type comes after those that it is made of."""
    parts = [lines for name in in_order(schemas) if (lines := definition(name, schemas[name]))]
    return HEAD + "\n" + "\n\n".join(part.rstrip() + "\n" for part in parts)


def in_order(schemas: Mapping[str, Schema]) -> list[str]:
    """Names of the types that are written, what is used before what uses it."""
    made: list[str] = []

    def visit(name: str) -> None:
        if name not in made:
            for used in references(schemas[name]):
                if used != name:
                    visit(used)
            made.append(name)

    for name in schemas:
        visit(name)
    return [name for name in made if name == name.rstrip("0123456789")]


def references(schema: object) -> Iterator[str]:
    """Names of the schemas that one refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield reference(schema)
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def reference(schema: Schema) -> str:
    """The name that a reference holds."""
    return str(schema["$ref"]).rpartition("/")[2]


def python_name(name: str) -> str:
    """A schema's name in Python; what differs in the kind of its number only (Figure2) is one type there."""
    bare = name.rstrip("0123456789")
    return PLAIN.get(bare) or SHORTER.get(bare) or f"{bare}Doc"


def definition(name: str, schema: Schema) -> str:
    """One type: a TypedDict, or another name for what is simpler."""
    called = python_name(name)
    if "properties" not in schema:
        return f"{called} = {type_of(schema)}\n{documented(schema, '')}"
    fields = {**schema["properties"], **alternatives(schema)}
    required = set(schema.get("required", ()))
    if any(keyword.iskeyword(key) for key in fields):
        pairs = [f'        "{key}": {annotation(field, key in required)},' for key, field in fields.items()]
        head = [f"{called} = TypedDict(", f'    "{called}",', "    {"]
        return "\n".join([*head, *pairs, "    },", ")", documented(schema, "")])
    lines = [f"class {called}(TypedDict):", documented(schema, "    "), ""]
    for key, field in fields.items():
        value = "float" if called == "Figure" and key == "value" else annotation(field, key in required)
        lines += [f"    {key}: {value}", *([documented(field, "    ")] if field.get("description") else [])]
    return "\n".join(lines)


def alternatives(schema: Schema) -> dict[str, Schema]:
    """Keys of which an object has one."""
    return {key: field for each in schema.get("oneOf", ()) for key, field in each.get("properties", {}).items()}


def annotation(field: Schema, required: bool) -> str:  # noqa: FBT001 (as it stands in the schema)
    """The type of a key; one that may be absent is never null."""
    if required:
        return type_of(field)
    return f"NotRequired[{type_of(without_null(field))}]"


def without_null(field: Schema) -> Schema:
    """The same schema, but for null."""
    if isinstance(field.get("type"), list):
        rest = [each for each in field["type"] if each != "null"]
        return {**field, "type": rest[0] if len(rest) == 1 else rest}
    if "anyOf" in field:
        rest = [each for each in field["anyOf"] if each != {"type": "null"}]
        return rest[0] if len(rest) == 1 else {**field, "anyOf": rest}
    return field


def type_of(schema: Schema) -> str:
    """A schema as a Python type."""
    if "$ref" in schema:
        return python_name(reference(schema))
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return union(schema[key])
    if "const" in schema:
        return f'Literal["{schema["const"]}"]'
    if "enum" in schema:
        return "Literal[" + ", ".join(f'"{value}"' for value in schema["enum"]) + "]"
    return json_type(schema, schema.get("type"))


def json_type(schema: Schema, kind: object) -> str:
    """A schema as a Python type, by the kind of JSON value that it is."""
    if isinstance(kind, list):
        return " | ".join(json_type(schema, each) for each in kind)
    if kind == "array":
        return f"list[{type_of(schema['items'])}]" if "items" in schema else "list[Any]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values)}]" if isinstance(values, dict) else "dict[str, Any]"
    return SCALARS.get(str(kind), "Any")


def union(schemas: list[Schema]) -> str:
    """One of several: words as one Literal, whatever has keys of its own as a dict."""
    consts = [value for each in schemas for value in ([each["const"]] if "const" in each else each.get("enum", ()))]
    others = dict.fromkeys(type_of(each) for each in schemas if "const" not in each and "enum" not in each)
    words = ["Literal[" + ", ".join(f'"{each}"' for each in consts) + "]"] if consts else []
    return " | ".join([*words, *others])


def documented(schema: Schema, indent: str) -> str:
    """The docstring of a type or a key."""
    text = " ".join(str(schema.get("description", "")).split()).replace("[`", "`").replace("`]", "`")
    quoted = f'{indent}"""{text}"""'
    if len(quoted) <= WIDTH:
        return quoted
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3)
    return "\n".join([f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), f'{indent}"""'])


if __name__ == "__main__":
    main()
