"""`tierloom offload`: one document under --json, files where they were asked for, errors with a next step."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from support import ROOT, Tierloom, words_of
from syrupy.assertion import SnapshotAssertion

import tierloom as package
from tierloom.errors import RequestError
from tierloom.offload.catalog import load_gpu

INFER = ("offload", "infer", "--model", "opt-66b", "--gpu", "a10", "--machine", "liu-a-llm", "--throughput")
TRAIN = ("offload", "train", "--model", "gpt2-8b", "--gpu", "a10", "--machine", "liu-a-llm")
SERVE = ("offload", "serve", "--model", "llama-3.1-70b", "--gpu", "h100", "--machine", "liu-a-llm")
CPU = ("offload", "cpu", "--model", "llama-7b", "--weight-bits", "4.5", "--machine", "bytedance-spr-a1000")


@pytest.fixture(autouse=True)
def in_an_empty_folder(folder: Path) -> Path:
    return folder


@pytest.mark.parametrize(
    "words",
    [INFER, TRAIN, (*SERVE, "--sessions", "40", "--context", "32768"), CPU, ("offload", "list")],
    ids=["infer", "train", "serve", "cpu", "list"],
)
def test_the_tables(tierloom: Tierloom, snapshot: SnapshotAssertion, words: tuple[str, ...]) -> None:
    result = tierloom(*words)
    assert result.exit_code == 0
    assert result.stdout == snapshot


def test_infer_prints_one_document(tierloom: Tierloom) -> None:
    result = tierloom(*INFER, "--compare", "interleave,tier-blind", "--json")
    answer = json.loads(result.stdout)
    assert answer["batch"] == answer["gpu_batch"] * answer["gpu_batches"]
    assert {row["policy"] for row in answer["policies"]} == {"interleave", "tier-blind"}
    held = sum(place["weights_bytes"] for place in answer["places"])
    assert held == pytest.approx(answer["weight_bytes"])
    assert answer["whole_tensors"]["loss"] < 0.02


def test_a_part_has_one_placement_in_the_tables_and_pieces_that_take_no_time_are_left_out(tierloom: Tierloom) -> None:
    words = ("offload", "infer", "--model", "llama-3.1-70b", "--gpu", "a10", "--machine", "liu-a", "--users", "4")
    answer = json.loads(tierloom(*words, "--json").stdout)
    shown = [line.split() for line in tierloom(*words).stdout.splitlines()]
    for part, counted in answer["whole_tensors"]["tensors"].items():
        cells = [str(counted[place["place"]] or "·") for place in answer["places"]]
        row = next(line for line in shown if (line[:2] == ["KV", "cache"] and part == "kv") or line[:1] == [part])
        assert row[-len(cells) - 1 :] == [str(answer["whole_tensors"]["of"][part]), *cells]
    pieces = {**answer["prefill_pieces_s"], **answer["decode_pieces_s"]}
    idle = [piece for piece in pieces if not answer["prefill_pieces_s"].get(piece)]
    idle = [piece for piece in idle if not answer["decode_pieces_s"].get(piece)]
    assert idle
    assert not any(line[: len(piece.split())] == piece.split() for piece in idle for line in shown)


def test_requests_beyond_the_longest_context_of_a_model_are_told(tierloom: Tierloom) -> None:
    words = ("offload", "infer", "--model", "llama-3.1-70b", "--gpu", "a10", "--machine", "liu-a", "--users", "1")
    told = tierloom(*words, "--prompt", "200000", "--json").stderr
    assert "at most 131072 tokens, and a request has 200256" in told
    assert "warning" not in tierloom(*words, "--prompt", "100000", "--json").stderr


USERS = ("offload", "infer", "--model", "qwen3-32b", "--gpu", "a10", "--machine", "liu-a", "--compare", "interleave")


@pytest.mark.parametrize(
    "goal",
    [(), ("--users", "8"), ("--ttft", "3s", "--tokens-per-s", "1"), ("--throughput",)],
    ids=["table", "users", "limits", "throughput"],
)
def test_an_answer_opens_with_one_sentence_and_says_the_runtime(tierloom: Tierloom, goal: tuple[str, ...]) -> None:
    answer = json.loads(tierloom(*USERS, *goal, "--json").stdout)
    shown = " ".join(tierloom(*USERS, *goal).stdout.split())
    assert shown.startswith(answer["answer"])
    assert answer["why_runtime"] in shown
    assert answer["answer"].count(".") - answer["answer"].count("0.") >= 1
    assert {"tokens_s_user", "ttft_s", "ttft_alone_s", "tokens_s"} <= set(answer["users"])


def test_the_table_over_users_marks_its_knee(tierloom: Tierloom, snapshot: SnapshotAssertion) -> None:
    result = tierloom(*USERS)
    assert result.stdout.count(" knee ") >= 1
    assert result.stdout == snapshot


def test_lengths_prefixes_and_drafts_are_options(tierloom: Tierloom, folder: Path) -> None:
    (folder / "asked.csv").write_text("tokens\n500\n1500\n")
    words = ("--prompt", "asked.csv", "--answer", "100..300", "--shared-prefix", "200", "--speculative", "4:0.7")
    answer = json.loads(tierloom(*USERS, *words, "--users", "4", "--json").stdout)
    assert (answer["prompt"], answer["generate"], answer["longest_request"]) == (1000, 200, 1800)
    assert (answer["shared_prefix"], round(answer["tokens_a_step"], 3)) == (200, 2.773)


def test_train_serve_cpu_and_list_print_one_document_each(tierloom: Tierloom) -> None:
    trained = json.loads(tierloom(*TRAIN, "--json").stdout)
    assert trained["policies"][0]["policy"] == "tier-aware"
    served = json.loads(tierloom(*SERVE, "--sessions", "20", "--context", "8192", "--json").stdout)
    assert sum(row["sessions"] for row in served["tiers"]) == 20
    ratios = json.loads(tierloom(*CPU, "--json").stdout)
    assert ratios["best"] in [row["pages"] for row in ratios["ratios"]]
    assert len(json.loads(tierloom("offload", "list", "--json").stdout)["models"]) >= 20


def test_a_plan_for_a_tool_is_all_that_stdout_holds(tierloom: Tierloom) -> None:
    result = tierloom(*INFER, "--emit", "vllm")
    assert result.exit_code == 0
    assert "vllm serve" in next(line for line in result.stdout.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("stage", ["zero-offload", "zero-3"])
def test_training_is_written_for_deepspeed(tierloom: Tierloom, stage: str) -> None:
    config = json.loads(tierloom(*TRAIN, "--stage", stage, "--accumulate", "4", "--emit", "deepspeed").stdout)
    assert config["gradient_accumulation_steps"] == 4
    assert config["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert ("offload_param" in config["zero_optimization"]) == (stage == "zero-3")


def test_a_plan_for_run_is_written_and_read(tierloom: Tierloom, folder: Path) -> None:
    result = tierloom(*INFER, "--emit", "tierloom-plan", "-o", "opt.plan.toml")
    assert "wrote opt.plan.toml" in result.stderr
    assert package.Plan.load(folder / "opt.plan.toml").data["machine"] == "liu-a-llm"


@pytest.mark.slow
def test_the_picture_is_drawn_the_same_way_twice(tierloom: Tierloom, folder: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert tierloom(*INFER, "--plot", name).exit_code == 0
    assert (folder / "one.svg").read_bytes() == (folder / "two.svg").read_bytes()
    assert {"What capacity buys", "the machine as it is", "ldram", "cxl"} <= set(words_of(folder / "one.svg"))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((*INFER[:-1], "--users", "0"), 2, "users: 0 is no such number"),
        ((*INFER[:-1], "--batch", "500"), 1, "the largest batch that fits is 60"),
        ((*USERS, "--ttft", "soon"), 2, "`soon` is no time"),
        ((*USERS, "--tokens-per-s", "0"), 2, "0 tokens/s for each user"),
        ((*USERS, "--tokens-per-s", "500"), 1, "no number of users meets it, because even with one user"),
        ((*USERS, "--users", "9", "--ttft", "1ms"), 1, "no number of users can have that"),
        ((*USERS, "--users", "9", "--throughput"), 2, "leave out --throughput"),
        ((*USERS, "--prompt", "much"), 2, "a range (100..4000)"),
        ((*USERS, "--prompt", "9..1"), 2, "the prompt is 9..1"),
        ((*USERS, "--shared-prefix", "2048"), 2, "at least one token of its own"),
        ((*USERS, "--speculative", "4"), 2, "is no speculation"),
        ((*USERS, "--draft", "qwen3-8b"), 2, "add for example --speculative 4:0.7"),
        ((*INFER, "--runtime", "magic"), 2, "there is no runtime `magic`"),
        ((*INFER, "--nodes", "hbm"), 2, "its tiers are ldram, rdram, cxl"),
        ((*INFER, "--nodes", "ldram=2TiB"), 2, "liu-a-llm has 196GiB there"),
        ((*INFER, "--nodes", "ldram=much"), 2, "much"),
        ((*INFER, "--emit", "notepad"), 2, "there is no tool `notepad`"),
        ((*INFER, "--emit", "vllm", "--json"), 2, "both want stdout"),
        ((*INFER, "--nvme", "big"), 2, "is no block device"),
        ((*INFER, "--weight-bits", "0"), 2, "0 bits a weight"),
        ((*INFER, "--gpu-link", "-1"), 2, "link_gb_s: -1.0 is no such number"),
        (
            ("offload", "infer", "--model", "gpt-9", "--gpu", "a10", "--machine", "liu-a-llm"),
            2,
            "there is no model `gpt-9`",
        ),
        (("offload", "infer", "--model", "opt-66b", "--gpu", "a11", "--machine", "liu-a-llm"), 2, "did you mean a10"),
        ((*INFER, "--gpu", "A100"), 2, "did you mean a100-40, a100-80,"),
        ((*INFER, "--gpu", "b300"), 2, "docs/offload.md has one to start from"),
        ((*TRAIN, "--batch", "64"), 1, "the largest micro-batch that fits is 8"),
        ((*SERVE, "--sessions", "0", "--context", "1"), 2, "sessions: 0 is no such number"),
        ((*CPU, "--backends", "0"), 2, "backends: 0 is no such number"),
    ],
)
def test_wrong_requests_end_with_words(tierloom: Tierloom, words: tuple[str, ...], code: int, told: str) -> None:
    result = tierloom(*words)
    assert result.exit_code == code
    assert told in " ".join(result.stderr.split())
    assert "hint:" in result.stderr
    assert result.stdout == ""


def test_the_gpu_file_of_the_page_is_complete(tmp_path: Path) -> None:
    """Who has a GPU that is not in the catalog begins with it."""
    (text,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs/offload.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "own.toml").write_text(text)
    assert load_gpu(str(tmp_path / "own.toml")).memory_gb_s == 8000.0
    for key in tomllib.loads(text):
        (tmp_path / "less.toml").write_text("\n".join(line for line in text.split("\n") if not line.startswith(key)))
        with pytest.raises(RequestError, match=f"`{key}` is missing"):
            load_gpu(str(tmp_path / "less.toml"))
