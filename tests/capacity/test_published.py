"""The published cases: inputs go in, claims are compared with, and what is missed is said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tierloom.capacity import catalog, findings, published_others, published_tpch
from tierloom.capacity.catalog import Case
from tierloom.capacity.findings import Finding
from tierloom.nouns import Machine

KINDS = {"measured", "published", "derived", "assumed"}


@pytest.fixture(scope="module")
def tpch() -> Case:
    return catalog.load("tpch-mssql")


def by_name(found: list[Finding]) -> dict[str, Finding]:
    return {each.name: each for each in found}


def test_every_input_has_a_kind_and_a_source() -> None:
    for name in catalog.names():
        case = catalog.load(name)
        for figure in case.inputs.values():
            for each in figure if isinstance(figure, list) else [figure]:
                assert each["kind"] in KINDS, name
                assert each["source"] in case.sources, name


@pytest.mark.parametrize("name", catalog.names())
def test_what_is_missed_says_why(name: str) -> None:
    for each in findings(name):
        assert each.verdict == "reproduced" or each.note, each.name


# --- TPC-H ------------------------------------------------------------------------------------


def test_the_five_speed_ups_come_out_within_five_percent(tpch: Case) -> None:
    assert published_tpch.unseen_speed_ups(tpch) == pytest.approx([1.23, 1.96, 3.22, 1.23, 1.69], rel=0.05)


@pytest.mark.parametrize("number", range(5))
def test_no_speed_up_reads_its_own_published_value(tpch: Case, number: int) -> None:
    gains = list(tpch.claims["speed_ups"])
    gains[number] *= 2.0
    changed = replace(tpch, claims={**tpch.claims, "speed_ups": gains})
    for by_memory in (False, True):
        before, after = (published_tpch.unseen_speed_ups(case, from_memory=by_memory) for case in (tpch, changed))
        assert before[number] == after[number]
        assert before != after


def test_memory_alone_predicts_all_but_the_single_stream(tpch: Case) -> None:
    ours = published_tpch.unseen_speed_ups(tpch, from_memory=True)
    assert ours[1:] == pytest.approx(tpch.claims["speed_ups"][1:], rel=0.05)
    assert ours[0] > 1.05 * tpch.claims["speed_ups"][0]


def test_the_impossible_point_is_named(tpch: Case) -> None:
    assert published_tpch.impossible_stall(tpch) > 1.0
    assert by_name(findings("tpch-mssql"))["1152 GB, 1 stream: share waiting"].verdict == "conflict"


def test_peaks_move_out_with_memory(tpch: Case) -> None:
    """8, 16 and 28 streams: ours is there, or no more than 2 % higher elsewhere."""
    for gb, streams in ((768, 8), (1792, 16), (2176, 28)):
        job = published_tpch.jobs(tpch)[gb]
        peak = job.peak(job.reference_bytes, published_tpch.tried_streams(tpch))
        rates = [job.throughput(job.reference_bytes, count) for count in (streams, peak)]
        assert rates[0] >= 0.98 * rates[1], gb


def test_where_peaks_are_is_not_read(tpch: Case) -> None:
    moved = replace(tpch, claims={**tpch.claims, "peak_streams": dict.fromkeys(tpch.claims["peak_streams"], 4)})
    assert published_tpch.jobs(moved) == published_tpch.jobs(tpch)


# --- the others -------------------------------------------------------------------------------


def test_svm_is_fitted_within_five_percent_and_says_what_it_does_not_foresee() -> None:
    found = by_name(findings("spark-svm"))
    fitted = [each for name, each in found.items() if "unseen" not in name]
    assert [each.verdict for each in fitted] == ["fitted"] * 3
    for each in fitted:
        assert each.ours == pytest.approx(each.published, rel=0.05)
    for name, each in found.items():
        if "unseen" in name:
            assert each.ours == pytest.approx(each.published, rel=0.10)


def test_the_cost_models_example_is_exact() -> None:
    found = by_name(findings("cost-model"))
    assert f"{found['servers'].ours:.2%} {found['saving'].ours:.2%}" == "67.29% 25.98%"


@pytest.mark.parametrize("change", [{}, {"threads": 1}, {"threads": 12}, {"compute_us": 2.0}, {"compute_us": 10.0}])
def test_keydb_keeps_its_order_whatever_was_assumed(change: dict[str, float]) -> None:
    case = catalog.load("keydb")
    inputs = {**case.inputs, **{name: {**case.inputs[name], "value": value} for name, value in change.items()}}
    rates = published_others.keydb_rates(replace(case, inputs=inputs), Machine.load(case.machine))
    order = sorted(rates, key=lambda name: -rates[name])
    assert order == case.claims["order"]
    assert rates["hot-promote"] > 0.95 * rates["mmem"]


def test_spark_sql_keeps_its_order_and_says_what_that_rests_on() -> None:
    case, machine = catalog.load("spark-sql"), Machine.load("bytedance-spr-a1000")
    rates = published_others.sql_rates(case, machine)
    assert sorted(rates, key=lambda name: -rates[name]) == case.claims["order"]
    cold = {**case.inputs, "hot": {**case.inputs["hot"], "value": 0.7}}
    rates = published_others.sql_rates(replace(case, inputs=cold), machine)
    assert rates["hot-promote"] < rates["3:1"], "below three quarters, promotion is worse than 3:1"
