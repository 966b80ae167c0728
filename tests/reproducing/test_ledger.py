"""The ledger's own laws: complete, honest, and never read by what computes ours."""

from __future__ import annotations

import inspect
import random
from dataclasses import replace

import pytest

from tierloom.errors import RequestError
from tierloom.reproducing import Claim, claims, documents, ledger, reproduce
from tierloom.reproducing.computing import computation

QUICK = (
    "bytedance24",
    "fridman23",
    "micron24.bandwidth",
    "liu24.latency",
    "liu24.loaded",
    "liu24.table2",
    "liu24.fig17",
)


def test_every_item_of_every_document_has_a_claim() -> None:
    for document in documents():
        spoken_of = {claim.item for claim in document.claims}
        listed = {item.id for item in document.items}
        assert listed == spoken_of, f"{document.id}: {listed ^ spoken_of}"


def test_ids_are_unique_and_name_their_document() -> None:
    ids = [claim.id for claim in claims()]
    assert len(ids) == len(set(ids))
    assert all(claim.id.startswith(f"{claim.document}.") for claim in claims())


def test_every_computation_exists_and_takes_the_parameters_of_its_claims() -> None:
    for claim in claims():
        if claim.how:
            inspect.signature(computation(claim.how)).bind(None, **claim.given)


def test_every_claim_has_a_band_with_its_reason_or_holds_or_not() -> None:
    for claim in claims():
        if claim.how is None:
            assert claim.why, f"{claim.id} has no model and does not say why"
        elif isinstance(claim.published, bool):
            assert claim.band is None, claim.id
        else:
            assert claim.band, f"{claim.id} has no band"
            assert claim.because, f"{claim.id} does not say where its band comes from"


def test_a_miss_is_our_models_unless_the_ledger_says_otherwise() -> None:
    causes = {claim.id: claim.cause for claim in claims()}
    assert causes["micron24.tpch.impossible"] == "contradiction"
    assert causes["liu24.table4.migrated.autonuma.silo"] == "not published"
    assert causes["liu24.table4.migrated.autonuma.pagerank"] == "model"
    assert causes["micron24.cloverleaf.nps1"] == "model"


def test_every_published_value_is_in_its_own_band() -> None:
    for claim in claims():
        if claim.band and claim.published is not None:
            low, high = claim.band.around(float(claim.published))
            assert low is None or low <= claim.published, claim.id
            assert high is None or claim.published <= high, claim.id


def test_no_prediction_is_given_its_published_value_as_a_parameter() -> None:
    for claim in claims():
        if claim.kind == "prediction" and not isinstance(claim.published, bool):
            numbers = [value for value in claim.given.values() if isinstance(value, float)]
            assert claim.published not in numbers, claim.id


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
    monkeypatch.setattr("tierloom.reproducing.offloading.settings", lambda _document: given)
    assert [result.ours for result in reproduce(some, workers=1)] == before


def test_three_published_gains_imply_one_share_of_prefill() -> None:
    """Overall, prefill and decode gains of figure 17 agree about what prefill takes: the setting that we use."""
    given = ledger.settings("liu24")
    decode, overall = (
        {claim.id.rpartition(".")[2]: float(claim.published or 0) for claim in claims([f"liu24.fig17.{part}"])}
        for part in ("decode", "overall")
    )
    for memories, prefill in given["prefill_gains"].items():
        of_all, of_decode = 1.0 / (1.0 + overall[memories]), 1.0 / (1.0 + decode[memories])
        implied = (of_all - of_decode) / (1.0 + prefill - of_decode)
        assert implied == pytest.approx(given["prefill_share"], abs=0.01)


def test_a_pattern_names_whole_parts_of_an_id() -> None:
    assert [claim.id for claim in claims(["liu24.fig1"])] == ["liu24.fig1"]
    assert {claim.item for claim in claims(["liu24.fig17"])} == {"fig17"}
    assert {claim.document for claim in claims(["*.latency"])} == {"liu24", "bytedance24"}
    with pytest.raises(RequestError, match=r"no claim is called so(.|\n)*hint: claims begin with"):
        claims(["liu24.fig99"])
