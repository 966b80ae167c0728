"""Options of verbs are read from the source of the functions that they hand arguments to: the same as Python sees.

Their help is a line of these functions' docstrings, which are written for who reads Python's help.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Literal, get_args, get_origin

import click
import pytest
from man_pages import commands
from support import ROOT

import tierloom
from tierloom import capacity, lab, offload, pmem
from tierloom.commands.declared_arguments import arguments_of
from tierloom.commands.function_options import MARKED, line_of, of, told

COMMANDS = ROOT / "python/tierloom/commands"
USED = sorted(set(re.findall(r'"([a-z_.]+:[A-Za-z_.]+)"', "".join(path.read_text() for path in COMMANDS.glob("*.py")))))
VERBS = [context for _, context in commands()]
TYPED = {flag for verb in VERBS for each in verb.command.params for flag in each.opts if flag.startswith("--")}

OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OTHERS = re.compile(r"(?:valgrind|callgrind|qemu) [^`.;:)]*")
"""Commands of other programs, with options of theirs."""
OF_THE_COMMAND_LINE = re.compile(r"\b(?:CMD|PROFILE|From Python|In full)\b")


def public(room: ModuleType) -> Iterator[tuple[str, object]]:
    """What a module of the API offers, with the methods of its classes."""
    for name in room.__all__:
        yield name, getattr(room, name)
        if inspect.isclass(getattr(room, name)):
            members = vars(getattr(room, name)).items()
            yield from ((f"{name}.{member}", each) for member, each in members if not member.startswith("_"))


API = {
    **{
        f"{room.__name__}.{name}": each
        for room in (tierloom, capacity, lab, offload, pmem)
        for name, each in public(room)
    },
    **{function: pkgutil.resolve_name(f"tierloom.{function}") for function in USED},
}


def test_the_functions_are_found() -> None:
    assert {"offload.inference:infer", "policy_search:plan", "profiler:record", "lab:run"} <= {*USED}
    assert {"tierloom.plan", "tierloom.Profile.load", "tierloom.pmem.Pool.create"} <= {*API}


@pytest.mark.parametrize("function", USED)
def test_what_the_source_declares_is_what_python_has(function: str) -> None:
    seen = inspect.signature(pkgutil.resolve_name(f"tierloom.{function}")).parameters
    read = arguments_of(function)
    assert [*read] == [*seen]
    for name, each in seen.items():
        declared = read[name]
        assert " | ".join(declared.kinds) == each.annotation.removesuffix(" | None")
        assert declared.about, f"{function} does not say what {name} is"
        assert declared.required == (each.default is each.empty)
        if not declared.required:
            assert declared.default == each.default


def test_words_of_an_argument_are_those_of_its_type() -> None:
    found = 0
    for function in USED:
        there = vars(sys.modules[f"tierloom.{function.partition(':')[0]}"])
        for declared in arguments_of(function).values():
            if declared.kinds[0] in there:  # and not there for the type checker alone
                kind = there[declared.kinds[0]]
                assert declared.words == (get_args(kind) if get_origin(kind) is Literal else ())
                found += bool(declared.words)
    assert found > 5


def test_an_option_is_what_the_function_declares() -> None:
    prefix = told("offload.inference:infer", "shared_prefix", {})
    assert prefix == {
        "help": "Tokens that all prompts start with.",
        "type": int,
        "default": 0,
        "show_default": True,
    }
    infer = "offload.inference:infer"
    assert told(infer, "model", {})["required"]
    assert told(infer, "prompt", {})["type"] is str, "a range or a file, though the default is a number"
    assert told(infer, "compare", {})["default"] == "interleave,first-touch"
    assert told(infer, "peer", {})["is_flag"]
    assert told("offload.training:train", "stage", {})["type"].choices == ("zero-offload", "zero-3")
    assert told("capacity.keyvalue:Load", "theta", {})["default"] == 0.99


def test_help_is_the_first_paragraph_in_words_of_the_command_line() -> None:
    about = """Such as ``"64GiB"``, or ``"dram 1TiB, cxl 1TiB"``: with ``link_gb_s``
        or ``batch``, of ``{size}``.

        A number of bytes, too."""
    flags = {"link_gb_s": ["--gpu-link"], "batch": ["--batch", "-b"]}
    assert line_of(about, flags) == 'Such as 64GiB, or "dram 1TiB, cxl 1TiB": with --gpu-link or --batch, of {size}.'


def test_what_can_be_given_again_says_so() -> None:
    @of("policy_search:plan", what_if=("CHANGE", {"multiple": True}))
    def verb() -> None:
        """Nothing."""

    (option,) = click.command()(verb).params
    assert isinstance(option, click.Option)
    assert str(option.help).endswith("cxl.neighbours=10GB/s. May be given again.")
    assert option.multiple
    assert option.default is None


@pytest.mark.parametrize("function", USED)
def test_a_word_that_is_marked_in_a_line_of_help_is_an_argument(function: str) -> None:
    for name, argument in arguments_of(function).items():
        words = [each for each in MARKED.findall(argument.about.split("\n\n")[0]) if re.fullmatch(r"[\w-]+", each)]
        lost = {*words} - {*arguments_of(function)}
        assert not lost, f"{function}, {name}: quote {lost}, if they are values"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.info_name)
def test_every_option_says_what_it_does_in_options_that_the_verb_has(verb: click.Context) -> None:
    options = [each for each in verb.command.params if isinstance(each, click.Option)]
    there = {flag for each in options for flag in (*each.opts, *each.secondary_opts)}
    for each in options:
        assert each.help, f"{verb.info_name} {each.opts[0]} has no help"
        named = {*OPTION.findall(OTHERS.sub("", each.help))}
        assert named <= there | ELSEWHERE.get(each.opts[-1], set()), f"{verb.info_name} {each.opts[0]}: {each.help}"


ELSEWHERE = {"--restore-weights": {"--set-host-weights"}, "--counts": {"--cache-sim"}}
"""Options of other verbs and programs that a help text names, with them."""


@pytest.mark.parametrize("name", API)
def test_docstrings_of_the_api_speak_python(name: str) -> None:
    text = inspect.getdoc(API[name]) or ""
    named = {*OPTION.findall(OTHERS.sub("", text))} & TYPED
    assert not named, f"{name} speaks of {', '.join(sorted(named))}"
    assert not OF_THE_COMMAND_LINE.search(text), name


def test_a_docstring_that_speaks_the_command_line_is_found() -> None:
    def bad(_: Callable[..., object]) -> None:
        """Runs CMD, as ``--json`` says."""

    assert {*OPTION.findall(str(bad.__doc__))} <= TYPED
    assert OF_THE_COMMAND_LINE.search(str(bad.__doc__))
