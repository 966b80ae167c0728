"""Runs are shared, made once, and in other processes give what they give here."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from tierloom.published_claims import Claim, Result, claims, reproduce, runs
from tierloom.published_claims.computation import Job, Pending, Runs, compute
from tierloom.published_claims.printed import figure


def claim(**given: Any) -> Claim:
    blank = {"id": "x.y", "study": "x", "section": "y", "place": "", "what": "", "kind": "prediction"}
    return Claim(**{**blank, "published": figure("2 s"), "how": "z", "given": {}, **given})


@pytest.mark.parametrize(("ours", "verdict"), [(2.0, "in band"), (2.2, "in band"), (2.21, "missed"), (1.79, "missed")])
def test_ours_is_in_band_or_missed(ours: float, verdict: str) -> None:
    assert Result(claim=claim(), ours=ours).verdict == verdict


def test_a_bound_has_one_end() -> None:
    below = claim(published=figure("3%", bound="below"))
    assert Result(claim=below, ours=-1.0).verdict == "in band"
    assert Result(claim=below, ours=0.031).verdict == "missed"


def test_what_holds_or_does_not_has_no_band() -> None:
    assert Result(claim=claim(published=True), ours=True).verdict == "in band"
    assert Result(claim=claim(published=True), ours=False).verdict == "missed"
    assert Result(claim=claim(how=None), ours=None).verdict == "not modelled"


class Pool:
    """An executor that runs a job at once, here, and remembers it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, work: Any, job: Job) -> Future[Any]:
        self.jobs.append(job)
        future: Future[Any] = Future()
        future.set_result(work(job))
        return future


def test_claims_share_their_runs_and_each_is_made_once() -> None:
    some = claims(["fridman23.group1c.close.ldram", "fridman23.group1a", "fridman23.text"])
    asked = {claim.id: claim for claim in some if claim.how}
    pool, told = Pool(), []
    values = runs._Work(asked, pool, lambda share, words: told.append((share, words))).settle()
    assert values.keys() == asked.keys()
    assert len(pool.jobs) == len(set(pool.jobs)) < len(asked) + 3
    assert told[-1][0] == 1.0
    assert [share for share, _ in told] == sorted(share for share, _ in told)


def test_a_computation_says_which_runs_it_needs() -> None:
    wanted = claims(["fridman23.text.far"])[0]
    with pytest.raises(Pending) as needs:
        compute(str(wanted.how), wanted.given, Runs())
    assert len(needs.value.jobs) == 2


def test_other_processes_give_what_this_one_does() -> None:
    some = claims(["fridman23.group2a", "liu24.hpc.mg"])
    assert reproduce(some, workers=2) == reproduce(some, workers=1)
