"""`tierloom offload`: one document under --json, files where they were asked for, errors with a next step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Tierloom
from syrupy.assertion import SnapshotAssertion

import tierloom as package

INFER = ("offload", "infer", "--model", "opt-66b", "--gpu", "a10", "--machine", "liu-a")
TRAIN = ("offload", "train", "--model", "gpt2-8b", "--gpu", "a10", "--machine", "liu-a")
SERVE = ("offload", "serve", "--model", "llama-3.1-70b", "--gpu", "h100", "--machine", "liu-a")
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
    assert package.Plan.load(folder / "opt.plan.toml").data["machine"] == "liu-a"


@pytest.mark.slow
def test_the_picture_is_drawn_the_same_way_twice(tierloom: Tierloom, folder: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert tierloom(*INFER, "--plot", name).exit_code == 0
    assert (folder / "one.svg").read_bytes() == (folder / "two.svg").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((*INFER, "--batch", "0"), 2, "the batch is 0"),
        ((*INFER, "--batch", "500"), 1, "the largest batch that fits is 60"),
        ((*INFER, "--runtime", "magic"), 2, "there is no runtime `magic`"),
        ((*INFER, "--tiers", "hbm"), 2, "its tiers are ldram, rdram, cxl"),
        ((*INFER, "--emit", "notepad"), 2, "there is no tool `notepad`"),
        ((*INFER, "--emit", "vllm", "--json"), 2, "both want stdout"),
        ((*INFER, "--nvme", "big"), 2, "is no block device"),
        ((*INFER, "--weight-bits", "0"), 2, "0 bits a weight"),
        ((*INFER, "--gpu-link", "-1"), 2, "a link of -1 GB/s"),
        (
            ("offload", "infer", "--model", "gpt-9", "--gpu", "a10", "--machine", "liu-a"),
            2,
            "there is no model `gpt-9`",
        ),
        (("offload", "infer", "--model", "opt-66b", "--gpu", "a11", "--machine", "liu-a"), 2, "did you mean a10"),
        ((*TRAIN, "--batch", "64"), 1, "the largest micro-batch that fits is 8"),
        ((*SERVE, "--sessions", "0", "--context", "1"), 2, "the number of sessions is 0"),
        ((*CPU, "--backends", "0"), 2, "have to be at least 1"),
    ],
)
def test_wrong_requests_end_with_words(tierloom: Tierloom, words: tuple[str, ...], code: int, told: str) -> None:
    result = tierloom(*words)
    assert result.exit_code == code
    assert told in " ".join(result.stderr.split())
    assert "hint:" in result.stderr
    assert result.stdout == ""
