"""What `story.py` says in numbers, and what it says without: from the files and answers of the same run."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any

from terminal import Terminal

PAGES, LINKS, ROUNDS = 6_000_000, 10, 20
SHARE = "20%"
MACHINE = "bytedance-spr-a1000"
QUESTION = f"rank.profile --machine {MACHINE} --nodes ldram,cxl"
"""What `plan` and `simulate` are asked about."""

PAGEWISE = "interleave:ldram+cxl"
"""The kernel's interleaving of pages."""

MIGRATIONS = "none,autonuma,tiering"
"""Policies of `simulate`: pages stay, and the two of the kernel that move them."""


class Figures:
    """What the text says in numbers, each from the files and answers of this run."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def asked(self, command: str) -> dict[str, Any]:
        """What a command answers to other programs."""
        answer: dict[str, Any] = json.loads(self.terminal.run(f"tierloom {command} --json").stdout)
        return answer

    @cached_property
    def profile(self) -> dict[str, Any]:
        """The profile."""
        text = (self.terminal.folder / "rank.profile" / "profile.json").read_text(encoding="utf-8")
        profile: dict[str, Any] = json.loads(text)
        return profile

    @cached_property
    def comparison(self) -> dict[str, Any]:
        """All policies, for a share of the data in DRAM."""
        return self.asked(f"plan {QUESTION} --fast-memory {SHARE} -o aside.plan.toml")

    @cached_property
    def little_loss(self) -> float:
        """Share of the data in DRAM with which the program loses 5 % at most."""
        answer = self.asked(f"plan {QUESTION} --max-slowdown 5% -o aside.plan.toml")
        chosen = next(each for each in answer["policies"] if each["policy"] == answer["chosen"])
        return float(chosen["fast_bytes"] / self.data_bytes)

    @cached_property
    def migrations(self) -> dict[str, float]:
        """Seconds by policy that moves pages, and by none."""
        answer = self.asked(f"simulate {QUESTION} --fast-memory {SHARE} --policy {MIGRATIONS}")
        return {run["policy"]: run["time_s"] for run in answer["runs"]}

    @property
    def wall_s(self) -> float:
        """How long the program took when it was profiled."""
        return float(self.profile["program"]["wall_s"])

    @property
    def data_bytes(self) -> float:
        """All data, in memory that was touched."""
        return float(self.frontier[-1]["fast_bytes"])

    @property
    def links(self) -> dict[str, Any]:
        """The array of links, by its size."""
        size = PAGES * LINKS * 4
        return next(each for each in self.profile["objects"] if abs(each["size_bytes"] / size - 1) < 0.01)

    @property
    def ranks(self) -> list[dict[str, Any]]:
        """The arrays of ranks, by their size: one or two at a time."""
        size = PAGES * 8
        return [each for each in self.profile["objects"] if 0.9 < each["size_bytes"] / size < 2.1]

    @property
    def waits_for_ranks(self) -> float:
        """Share of the run."""
        return float(sum(each["stall"]["share"] for each in self.ranks))

    @property
    def frontier(self) -> list[dict[str, Any]]:
        """The trade between DRAM and time."""
        points: list[dict[str, Any]] = self.comparison["frontier"]
        return points

    def prediction(self, policy: str) -> dict[str, Any]:
        """Of one policy."""
        return next(each["prediction"] for each in self.comparison["policies"] if each["policy"] == policy)

    @property
    def chosen(self) -> dict[str, Any]:
        """Of the policy that was chosen."""
        return self.prediction(self.comparison["chosen"])

    def gain(self, policy: str, figure: str = "time_s") -> float:
        """How many times as long a policy takes as the one that was chosen; also at either end of the range."""
        return float(self.prediction(policy)[figure] / self.chosen[figure])

    @property
    def over_all_dram(self) -> float:
        """The time that is chosen over that with all data in DRAM."""
        return float(self.chosen["time_s"] / self.frontier[-1]["time_s"])

    @property
    def latency_ratio(self) -> float:
        """Latency of the card over that of DRAM, at rest."""
        idle = {each["memory"]: each["idle_ns"] for each in self.chosen["tiers"]}
        return float(idle["cxl"] / idle["ldram"])

    @property
    def in_place(self) -> float:
        """Share of the pages in the lab that were where the plan wants them, as `run` said there."""
        said = re.search(r"(\S+) % of the pages that were looked at", " ".join(self.terminal.typed[-1].text.split()))
        return float(said[1]) / 100 if said else 0.0

    @property
    def claims(self) -> dict[str, bool]:
        """What the text says without a number, or with a round one."""
        count, true = self.links["accesses"], PAGES * LINKS * ROUNDS
        ends = [self.gain("local", end) for end in ("low_s", "high_s")]
        return {
            "the program mostly waits for ranks": self.waits_for_ranks > 0.6,
            "links are counted right": count["low"] < true < count["high"] < 1.2 * true,
            "first touch takes over 1.4 times as long": self.gain("local") > 1.4,
            "it takes longer at both ends of the range, too": min(ends) > 1.1,
            "so does interleaving": self.gain(PAGEWISE) > 1.4,
            "a fifth of the DRAM is nearly as good as all": self.over_all_dram < 1.3,
            "without DRAM the program takes over 1.7 times as long": self.frontier[0]["slowdown"] > 1.7,
            "a loss of 5 % takes over half of the data": self.little_loss > 0.5,
            "moving pages does not help": min(self.migrations.values()) > 1.3 * self.chosen["time_s"],
            "in the lab pages are where they should be": self.in_place > 0.95,
        }
