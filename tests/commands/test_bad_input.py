"""Every verb against bad input, in one table: an exit code, one line that says what is wrong, what to do, no traceback.

A verb that is new has to be in :data:`FILES` (words with ``{}`` where a file or a name goes) or in
:data:`NO_FILES`. Options with a type need no line here: each is tried with a value that it cannot have.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from support import Tierloom

from tierloom.commands import main

INFER = "--model opt-66b --gpu a10 --machine liu-a"

FILES: dict[str, list[str]] = {
    "demo": ["--machine {}"],
    "machine show": ["{}"],
    "machine export": ["{} --hwloc"],
    "machine import": ["{}"],
    "profile": ["--from {}"],
    "analyse": ["{} -o out.profile"],
    "recording show": ["{}"],
    "recording pack": ["{} -o out.binaries"],
    "plan": ["{} --machine liu-a", "mg-e --machine {}", "mg-e --machine liu-a --ran-on {}", "{}.toml --emit numactl"],
    "run": ["--plan {} -- true"],
    "apply": ["--pid 1 --plan {}"],
    "validate": ["--machine {} -- true"],
    "simulate": [
        *("{} -m liu-a", "mg-e -m {}", "mg-e -m liu-a --plan {}"),
        *("--workload {} -m liu-a", "--trace {} -m liu-a"),
    ],
    "trace import": ["{} --format lackey -o out.npy", "{} --format drmemtrace -o out.npy"],
    "expand": ["--trace {}", "--workload vadd --set {}"],
    "expand calibrate": ["--measured {}"],
    "offload infer": [
        *("--model {} --gpu a10 --machine liu-a", "--model opt-66b --gpu {} --machine liu-a"),
        "--model opt-66b --gpu a10 --machine {}",
    ],
    "offload train": ["--model {} --gpu a10 --machine liu-a", "--model gpt2-8b --gpu a10 --machine {}"],
    "offload serve": [
        "--model {} --gpu h100 --machine liu-a --sessions 2 --context 8",
        "--model llama-3.1-70b --gpu h100 --machine {} --sessions 2 --context 8",
    ],
    "offload cpu": ["--model {} --machine liu-a", "--model llama-7b --machine {}"],
    "capacity fit": ["{}"],
    "capacity plan": ["{} --dram 1GiB", "duckdb-tpch --dram 1GiB --machine {}"],
    "capacity published": ["{}"],
    "capacity store": ["--machine {}"],
    "sweep": ["{}"],
    "diff": ["{} mg-e", "mg-e {}"],
    "report": ["{} -o out.html", "liu-a {} -o out.html"],
    "pmem show": ["{}"],
    "pmem repair": ["{}"],
}
"""By verb, its words with ``{}`` where a bad file goes."""

NO_FILES = {
    "machine new",
    "doctor",
    "reproduce",
    "pmem create",
    "pmem stream",
    "pmem check",  # its answer is what is wrong with the file
    "machine list",
    "machine measure",
    "offload list",
    "capacity list",
    "capacity cost",
    "capacity fleet",
    "capacity shape",
    "capacity measure duckdb",
    "capacity measure records",
    "capacity measure redis",
    "capacity measure spark",
    *(f"lab {word}" for word in ("down", "image", "run", "ssh", "status", "up")),
}
"""Verbs that read no file of the user's."""

BAD: dict[str, bytes | None] = {
    "none/such.toml": None,
    "folder.toml": None,
    "binary.toml": b"\x93\xff\xfe\x00PAR1" * 40,
    "empty.toml": b"",
    "broken.toml": b"version = 1\nname = [[[\n",
    "other.toml": b"version = 99\n",
    "other.npy": b"\x93NUMPY\x01\x00 and no more",
}
"""Files that no verb can read, by name."""

SHOWN = {("report", "empty.toml"), ("report", "other.toml")}
"""A page shows any document, also one that no other verb reads."""

OUTPUTS = [
    "plan mg-e --machine liu-a -o {}",
    "plan mg-e --machine liu-a --html {}",
    "plan mg-e --machine liu-a --plot {}.png",
    "machine show liu-a --plot {}.png",
    "machine export liu-a --hwloc -o {}",
    "machine new 'dram 64GiB' -o {}",
    "expand --write-set {}",
    "expand calibrate --measured h200 -o {}",
    f"offload infer {INFER} --prompt 512 --emit flexgen -o {{}}",
    "sweep cxl-share --workers 0 -o {}",
    "report liu-a -o {}",
    "pmem create {} 1MiB",
    "pmem stream --size 8KiB --rounds 2 --pool {}",
]
"""Commands that write, with ``{}`` where the file goes."""

SIZES = [
    "plan mg-e --machine liu-a --fast-memory {}",
    "simulate mg-e -m liu-a --fast-memory {}",
    "simulate --workload zipf -m liu-a --size {}",
    "demo --fast-memory {}",
    "trace import t --format lackey -o o.npy --llc {}",
    "pmem create p.pool {}",
    "pmem create p.pool 1MiB --log {}",
    "pmem stream --size {}",
    "lab up --memory {}",
    "machine import liu-a.xml --node 0=dram:{}",
    "capacity fit duckdb-tpch --hold-out {}",
    "capacity plan duckdb-tpch --dram {}",
    "capacity plan duckdb-tpch --dram 1GiB --cxl {}",
    "capacity measure redis --data {} --memory 1MiB",
    "capacity measure records --data {} --memory 1MiB",
    "capacity measure duckdb --memory {}",
    "capacity measure duckdb --memory 1GiB --storage {}",
    "capacity fleet --data {} --seconds 1 --server 1 --tier a:1:1:1GiB",
    "capacity fleet --data 1GiB --seconds 1 --server 1 --tier a:1:1:{}",
    "capacity shape --vcpus 4 --dram {} --per-vcpu 1GiB",
    "capacity shape --vcpus 4 --dram 1GiB --per-vcpu {}",
    "offload infer --model opt-66b --gpu a10 --machine liu-a --nvme {}:1:1",
]
"""Commands with ``{}`` where an amount of memory goes: all that say SIZE in their help."""

