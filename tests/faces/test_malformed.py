"""Files that are nearly what they should be: one error that names file, key and value, and never a traceback.

`tests/commands/test_bad_input.py` has files that are nothing of the kind; `fuzz/` makes up what lies between.
"""

from __future__ import annotations

import json
import shlex
import struct
from pathlib import Path

import numpy as np
import pytest
from support import Tierloom

import tierloom as package
from tierloom.errors import MachineError, RequestError
from tierloom.readers import MALFORMED, reading

MLC = """Intel(R) Memory Latency Checker - v3.11b
Measuring idle latencies for sequential access (in ns)...
\t\tNuma node
Numa node\t     0\t     1\t
       0\t 100.0\t 250.0\t

Measuring Memory Bandwidths between nodes within system
\t\tNuma node
Numa node\t     0\t     1\t
       0\t100000.0\t {}\t
"""


def gguf(path: Path, heads: int, name: bytes = b"llama") -> None:
    """A header with a few keys and one small tensor (GGUF version 3)."""
    pytest.importorskip("gguf")

    def text(word: bytes) -> bytes:
        return struct.pack("<Q", len(word)) + word

    numbers = {"block_count": 2, "embedding_length": 64, "attention.head_count": heads, "feed_forward_length": 128}
    keys = [text(b"general.architecture") + struct.pack("<I", 8) + text(name)]
    keys += [text(f"llama.{key}".encode()) + struct.pack("<II", 4, value) for key, value in numbers.items()]
    tensor = text(b"token_embd.weight") + struct.pack("<IQQIQ", 2, 4, 2, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor + bytes(128))


def refused(tierloom: Tierloom, words: str, *said: str) -> None:
    result = tierloom(*shlex.split(words))
    assert result.exit_code == 2, result.output
    first, *rest = result.stderr.splitlines()
    assert first.startswith("error: ")
    assert all(part in result.stderr for part in said), result.stderr
    assert [line.partition(":")[0] for line in rest].count("hint") == 1, result.stderr


INFER = "offload infer --model m.gguf --gpu a10 --machine liu-a"


def test_a_model_without_heads(tierloom: Tierloom, folder: Path) -> None:
    gguf(folder / "m.gguf", heads=0)
    refused(tierloom, INFER, "m.gguf", "`llama.attention.head_count` is 0", "whole number from 1")


def test_a_model_whose_words_are_no_text(tierloom: Tierloom, folder: Path) -> None:
    gguf(folder / "m.gguf", heads=4, name=b"ll\xffma")
    refused(tierloom, INFER, "m.gguf", "bytes that are no text")


@pytest.mark.parametrize("figure", ["0", "1e-308", "0.0000001", "1e300", "nan", "inf", "-5", "1e999"])
def test_a_bandwidth_that_no_memory_has(tierloom: Tierloom, folder: Path, figure: str) -> None:
    (folder / "m.log").write_text(MLC.format(figure))
    refused(tierloom, "machine import m.log --node 0=dram:64GiB --node 1=cxl:64GiB --cores 8", "m.log: line 10")


@pytest.mark.parametrize("verb", ["{}", "[]", "1", "1979-05-27", "true", "[{}]"])
def test_a_study_whose_verb_is_no_word(tierloom: Tierloom, folder: Path, verb: str) -> None:
    (folder / "s.toml").write_text(f"version = 1\nverb = {verb}\n[axes]\nthreads = [1]\n")
    refused(tierloom, "sweep s.toml", "s.toml: verb: ", "use one of: ")


