"""JSON schemas of the files that Python reads: studies and GPUs, from the lists that their readers check them by.

`file_reference.py` writes them beside those of the nouns. A schema knows every key; what hangs on another value, such
as the ends of a span, is left to the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tierloom.offload.catalog import BY_FORMAT, FIGURES, KINDS
from tierloom.sweeps.axes import SPAN_KEYS
from tierloom.sweeps.studies import DIRECTIONS, METHODS, SAMPLE_KEYS
from tierloom.sweeps.verbs import VERBS, Verb

Schema = dict[str, Any]

VALUE: Schema = {"type": ["string", "number", "boolean"]}
WHOLE: Schema = {"type": "integer", "minimum": 0}


def study() -> Schema:
    """A study: what may be varied depends on its verb."""
    return {
        "description": "A verb asked many times, with other parameters. File: `STUDY.toml`.",
        **table(
            {
                "kind": {"const": "study"},
                "version": {"const": 1},
                "title": {"type": "string"},
                "verb": {"enum": list(VERBS), "description": "What is asked."},
                "parameters": {"type": "object", "description": "The same in every point."},
                "axes": {"type": "object", "minProperties": 1, "description": "What varies: lists, or spans."},
                "sample": {"$ref": "#/$defs/Sample"},
                "cluster": {"type": "object", "description": "Where the workers run."},
            },
            required=["version", "verb", "axes"],
        ),
        "allOf": [varied(verb) for verb in VERBS.values()],
        "$defs": {"Axis": axis(), "Sample": sample()},
    }


def varied(verb: Verb) -> Schema:
    """Names that the parameters and axes of a verb may have."""
    return {
        "if": {"properties": {"verb": {"const": verb.name}}},
        "then": {"properties": {"parameters": named(verb, {}), "axes": named(verb, {"$ref": "#/$defs/Axis"})}},
    }


def named(verb: Verb, value: Schema) -> Schema:
    """A table with a verb's parameters for its keys, and its families before a dot."""
    found = table(dict.fromkeys(verb.parameters, value))
    return {**found, "patternProperties": {rf"^{family}\.": value for family in verb.families}}


def axis() -> Schema:
    """One axis."""
    end = {"type": ["number", "string"]}
    meant = {"from": end, "to": end, "steps": {"type": "integer", "minimum": 2}, "log": {"type": "boolean"}}
    span = table({key: meant[key] for key in sorted(SPAN_KEYS)}, required=["from", "to"])
    return {"oneOf": [{"type": "array", "minItems": 1, "items": VALUE}, span]}


def sample() -> Schema:
    """How points are chosen: each method has keys of its own."""
    meant: dict[str, Schema] = {
        "points": {"type": "integer", "minimum": 1},
        "seed": WHOLE,
        "generation": {"type": "integer", "minimum": 1},
        "objective": {"type": "object", "minProperties": 1, "additionalProperties": {"enum": list(DIRECTIONS)}},
    }
    methods = [
        table(
            {"method": {"const": method}, **{key: meant[key] for key in sorted(SAMPLE_KEYS[method] - {"method"})}},
            required=sorted({"method", "points", "objective"} & SAMPLE_KEYS[method]) if method != "grid" else (),
        )
        for method in METHODS
    ]
    return {"oneOf": methods, "description": "How points are chosen; every combination without it."}


def gpu() -> Schema:
    """A GPU."""
    figure = {
        "type": "object",
        "properties": {
            "value": {"type": "number", "exclusiveMinimum": 0},
            "kind": {"enum": sorted(KINDS)},
            "source": {"type": "string"},
            "how": {"type": "string"},
        },
        "required": ["value", "kind", "source"],
    }
    told: dict[str, Schema] = {"title": {"type": "string"}, "released": {"type": "object"}}
    figures: dict[str, Schema] = {key: {"$ref": "#/$defs/Figure"} for key in (*FIGURES, *BY_FORMAT)}
    about = {"description": "A GPU, every figure with its origin. File: `NAME.toml`."}
    return {**about, **table({**told, **figures}, required=FIGURES), "$defs": {"Figure": figure}}


def table(keys: dict[str, Schema], required: Sequence[str] = ()) -> Schema:
    """A table of these keys and no others."""
    return {"type": "object", "additionalProperties": False, "properties": keys, "required": list(required)}
