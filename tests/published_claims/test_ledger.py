"""The ledger's own laws: complete, honest, and never read by what computes ours."""

from __future__ import annotations

import inspect
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tierloom.errors import RequestError
from tierloom.published_claims import Claim, Study, claims, computation, ledger, reproduce, studies
from tierloom.published_claims.printed import Figure

PRINTED = Path(__file__).parent / "printed"
"""What is printed where: a file a study, made of its text by `tools/catalog/printed_figures.py`."""

QUICK = (
    "bytedance24",
    "fridman23",
    "micron24.bandwidth",
    "liu24.latency",
    "liu24.loaded",
    "liu24.table2",
    "liu24.fig17",
)

each_study = pytest.mark.parametrize("study", studies(), ids=lambda study: study.id)


def listed(study: Study) -> set[str]:
    """Every number that a study prints."""
    lines = (PRINTED / f"{study.id}.txt").read_text(encoding="utf-8").splitlines()
    return {number for line in lines for number in line.partition("\t")[2].split()}


def bare(printed: str) -> str:
    """The number of a figure as it stands."""
    found = re.search(r"\d[\d,]*(?:\.\d+)?", printed)
    assert found, printed
    return found.group()


def told(study: Study) -> set[str]:
    """Every number that the ledger holds as printed."""
    held = [claim.published for claim in study.claims if isinstance(claim.published, Figure)]
    return {bare(text) for each in held for text in each.printed}


@each_study
def test_every_printed_figure_stands_in_its_study(study: Study) -> None:
    assert not told(study) - listed(study)


@each_study
def test_every_number_of_a_study_is_a_claim_or_on_the_list_of_what_is_none(study: Study) -> None:
    """But for whole numbers below ten: of steps, of figures, of drawings."""
    spoken_of = told(study) | {bare(text) for group in study.not_claims for text in group.printed}
    left = {number for number in listed(study) - spoken_of if not re.fullmatch(r"\d", number)}
    assert not left


@each_study
def test_claims_stand_in_sections_of_their_study(study: Study) -> None:
    sections = {section.id for section in study.sections}
    assert {claim.section for claim in study.claims} <= sections
    assert {group.section for group in study.not_claims} <= sections
    assert all(section.state and section.how for section in study.sections)


def test_ids_are_unique_and_name_their_study() -> None:
    ids = [claim.id for claim in claims()]
    assert len(ids) == len(set(ids))
    assert all(claim.id.startswith(f"{claim.study}.") for claim in claims())


def test_every_computation_exists_and_takes_the_parameters_of_its_claims() -> None:
    for claim in claims():
        if claim.how:
            inspect.signature(computation.computation(claim.how)).bind(None, **claim.given)


def test_every_computation_is_named_by_a_claim() -> None:
    computation.computation(str(next(claim.how for claim in claims() if claim.how)))
    assert computation._computations.keys() == {claim.how for claim in claims() if claim.how}


def test_what_has_no_model_says_why() -> None:
    assert all(claim.why for claim in claims() if claim.how is None)


def test_a_figure_that_the_text_does_not_print_says_where_it_comes_from() -> None:
    for claim in claims():
        if isinstance(claim.published, Figure) and not claim.published.printed:
            assert claim.read_off, claim.id
        if claim.kind == "ordering":
            assert isinstance(claim.published, bool), claim.id


def test_every_prediction_was_listed_before_it_was_computed() -> None:
    predicted = {claim.id for claim in claims() if claim.kind in {"prediction", "ordering"}}
    assert predicted == set(ledger.promised())


def test_a_prediction_that_left_the_ledger_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "promised", lambda: ("micron24.tpch.forgotten",))
    study = ledger._study(ledger.catalog.catalog_table("claims", "micron24"))
    (gone,) = [claim for claim in study.claims if claim.id == "micron24.tpch.forgotten"]
    (result,) = reproduce([gone], workers=1)
    assert result.verdict == "missed"


def test_no_prediction_is_given_its_published_value_as_a_parameter() -> None:
    for claim in claims():
        if claim.kind == "prediction" and isinstance(claim.published, Figure):
            numbers = [value for value in claim.given.values() if isinstance(value, float)]
            assert claim.value not in numbers, claim.id


def shuffled(some: list[Claim]) -> list[Claim]:
    """The claims with each other's published values."""
    values = [claim.published for claim in some]
    random.Random(1).shuffle(values)
    return [replace(claim, published=value) for claim, value in zip(some, values, strict=True)]


def test_shuffled_published_values_leave_ours_as_they_are() -> None:
    some = claims(QUICK)
    before = {result.claim.id: result.ours for result in reproduce(some, workers=1)}
    moved = shuffled(some)
    assert sum(a.published != b.published for a, b in zip(some, moved, strict=True)) > len(some) / 2
    assert {result.claim.id: result.ours for result in reproduce(moved, workers=1)} == before


def test_a_prediction_whose_value_is_a_setting_does_not_read_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and shares of table 3 are predicted, and settings of figure 17's runs: both may not be one."""
    some = claims(["liu24.table3.batch.llama-65b.L", "liu24.table3.cache.llama-65b.L"])
    before = [result.ours for result in reproduce(some, workers=1)]
    given = dict(ledger.settings("liu24"))
    given["batches"] = given["cache_on_gpu"] = {}
    monkeypatch.setattr("tierloom.published_claims.offload.settings", lambda _study: given)
    assert [result.ours for result in reproduce(some, workers=1)] == before


def test_three_published_gains_imply_one_share_of_prefill() -> None:
    """Overall, prefill and decode gains of figure 17 agree about what prefill takes: the setting that we use."""
    given = ledger.settings("liu24")
    decode, overall = (
        {claim.id.rpartition(".")[2]: float(claim.value or 0) for claim in claims([f"liu24.fig17.{part}"])}
        for part in ("decode", "overall")
    )
    for memories, prefill in given["prefill_gains"].items():
        of_all, of_decode = 1.0 / (1.0 + overall[memories]), 1.0 / (1.0 + decode[memories])
        implied = (of_all - of_decode) / (1.0 + prefill - of_decode)
        assert implied == pytest.approx(given["prefill_share"], abs=0.01)


def test_a_pattern_names_whole_parts_of_an_id() -> None:
    assert {claim.id.split(".")[1] for claim in claims(["liu24.fig17"])} == {"fig17"}
    assert {claim.study for claim in claims(["*.latency"])} >= {"liu24", "bytedance24"}
    with pytest.raises(RequestError, match=r"no claim is called so(.|\n)*hint: claims begin with"):
        claims(["liu24.fig1"])