@pytest.mark.parametrize("header", ["{'descr': '<u8', 'shape': (1,)", "{'descr': (", "\x00" * 60, "{}", "[" * 5000])
def test_samples_with_a_broken_header(folder: Path, header: str) -> None:
    profile = package.Profile(package.Profile.load("mg-e").text, folder=folder)
    content = header.encode()
    (folder / "samples.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content)) + content)
    with pytest.raises(RequestError, match=r"samples.npy: no whole array of samples: .*\nhint: "):
        profile.samples()


def test_a_document_that_is_nested_too_deeply(tierloom: Tierloom, folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)
    refused(tierloom, "offload infer --model config.json --gpu a10 --machine liu-a", "config.json")
    (folder / "s.toml").write_text("x = " + "[" * 100_000)
    refused(tierloom, "sweep s.toml", "s.toml")
    refused(tierloom, "report config.json -o r.html", "config.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, -1, "many", None])
def test_a_machine_of_figures_that_cannot_be(value: object) -> None:
    data = json.loads(json.dumps(package.Machine.load("liu-a").data))
    data["memories"][0]["capacity_bytes"]["value"] = value
    with pytest.raises(MachineError, match=r"mine: .*\n?(.*\n)*hint: "):
        package.Machine.from_data(data, "mine")


@pytest.mark.parametrize("kind", MALFORMED, ids=lambda kind: kind.__name__)
def test_whatever_content_raises_names_the_file(kind: type[Exception]) -> None:
    with pytest.raises(RequestError, match=r"a.bin: no soup: .+\nhint: cook"), reading("a.bin", "soup", "cook"):
        raise kind


def test_a_fault_of_ours_is_not_blamed_on_the_file() -> None:
    with pytest.raises(AssertionError), reading("a.bin", "soup", "cook"):
        raise AssertionError
    ours = MachineError("ours")
    with pytest.raises(MachineError, match="ours"), reading("a.bin", "soup", "cook"):
        raise ours


def test_good_files_stay_good(tierloom: Tierloom, folder: Path) -> None:
    (folder / "m.log").write_text(MLC.format("30000.0"))
    result = tierloom(*shlex.split("machine import m.log --node 0=dram:64GiB --node 1=cxl:64GiB --cores 8 -o m.toml"))
    assert result.exit_code == 0, result.stderr
    assert np.isfinite(package.Machine.load("m.toml").curve("socket0", "node1").peak_gb_s)


EVERYTHING = {
    "s.toml": (
        'version = 1\nverb = "plan"\ncolour = 3\n[parameters]\nmachin = "liu-a"\n[axes]\nthreads = 8\nnodes = []\n'
        '[sample]\nmethod = "latin-hypercube"\npoints = 0\n',
        "sweep s.toml",
        ("7 things are wrong", "colour", "machin", "profile", "machine: `plan`", "threads", "nodes", "sample.points"),
    ),
    "files.toml": (
        'version = 1\nverb = "plan"\n[parameters]\nprofile = "none"\n[axes]\nmachine = ["liu-a", "nowhere", "lost"]\n',
        "sweep files.toml --workers 0",
        ("3 things are wrong", "none", "nowhere", "lost"),
    ),
    "runs.csv": (
        "memory,seconds,streams\nmuch,1,1\n1GiB,soon,0.5\n",
        "capacity fit runs.csv",
        ("runs.csv: 3 things are wrong", "run 1: ", "run 2: `seconds` is `soon`", "run 2: `0.5` is no number of"),
    ),
    "lengths": (
        "prompt\n100\nlong\n-3\n",
        "offload infer --model opt-30b --gpu a10 --machine liu-a --prompt lengths",
        ("lengths: 2 things are wrong", "line 3: `long`", "line 4: `-3`"),
    ),
    "config.json": (
        '{"model_type": "llama", "hidden_size": -1, "num_hidden_layers": "many", "lora_rank": 8}',
        "offload infer --model config.json --gpu a10 --machine liu-a",
        (
            "config.json: 3 things are wrong",
            "`hidden_size` is -1",
            "`num_hidden_layers` is 'many'",
            "`lora_rank` is no field of",
        ),
    ),
    "box.toml": (
        'kind = "machine"\nversion = 1\nnmae = "box"\nsources = { me = 3 }\nmemories = "none"\npaths = []\n'
        '[[sockets]]\nname = "s"\ncoers = 3\n',
        "machine show box.toml",
        (
            "things are wrong",
            "nmae: there is no such key (did you mean name?)",
            "sources.me: is 3, not text",
            'memories: is the text "none", not a list',
            "sockets[0].llc_bytes: is missing",
        ),
    ),
    "gpu.toml": (
        "memory_gb_s = 3\ncolour = 1\n",
        "offload infer --model opt-30b --gpu gpu.toml --machine liu-a",
        (
            "things are wrong",
            "`colour` is no figure",
            "`memory_gb_s` is missing or has no kind",
            "`tflop_s` is missing",
        ),
    ),
}
"""Files in which more than one thing is wrong, by name: what reads them, and what it says."""


@pytest.mark.parametrize("name", EVERYTHING)
def test_all_that_is_wrong_with_a_file_is_told_at_once(tierloom: Tierloom, folder: Path, name: str) -> None:
    content, words, said = EVERYTHING[name]
    (folder / name).write_text(content)
    refused(tierloom, words, *said)
