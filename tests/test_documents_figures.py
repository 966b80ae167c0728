"""Figures that the documents name in a sentence are those of the engines."""

from __future__ import annotations

import re

import pytest
from support import ROOT

import tierloom
from tierloom import offload


def text(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_the_readme_says_what_the_picture_shows() -> None:
    answer = tierloom.plan("cg-e", "liu-a", threads=32, nodes=["ldram", "cxl"], fast_memory="50%")
    best = answer.chosen["prediction"]["time_s"]
    touch, pages = (answer.policy(name)["prediction"]["time_s"] for name in ("local", "interleave:ldram+cxl"))
    said = f"to take {touch / best:.1f} times as long as the best placement, and page interleaving {pages / best:.1f}"
    assert said in text("README.md")
    points = answer.brief["frontier"]
    (little,) = [point for point in points if 0 < point["fast_bytes"] < 2e-3 * answer.profile.footprint_bytes][-2:-1]
    assert "With just 0.1 % of the data in DRAM, it already runs 3 times as fast as with none" in text("README.md")
    assert little["fast_bytes"] / answer.profile.footprint_bytes == pytest.approx(1e-3, rel=0.5)
    assert points[0]["time_s"] / little["time_s"] == pytest.approx(3.1, rel=0.05)


def test_the_readme_says_no_more_than_the_story() -> None:
    said = "first touch is predicted to take more than 1.5 times as long as Tierloom's plan"
    assert said in text("README.md")
    (gain,) = re.findall(r"first touch takes \*\*(\S+) times as long\*\* as the plan", text("docs/story.md"))
    assert float(gain) > 1.5


def test_the_tutorial_for_architects_says_what_the_planner_does() -> None:
    on = tierloom.Machine.load("32 cores, dram 64GiB 100ns 300GB/s, cxl 512GiB 250ns 60GB/s")
    answer = tierloom.plan("cg-e", on, threads=32, max_slowdown="10%")
    assert "a quarter of the DRAM will do" in text("docs/tutorial-architect.md")
    assert answer.chosen["fast_bytes"] / 2**36 == pytest.approx(0.25, abs=0.02)
    assert "would take more than three times as long" in text("docs/tutorial-architect.md")
    assert answer.policy("local")["prediction"]["time_s"] > 3 * answer.chosen["prediction"]["time_s"]


def test_the_tutorial_for_language_models_says_what_the_plan_gains() -> None:
    answer = offload.infer("qwen3-235b-a22b", "a10", "liu-a", users=4)
    ours = answer.plan.tokens_s
    gains = {rival["policy"]: ours / rival["tokens_s"] - 1 for rival in answer.data["policies"]}
    said = f"{gains['first-touch']:.0%} faster than first touch, and {gains['interleave']:.0%} faster than interleaving"
    assert said.replace("%", " %") in text("docs/tutorial-llm.md")
