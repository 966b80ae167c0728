"""How a profile is held against the truth, and how random programs follow from their seeds."""

from pathlib import Path
from typing import Any

import pytest
from benches.counts import counted
from benches.counts.generator import DEVELOPMENT, GATE, plan, sources
from benches.counts.judge import Verdict, apart, judged
from benches.counts.matching import matched
from benches.counts.program import Program
from benches.counts.table import HEAD, Line, summary, write
from benches.counts.truth import LUMPS, Truth

HEAP = Truth("heap", "", 4096, 1, (("program", 16), ("libc", 1)), 0, 0, 600, 200)
STATIC = Truth("static", "table", 4096, 1, (), 0, 0, 100, 100)
STACK = Truth("lump", "[stack]", 0, 0, (), 0, 0, 10**9, 10**9)


def item(name: str, kind: str, site: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "kind": kind, "site": site}


def access(name: str, read_bytes: float, write_bytes: float) -> dict[str, Any]:
    return {"object": name, "read_bytes": read_bytes, "write_bytes": write_bytes}


def profile(heap: tuple[float, float], table: tuple[float, float]) -> dict[str, Any]:
    stack = [{"module": "program", "offset": 16}, {"module": "libc", "offset": 1}]
    objects = [
        item("block", "heap", {"stack": stack}),
        item("array", "static", {"symbol": {"module": "program", "symbol": "table"}}),
    ]
    accesses = [access("block", *heap), access("array", *table)]
    return {
        "objects": objects,
        "phases": [{"accesses": accesses}],
        "sampling": {"samples": 9, "warnings": [{"kind": "x"}]},
    }


def test_a_profile_that_is_right_is_off_by_nothing() -> None:
    verdict = judged(profile((600, 200), (100, 100)), [HEAP, STATIC, STACK])
    assert (verdict.tvd, verdict.total, verdict.ratio) == (0, pytest.approx(0), pytest.approx(0))
    assert verdict.warnings == ("x",)


def test_shares_and_totals_are_judged_apart() -> None:
    verdict = judged(profile((300, 100), (50, 50)), [HEAP, STATIC])
    assert (verdict.tvd, verdict.total) == (pytest.approx(0), pytest.approx(-50))
    verdict = judged(profile((300, 100), (450, 150)), [HEAP, STATIC])
    assert (verdict.tvd, verdict.total) == (pytest.approx(40), pytest.approx(0))


def test_reads_by_writes_are_judged_object_by_object() -> None:
    verdict = judged(profile((600, 200), (150, 50)), [HEAP, STATIC])
    assert verdict.ratio == pytest.approx(100 * ((150 + 10) / (50 + 10) - 1))


def test_objects_are_the_same_by_call_stack_and_by_name() -> None:
    other = Truth("heap", "", 4096, 1, (("program", 99), ("libc", 1)), 0, 0, 1, 1)
    found = matched([HEAP, STATIC, other, STACK], profile((1, 1), (1, 1))["objects"])
    assert [one.profiled for one in found] == [["block"], ["array"], []]


def test_a_seed_is_a_program() -> None:
    assert sources(plan(3)) == sources(plan(3))
    assert sources(plan(3)) != sources(plan(4))
    assert not set(DEVELOPMENT) & set(GATE)


def test_every_shape_is_drawn_sooner_or_later() -> None:
    plans = [plan(seed) for seed in range(1, 200)]
    assert len({(one.build.language, phase.shape.name) for one in plans for phase in one.phases}) == 42
    assert all("$" not in text for one in plans for name, text in sources(one).items() if name.endswith(".c"))


def test_the_table_says_what_all_programs_come_to(tmp_path: Path) -> None:
    program = Program("one", ("one",), tmp_path, "about")
    right, half = (
        judged(profile(*counts), [HEAP, STATIC]) for counts in (((600, 200), (100, 100)), ((300, 100), (50, 50)))
    )
    line = Line.of(program, [right, right, half])
    assert (line.tvd, line.total, line.total_worst, line.spread) == (0, 0, -50, 50)
    assert "totals: 1 of 1 within 10 %, 1 of 1 within 30 %" in summary([line])
    write(tmp_path / "table.csv", [line])
    assert (tmp_path / "table.csv").read_text().splitlines() == [
        ",".join(HEAD),
        "one,0.0,0.0,0.0,-50.0,0.0,50.0,9,0,0,,0,x,about",
    ]


def test_intervals_of_several_recordings_overlap_or_are_told() -> None:
    def recorded(count: float) -> Verdict:
        found = profile((600 * count, 200 * count), (100, 100))
        found["objects"][0]["accesses"] = {"count": 10, "low": 8, "high": 12}
        return judged(found, [HEAP, STATIC])

    assert apart([recorded(1.0), recorded(1.4)]) == 0
    assert apart([recorded(1.0), recorded(1.4), recorded(1.6)]) == 1


def test_what_was_counted_is_judged_with_what_is_of_no_object() -> None:
    """Thread-local storage is in the loader's memory for the truth, and a row of its own in a profile."""
    told = profile((500.0, 200.0), (100.0, 100.0))
    told["sampling"] |= {"not_sampled": {"bytes": 60.0}, "thread_local": {"bytes": 50.0}}
    loader = Truth("lump", LUMPS["a"], 0, 0, (), 0, 0, 50, 0)
    found = counted.judged(told, [HEAP, STATIC, STACK, loader])
    assert found.total == pytest.approx(100 * (1010 / 1050 - 1))
    assert found.tvd == pytest.approx(100 * (0.8 - 7 / 9))
    assert (found.not_sampled, found.thread_local) == pytest.approx((6000 / 1050, 5000 / 1050))
    assert (found.samples, found.intervals) == (9, 0)
