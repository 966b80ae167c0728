"""Options of verbs are read from the source of the functions that they hand arguments to: the same as Python sees."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re

import pytest
from support import ROOT

from tierloom.commands.function_options import arguments_of, told, value_of

COMMANDS = ROOT / "python/tierloom/commands"
USED = sorted(
    set(re.findall(r'"([a-z_.]+:[A-Za-z_.]+)"', "".join(path.read_text() for path in COMMANDS.glob("*.py"))))
    | {f"offload.other_requests:{name}" for name in ("train", "serve", "cpu")}
)


def test_the_functions_are_found() -> None:
    assert {"offload.requests:infer", "policy_search:plan", "profiler:record", "lab:run"} <= {*USED}


@pytest.mark.parametrize("function", USED)
def test_what_the_source_declares_is_what_python_has(function: str) -> None:
    module, _, named = function.partition(":")
    seen = inspect.signature(pkgutil.resolve_name(f"tierloom.{function}")).parameters
    read = arguments_of(module, named)
    assert [name for name in read if name != "cls"] == [*seen]
    for name, each in seen.items():
        declared = read[name]
        assert ast.unparse(declared.annotation) == each.annotation
        assert declared.about, f"{function} does not say what {name} is"
        if each.default is not each.empty:
            assert declared.default is not None
            assert value_of(module, declared.default) == each.default


def test_an_option_is_what_the_function_declares() -> None:
    prefix = told("offload.requests:infer", "shared_prefix")
    assert prefix == {
        "help": "Tokens that all prompts start with.",
        "type": int,
        "default": 0,
        "show_default": True,
    }
    assert told("offload.requests:infer", "model")["required"]
    assert told("offload.requests:infer", "prompt")["type"] is str, "a range or a file, though the default is a number"
    assert told("offload.requests:infer", "compare")["default"] == "interleave,first-touch"
    assert told("offload.requests:infer", "peer")["is_flag"]
    assert told("offload.other_requests:train", "stage")["type"].choices == ("zero-offload", "zero-3")
    assert told("capacity.keyvalue:Load", "theta")["default"] == 0.99


def test_what_only_python_can_say_is_no_help() -> None:
    assert (
        "\n        placement: Where pages are put at first: first-touch, interleave, … From Python"
        in inspect.getsource(pkgutil.resolve_name("tierloom.migration_simulator:simulate"))
    )
    help_of = told("migration_simulator:simulate", "placement")["help"]
    assert help_of == "Where pages are put at first: first-touch, interleave, …"
