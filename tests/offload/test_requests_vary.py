"""What users send: lengths that vary, prefixes that are shared, drafts that are verified."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tierloom.errors import PlacementError, RequestError
from tierloom.offload import audit, lengths, planner
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.host import Host
from tierloom.offload.length_files import lengths_of
from tierloom.offload.lengths import variation
from tierloom.offload.problem import Problem, check
from tierloom.offload.runtime import RUNTIMES
from tierloom.offload.speculation import Speculation, speculation_of
from tierloom.offload.user_figures import figures


@pytest.fixture(params=list(RUNTIMES))
def asked(request: pytest.FixtureRequest, liu_a: Host) -> Problem:
    """A dense model that an A10 has no room for, under each runtime."""
    return Problem(
        model=load_model("qwen3-32b"),
        gpu=load_gpu("a10"),
        host=liu_a,
        runtime=RUNTIMES[request.param].on(liu_a.cores),
        prompt=1000,
        generate=200,
        batch=8,
    )


# ------------------------------------------------------------------ lengths


def test_moments_are_those_of_the_lengths() -> None:
    ranged, listed = lengths.uniform(100, 400), lengths.of(range(100, 401))
    assert ranged.mean == pytest.approx(listed.mean)
    assert ranged.square == pytest.approx(listed.square)
    assert (ranged.shortest, ranged.longest) == (listed.shortest, listed.longest) == (100, 400)


def test_lengths_are_read_from_a_number_a_range_or_a_file(tmp_path: Path) -> None:
    plain, table = tmp_path / "lengths.txt", tmp_path / "lengths.csv"
    plain.write_text("100\n300\n\n")
    table.write_text("tokens,when\n100,1\n300,2\n")
    assert lengths_of("512", "prompt") == lengths_of(512, "prompt") == lengths.fixed(512)
    assert lengths_of("100..4000", "prompt") == lengths.uniform(100, 4000)
    assert lengths_of(str(plain), "prompt") == lengths_of(str(table), "prompt") == lengths.of([100, 300])


@pytest.mark.parametrize("told", ["0", "-5", "400..100", "0..10", "many", "no-such-file.csv", "1.5"])
def test_what_is_no_length_is_refused(told: str) -> None:
    with pytest.raises(RequestError, match="hint:"):
        lengths_of(told, "prompt")


@pytest.mark.parametrize("content", ["", "tokens\n", "100\nmany\n", "100\n-4\n"])
def test_a_file_without_lengths_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "lengths.csv"
    file.write_text(content)
    with pytest.raises(RequestError, match="hint:"):
        lengths_of(str(file), "prompt")


def test_memory_is_kept_for_the_longest_of_one_and_for_little_more_than_the_mean_of_many() -> None:
    varies = variation(lengths.uniform(100, 4000), lengths.uniform(50, 450))
    mean = 2050 + 250
    kept = [varies.reserved(mean, users) for users in (1, 4, 16, 64, 1024)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] <= 4450
    assert mean < kept[-1] < 1.05 * mean
    assert variation(lengths.fixed(5), lengths.fixed(6)).reserved(11.0, 1) == 11.0


def test_what_is_kept_is_enough_nearly_always() -> None:
    varies = variation(lengths.uniform(100, 4000), lengths.uniform(50, 450))
    drawn, users = random.Random(1), 16
    kept = users * varies.reserved(2300, users)
    sums = [sum(drawn.randint(100, 4000) + drawn.randint(50, 450) for _ in range(users)) for _ in range(2000)]
    assert sum(total <= kept for total in sums) / len(sums) > 0.95


def test_long_answers_are_in_flight_for_longer() -> None:
    """Of answers of 10 and of 190 tokens, 95 of 100 steps are of the longer: attention looks further back."""
    even, uneven = lengths.fixed(100), lengths.of([10, 190])
    base = Problem(
        model=load_model("qwen3-8b"),
        gpu=load_gpu("a10"),
        host=None,  # type: ignore[arg-type] # not looked at
        runtime=RUNTIMES["paged"],
        prompt=50,
        generate=100,
    )
    looks = [
        replace(base, variation=variation(lengths.fixed(50), each)).mean_share
        * replace(base, variation=variation(lengths.fixed(50), each)).stored_tokens
        for each in (even, uneven)
    ]
    assert looks[0] == pytest.approx(50 + 50)
    assert looks[1] == pytest.approx(50 + (10 * 5 + 190 * 95) / 200)


# ------------------------------------------------------------------ one clock and one count for all of it


@pytest.mark.parametrize("shared", [0, 400])
@pytest.mark.parametrize("speculation", [Speculation(), Speculation(tokens=4, acceptance=0.7)])
@pytest.mark.parametrize("varies", [False, True])
def test_programme_clock_and_count_agree(
    asked: Problem, shared: int, speculation: Speculation, *, varies: bool
) -> None:
    """The planner refuses a plan whose programme and clock disagree, and counts bytes again."""
    spread = variation(lengths.uniform(500, 1500), lengths.uniform(100, 300)) if varies else asked.variation
    problem = replace(asked, shared=shared, speculation=speculation, variation=spread)
    plan = planner.plan(problem)
    audit.check(problem, plan.placement)
    mean = spread.reserved(1200, 8)
    stored = 8 * (mean - shared) + shared
    assert sum(plan.placement.kv.values()) == pytest.approx(stored * problem.model.kv_bytes_per_token)


def test_a_shared_prefix_is_quicker_to_prefill_and_smaller_to_keep(asked: Problem) -> None:
    plain, sharing = planner.plan(asked), planner.plan(replace(asked, shared=800))
    if sharing.steps.prefill_bound == "GPU":
        assert figures(sharing).ttft_alone_s < figures(plain).ttft_alone_s
    assert sum(sharing.placement.kv.values()) < 0.5 * sum(plain.placement.kv.values())
    assert sharing.tokens_s > plain.tokens_s


def test_a_prefix_is_shorter_than_the_prompt(asked: Problem) -> None:
    with pytest.raises(RequestError, match="at least one token of its own"):
        check(replace(asked, shared=1000))


# ------------------------------------------------------------------ windows, sparse attention, states

KINDS = ["gpt-oss-20b", "deepseek-v3.2", "nemotron-3-nano-30b-a3b", "qwen3-8b"]
"""Layers with a window and without, sparse attention over latent vectors, states beside attention, full attention."""


def plain(model: str, prompt: int = 1000, users: int = 4) -> Problem:
    """A question of whose coefficients the host is none."""
    return Problem(
        model=load_model(model),
        gpu=load_gpu("a10"),
        host=None,  # type: ignore[arg-type] # not looked at
        runtime=RUNTIMES["paged"],
        prompt=prompt,
        generate=200,
        batch=users,
    )


@pytest.mark.parametrize("model", KINDS)
def test_what_grows_is_shared_and_what_does_not_is_kept_for_each(model: str) -> None:
    one, sharing = plain(model), replace(plain(model), shared=600)
    saved = one.model.kv_bytes_per_token * 600 * 3 / 4
    assert one.kv_bytes == one.model.cache_bytes(1200)
    assert one.kv_bytes - sharing.kv_bytes == pytest.approx(saved)
    assert sharing.mean_share * sharing.kv_bytes == pytest.approx(one.model.read_bytes(1100))
    assert sharing.prompt_share <= 1.0
    assert 0.0 < sharing.copied_share <= sharing.mean_share


@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("shared", [0, 900])
def test_prefill_looks_at_what_each_token_sees(model: str, shared: int) -> None:
    """Summed token by token, over prompts that are all below or all above what is looked at."""
    problem = replace(plain(model, 6000), shared=shared)
    spread = variation(lengths.of([5000, 7000]), lengths.fixed(200))
    seen = sum(
        cache.score_flop * (min(token, cache.window or token, cache.looks or token))
        for cache in problem.model.caches
        for prompt in (5000, 7000)
        for token in range(shared + 1, prompt + 1)
    )
    scores = [
        each.prefill_flop - each.computed * each.model.flop_per_token
        for each in (problem, replace(problem, variation=spread))
    ]
    assert scores[1] == pytest.approx(seen / 2, rel=2e-3)
    assert scores[0] == pytest.approx(
        problem.model.prefill_attention_flop(6000) - problem.model.prefill_attention_flop(shared)
    )


def test_two_lengths_stand_for_all() -> None:
    for found in (lengths.uniform(100, 4000), lengths.of([10] * 99 + [5000])):
        two = variation(found, lengths.fixed(1)).prompts(found.mean)
        assert min(length for length, _ in two) >= 0.0
        assert sum(share for _, share in two) == pytest.approx(1.0)
        assert sum(share * length for length, share in two) == pytest.approx(found.mean)
        assert sum(share * length**2 for length, share in two) == pytest.approx(found.square)


@pytest.mark.parametrize("model", ["gpt-oss-20b", "nemotron-3-nano-30b-a3b"])
@pytest.mark.parametrize("runtime", list(RUNTIMES))
def test_programme_clock_and_count_agree_on_layers_of_all_kinds(liu_a: Host, model: str, runtime: str) -> None:
    spread = variation(lengths.uniform(500, 1500), lengths.uniform(100, 300))
    base = replace(plain(model), runtime=RUNTIMES[runtime].on(liu_a.cores), host=liu_a, shared=400, variation=spread)
    problem = replace(base, model=base.model.with_weight_bits(4), speculation=Speculation(tokens=2, acceptance=0.5))
    audit.check(problem, planner.plan(problem).placement)


# ------------------------------------------------------------------ speculation


def test_expected_tokens_are_the_published_sum() -> None:
    for tokens, accepted in ((1, 0.5), (4, 0.7), (8, 0.9)):
        expected = (1 - accepted ** (tokens + 1)) / (1 - accepted)
        assert Speculation(tokens=tokens, acceptance=accepted).expected == pytest.approx(expected)
    assert Speculation(tokens=4, acceptance=1.0).expected == 5


def test_drafts_pay_where_they_are_accepted_and_weights_are_what_a_step_waits_for(asked: Problem) -> None:
    one = replace(asked, batch=1)
    plain, rejected, accepted = (
        planner.plan(replace(one, speculation=Speculation(tokens=4 if share is not None else 0, acceptance=share or 0)))
        for share in (None, 0.0, 0.8)
    )
    assert rejected.tokens_s <= plain.tokens_s * (1 + 1e-6)
    assert accepted.tokens_s > rejected.tokens_s
    if not asked.runtime.cpu_weights:
        assert accepted.tokens_s > plain.tokens_s


def test_a_model_that_drafts_takes_memory_and_time(asked: Problem) -> None:
    free = Speculation(tokens=4, acceptance=0.8)
    drafted = replace(free, draft=load_model("qwen3-8b").with_weight_bits(4.5))
    without, with_it = (planner.plan(replace(asked, speculation=each)) for each in (free, drafted))
    assert with_it.tokens_s < without.tokens_s
    assert with_it.held[0].buffers > without.held[0].buffers + drafted.draft_bytes * 0.9


def test_a_draft_that_leaves_no_room_is_a_no(asked: Problem) -> None:
    huge = Speculation(tokens=4, acceptance=0.8, draft=load_model("qwen3-32b"))
    with pytest.raises(PlacementError):
        planner.plan(replace(asked, speculation=huge))


@pytest.mark.parametrize("text", ["4", "0:0.5", "4:2", "4:-1", "x:0.5", "100:0.5", "4:nan"])
def test_what_is_no_speculation_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="is no speculation"):
        speculation_of(text)


def test_a_draft_alone_says_nothing() -> None:
    with pytest.raises(RequestError, match="add for example --speculative"):
        speculation_of(None, load_model("qwen3-8b"))