DAMAGED = {"pmem show", "pmem check", "pmem repair", "profile"}
"""Verbs whose bad file may be a failure (1) and no wrong request (2): pools and recordings break by themselves."""


def leaves(command: click.Command = main, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Every verb that does something, by its words."""
    found = {" ".join(path): command} if not isinstance(command, click.Group) or command.invoke_without_command else {}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            found |= leaves(inner, (*path, name)) if inner else {}
    return found


VERBS = leaves()
READS = [
    (verb, words, bad)
    for verb, each in FILES.items()
    for words in each
    for bad in BAD
    if verb in VERBS and (verb, bad) not in SHOWN
]


def typed(verb: str) -> list[str]:
    """Options of a verb whose type refuses the word `soup`."""
    kinds = (click.types.IntParamType, click.types.FloatParamType, click.Choice)
    options = [each for each in VERBS[verb].params if isinstance(each, click.Option) and not each.is_flag]
    return [each.opts[-1] for each in options if isinstance(each.type, kinds)]


def test_every_verb_is_in_the_table() -> None:
    assert not set(VERBS) - set(FILES) - NO_FILES, "say in FILES where the new verb takes a file"


@pytest.fixture
def bad_files(folder: Path) -> Path:
    for name, content in BAD.items():
        if content is not None:
            (folder / name).write_bytes(content)
    (folder / "folder.toml").mkdir()
    (folder / "folder.toml" / "inside").write_text("not what is looked for")
    return folder


@pytest.mark.parametrize(("verb", "words", "bad"), READS)
@pytest.mark.usefixtures("bad_files")
def test_a_bad_file_is_named_with_what_to_do(tierloom: Tierloom, verb: str, words: str, bad: str) -> None:
    result = tierloom(*shlex.split(f"{verb} {words}".replace("{}", bad)))
    assert result.exit_code in ((1, 2) if verb in DAMAGED else (2,)), result.stderr
    explained(result)
    assert bad.split("/")[0].removesuffix(".toml") in result.stderr


@pytest.mark.parametrize("words", OUTPUTS)
def test_what_cannot_be_written_is_named_with_what_to_do(tierloom: Tierloom, folder: Path, words: str) -> None:
    (folder / "file").write_text("in the way")
    result = tierloom(*shlex.split(words.replace("{}", "file/inner")))
    assert result.exit_code in (1, 2), result.stderr
    explained(result)
    assert "file/inner" in result.stderr


@pytest.mark.parametrize("words", SIZES)
@pytest.mark.usefixtures("folder")
def test_an_amount_without_a_unit_is_refused(tierloom: Tierloom, words: str) -> None:
    """64 means GiB to who types it, and meant bytes to the reader."""
    Path("t").write_text("")
    tierloom("machine", "export", "liu-a", "--hwloc", "-o", "liu-a.xml")
    result = tierloom(*shlex.split(words.replace("{}", "64")))
    assert result.exit_code == 2, result.stderr
    explained(result)
    assert "`64` has no unit: did you mean 64GiB?" in result.stderr


@pytest.mark.parametrize(("verb", "option"), [(verb, option) for verb in VERBS for option in typed(verb)])
@pytest.mark.usefixtures("folder")
def test_a_value_that_an_option_cannot_have_is_refused(tierloom: Tierloom, verb: str, option: str) -> None:
    result = tierloom(*verb.split(), option, "soup")
    assert result.exit_code == 2
    assert option in result.stderr
    assert "'soup'" in result.stderr
    assert f"Try 'main {verb} --help'" in result.stderr
    assert result.stdout == ""


# What follows `lab ssh` is the guest's.
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "lab ssh"])
@pytest.mark.usefixtures("folder")
def test_an_option_that_is_not_there_is_refused(tierloom: Tierloom, verb: str) -> None:
    runs_a_program = VERBS[verb].context_settings.get("ignore_unknown_options", False)
    result = tierloom(*verb.split(), *(() if runs_a_program else ("--soup",)))
    assert result.exit_code == 2
    assert "Missing" in result.stderr if runs_a_program else "No such option" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def explained(result: click.testing.Result) -> None:
    """One line says what is wrong and one what to do: ours, or those of click where an option cannot be."""
    lines = result.stderr.strip().split("\n")
    if lines[0].startswith("Usage: "):
        assert lines[1].startswith("Try 'main "), result.stderr
        assert lines[-1].startswith("Error: "), result.stderr
    else:
        assert lines[0].startswith("error: "), result.stderr
        assert [line.partition(":")[0] for line in lines].count("error") == 1
        assert [line.partition(":")[0] for line in lines].count("hint") == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_verb_that_is_misspelt_is_answered_with_the_one_that_is_meant(tierloom: Tierloom) -> None:
    result = tierloom("plna")
    assert result.exit_code == 2
    assert "No such command 'plna'. Did you mean 'plan'?" in result.stderr


def test_a_unit_that_is_misspelt_is_answered_with_the_one_that_is_meant(tierloom: Tierloom) -> None:
    result = tierloom("plan", "mg-e", "--machine", "liu-a", "--fast-memory", "200Mb")
    assert result.exit_code == 2
    assert "`Mb` is not a unit of memory: did you mean 200MB?" in result.stderr
