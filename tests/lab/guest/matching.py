"""A plan for another machine finds this one's nodes by itself: hot data lands on DRAM and not on the slow node."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from placing import MIB, TIERLOOM, node_one, parse, program, rule

import tierloom

TOPOLOGIES = ("two-tier", "cxl")


def plan_for_liu_a() -> Path:
    """A plan for liu-a, whose memories are `rdram`, `ldram`, `cxl`, with rules for this program's objects."""
    made = tierloom.plan("mg-e", "liu-a", threads=32, policies=["object-interleave:ldram+cxl"]).plan()
    assert made.data["nodes"] == ["rdram", "ldram", "cxl"]
    head = re.sub(r"\[\[rules\]\].*", "", made.text, flags=re.DOTALL)
    head = re.sub(r"^bytes = .*$", "bytes = [0, 0, 0]", head, flags=re.MULTILINE)
    hot = rule("hot", f"size_at_least = {24 * MIB}", 'bind = ["ldram"]')
    cold = rule("cold", f"size_at_least = {8 * MIB}", 'bind = ["cxl"]')
    path = Path.cwd() / "liu-a.plan.toml"
    path.write_text(f"{head}\n{hot}\n{cold}")
    return path


def check_hot_data_of_a_plan_for_another_machine_lands_on_dram() -> None:
    node_one()
    words = [f"heap:hot:{24 * MIB}", f"heap:cold:{8 * MIB}", "show"]
    command = [str(TIERLOOM), "run", "--plan", str(plan_for_liu_a()), "--json", "--", str(program()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stderr[-3000:])
    assert done.returncode == 0, done.returncode
    matches = {match["memory"]: match["node"] for match in json.loads(done.stdout)["memories"]}
    assert matches == {"ldram": 0, "cxl": 1}
    shown = parse(done.stderr)
    assert shown["hot"].share(0) == 1.0
    assert shown["cold"].share(1) == 1.0
