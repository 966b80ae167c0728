"""The reference of all files: every key of machines, profiles, plans, workloads and comparisons, and JSON schemas.

usage: file_reference.py

Reads the JSON schemas in ``python/tierloom/schema``, which are written from the Rust types, and those of studies and
GPUs from Python; writes ``docs/files.md`` and ``docs/schema/``. A test holds them together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import python_schemas

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = ROOT / "python" / "tierloom" / "schema"
PAGE = ROOT / "docs" / "files.md"
FOLDER = ROOT / "docs" / "schema"

DOCUMENTS = {
    "Machine": ("machine", "A machine: `NAME.toml`"),
    "Profile": ("profile", "A profile: `NAME.profile/profile.json`"),
    "Plan": ("plan", "A plan: `NAME.plan.toml`"),
    "Workload": ("workload", "A workload for `simulate`: `NAME.toml`"),
    "Comparison": ("comparison", "What `plan --json` prints"),
}
"""By noun: name of its schema, and its heading."""

HEAD = """# Files, key by key
This page lists every key of the files that you may write, and of the answer of `plan --json`. It is generated from the
types that read these files (`tools/file_reference.py`), so it is complete. Keys in **bold** are required.
[What is stable](stability.md) says for how long they stay.

For completion and checks while you type, give your editor the schema. The first line of a machine file may be
`#:schema PATH/docs/schema/machine.json`, which Even Better TOML and Taplo read. There are schemas of
[machines](schema/machine.json), [profiles](schema/profile.json), [plans](schema/plan.json),
[workloads](schema/workload.json) and [comparisons](schema/comparison.json), and of two files that other pages describe:
[studies](schema/study.json) for [`sweep`](sweep.md), and [GPUs](schema/gpu.json) for [`offload`](offload.md).

A *figure* is a number with its origin: `{ value = 85.0, kind = "measured", source = "sheet", how = "…" }`.
"""

FIGURE = "Figure"
"""One type a kind of number stands in the schemas; to a reader they are one."""

Schema = Mapping[str, Any]


def main() -> None:
    """Writes the page and the schemas."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


def read() -> dict[str, Schema]:
    """The schemas of all types, by name."""
    files = (SCHEMAS / name for name in ("documents.json", "workload.json"))
    return {noun: schema for file in files for noun, schema in json.loads(file.read_text(encoding="utf-8")).items()}


def written() -> dict[Path, str]:
    """Text by file."""
    schemas = read()
    files = {FOLDER / f"{name}.json": editor_schema(noun, schemas) for noun, (name, _) in DOCUMENTS.items()}
    files[FOLDER / "study.json"] = text_of("Study", python_schemas.study())
    files[FOLDER / "gpu.json"] = text_of("GPU", python_schemas.gpu())
    told = {name for name in schemas if is_figure(name) and name != FIGURE}
    parts = [HEAD]
    for noun, (_, heading) in DOCUMENTS.items():
        parts.append(f"\n## {heading}\n")
        parts += [section(name, schemas) for name in reached(noun, schemas) if name not in told]
        told |= set(reached(noun, schemas))
    return {**files, PAGE: "".join(parts) + "\nNext: [machines](machines.md), [what is stable](stability.md).\n"}


def editor_schema(noun: str, schemas: Mapping[str, Schema]) -> str:
    """A schema that stands alone: the noun, and what it is made of."""
    inner = {name: schemas[name] for name in reached(noun, schemas)[1:]}
    return text_of(noun, {**schemas[noun], "$defs": inner})


def text_of(title: str, schema: Schema) -> str:
    """A schema as a file."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def reached(noun: str, schemas: Mapping[str, Schema]) -> list[str]:
    """The noun and all types that it is made of, outermost first."""
    order = [noun]
    for name in order:
        order += [inner for inner in dict.fromkeys(references(schemas[name])) if inner not in order]
    return order


def references(schema: object) -> Iterator[str]:
    """Names of the types that a schema refers to, in its order."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix("#/$defs/")
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from references(each)


def section(name: str, schemas: Mapping[str, Schema]) -> str:
    """A heading, what the type is, and a row a key or a choice."""
    schema = schemas[name]
    rows = [*keys(schema), *choices(schema)]
    table = "\n".join(["| key | value | meaning |", "|---|---|---|", *rows]) + "\n" if rows else ""
    one = " One of these:" if "oneOf" in schema else ""
    return f"\n### {name}\n{meaning(schema)}{one}\n\n{table}"


def is_figure(name: str) -> bool:
    """Whether a type is a number with its origin."""
    return re.fullmatch(rf"{FIGURE}\d*", name) is not None


def keys(schema: Schema) -> Iterator[str]:
    """A row a key."""
    needed = schema.get("required", [])
    for key, value in schema.get("properties", {}).items():
        shown = f"**`{key}`**" if key in needed else f"`{key}`"
        yield f"| {shown} | {kind(value)} | {meaning(value)} |"


def choices(schema: Schema) -> Iterator[str]:
    """A row for each of what a value may be."""
    for each in schema.get("oneOf", []):
        if "properties" in each:
            described = {key: {**each, **value} for key, value in each["properties"].items()}
            yield from keys({"properties": described})
        else:
            words = each.get("enum", [each["const"]] if "const" in each else [])
            yield f"| {' or '.join(f'`{word}`' for word in words) or kind(each)} | | {meaning(each)} |"


def kind(schema: Schema) -> str:
    """What a value is, as one cell."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return "[figure](#figure)" if is_figure(name) else f"[{name}](#{name.lower()})"
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(kind(each) for each in schema[key] if each.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]))
    return plain(schema)


def plain(schema: Schema) -> str:
    """A list, a table or a single value."""
    told = schema.get("type", "any")
    told = next((each for each in told if each != "null"), "any") if isinstance(told, list) else told
    if told == "array":
        inner = schema.get("items") or next(iter(schema.get("prefixItems", [])), {})
        return f"list of {kind(inner)}" if isinstance(inner, Mapping) and inner else "list"
    if told == "object":
        if inside := schema.get("properties"):
            return f"table of {', '.join(f'`{key}` ({kind(value)})' for key, value in inside.items())}"
        inner = schema.get("additionalProperties")
        return f"table of {kind(inner)}" if isinstance(inner, Mapping) else "table"
    return {"integer": "whole number", "string": "text", "boolean": "`true` or `false`"}.get(told, told)


def meaning(schema: Schema) -> str:
    """The description without links into Rust, in one line."""
    text = re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", schema.get("description", ""))
    return re.sub(r"\s+", " ", re.sub(r"`(?:crate::)?(\w+)::(\w+)`", r"`\2`", text)).replace("|", "\\|").strip()


if __name__ == "__main__":
    main()
