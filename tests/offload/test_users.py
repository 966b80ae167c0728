"""Goals: what each user gets, how many users limits allow, and the table over numbers of users."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from tierloom import offload
from tierloom.errors import PlacementError, RequestError
from tierloom.offload import user_search
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.goals import goal_of, seconds_of
from tierloom.offload.host import Host
from tierloom.offload.planner import TIER_AWARE
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import RUNTIMES
from tierloom.offload.user_figures import UserFigures, figures
from tierloom.offload.user_search import UNLIMITED, Limits, Served, exactly, knee, most_users, served, table

ASKED = [
    ("qwen3-32b", "a10", "resident"),
    ("qwen3-30b-a3b", "a10", "resident"),
    ("llama-3.1-8b", "a10", "paged"),
    ("llama-3.1-70b", "a10", "flexgen"),
]


def question(host: Host, model: str, gpu: str, runtime: str) -> Problem:
    return Problem(
        model=load_model(model),
        gpu=load_gpu(gpu),
        host=host,
        runtime=RUNTIMES[runtime].on(host.cores),
        prompt=1024,
        generate=128,
    )


@pytest.fixture(params=ASKED, ids="-".join)
def asked(request: pytest.FixtureRequest, liu_a: Host) -> Problem:
    return question(liu_a, *request.param)


@pytest.fixture
def desk(liu_a: Host) -> Problem:
    return question(liu_a, "qwen3-32b", "a10", "resident")


def found(problem: Problem, users: int) -> Served:
    there = served(problem, users, TIER_AWARE)
    assert there
    return there


def test_one_user_waits_for_nobody(asked: Problem) -> None:
    alone = found(asked, 1)
    steps, each = alone.plan.steps, alone.figures
    assert each.ttft_s == each.ttft_alone_s == each.ttft_last_s == pytest.approx(steps.prefill_s)
    assert each.tokens_s == pytest.approx(1.0 / steps.decode_s)
    assert each.total_tokens_s == pytest.approx(128 / (steps.prefill_s + 127 * steps.decode_s))


def test_each_gets_less_and_waits_longer_the_more_there_are(asked: Problem) -> None:
    rows = [found(asked, users).figures for users in (1, 2, 3, 4, 6, 8, 12, 16)]
    for fewer, more in itertools.pairwise(rows):
        assert more.tokens_s <= fewer.tokens_s * (1 + 1e-6)
        assert more.ttft_s >= fewer.ttft_s * (1 - 1e-6)
        assert more.ttft_last_s >= fewer.ttft_last_s * (1 - 1e-6)


def test_a_wait_is_between_alone_and_all_at_once(asked: Problem) -> None:
    for users in (1, 4, 16):
        each = found(asked, users)
        half_a_step = each.plan.steps.decode_s / 2
        assert each.figures.ttft_alone_s <= each.figures.ttft_s <= each.figures.ttft_last_s + half_a_step


def test_users_together_get_the_total_while_they_get_anything(asked: Problem) -> None:
    """A user's answer and prefill fill the time of a block: nothing is counted twice and nothing is lost."""
    for users in (1, 4, 16):
        each = found(asked, users)
        steps, prefill = each.plan.steps, each.plan.steps.prefill_s
        own = prefill / users if asked.runtime.continuous else prefill
        answer_s = 127 / each.figures.tokens_s
        assert own + answer_s == pytest.approx(steps.total_s)


def test_prompts_are_prefilled_one_by_one_or_together(desk: Problem) -> None:
    in_turn, block = found(desk, 4), found(replace(desk, runtime=RUNTIMES["flexgen"]), 4)
    assert in_turn.figures.ttft_last_s == pytest.approx(4 * in_turn.figures.ttft_alone_s)
    assert block.figures.ttft_s == block.plan.steps.prefill_s


def test_the_most_users_meet_the_limits_and_one_more_does_not(desk: Problem) -> None:
    limits = Limits(ttft_s=2.0, tokens_s=1.0)
    most = most_users(desk, limits, TIER_AWARE)
    assert not limits.missed(most.figures)
    assert limits.missed(found(desk, most.figures.users + 1).figures)


@pytest.mark.parametrize("limits", [Limits(ttft_s=2.0), Limits(tokens_s=0.5), Limits(ttft_s=1.5, tokens_s=0.2)])
def test_the_answer_meets_the_limits(asked: Problem, limits: Limits) -> None:
    if limits.missed(found(asked, 1).figures):
        with pytest.raises(PlacementError, match="no number of users meets it"):
            most_users(asked, limits, TIER_AWARE)
    else:
        assert not limits.missed(most_users(asked, limits, TIER_AWARE).figures)


def test_limits_that_nobody_meets_say_why_and_what_the_best_is(desk: Problem) -> None:
    with pytest.raises(PlacementError, match=r"because even with one user .* not 1000\nhint: the best is") as error:
        most_users(desk, Limits(tokens_s=1000.0), TIER_AWARE)
    assert error.value.exit_code == 1


def test_too_many_users_for_a_limit_are_told_how_many_can_have_it(desk: Problem) -> None:
    limits = Limits(tokens_s=1.0)
    most = most_users(desk, limits, TIER_AWARE).figures.users
    with pytest.raises(PlacementError, match=rf"hint: {most} users can have that"):
        exactly(desk, most + 3, limits, TIER_AWARE)
    assert exactly(desk, most, limits, TIER_AWARE).figures.users == most
    assert exactly(desk, most + 3, UNLIMITED, TIER_AWARE).figures.users == most + 3


def test_the_table_goes_from_one_to_as_many_as_fit(liu_a: Host) -> None:
    problem = question(liu_a, "llama-3.1-8b", "a10", "paged")
    users = [row.figures.users for row in table(problem, TIER_AWARE)]
    assert users[:3] == [1, 4, 16]
    assert served(problem, users[-1], TIER_AWARE)
    assert not served(problem, users[-1] + 1, TIER_AWARE)


def row(users: int, total: float) -> Served:
    return Served(
        plan=None,  # type: ignore[arg-type] # the knee looks at figures only
        figures=UserFigures(
            users=users,
            tokens_s=1.0,
            quiet_tokens_s=1.0,
            ttft_alone_s=1.0,
            ttft_s=1.0,
            ttft_last_s=1.0,
            total_tokens_s=total,
        ),
    )


@pytest.mark.parametrize(
    ("totals", "at"),
    [
        ([1.0, 4.0, 16.0], 2),
        ([1.0, 1.45, 2.0], 1),
        ([1.0, 1.43, 100.0], 0),
        ([1.0, 0.5], 0),
        ([1.0], 0),
    ],
)
def test_the_knee_is_the_last_row_that_gains_a_fifth_for_twice_the_users(totals: list[float], at: int) -> None:
    assert math.isclose(1.2**2, 1.44), "four times the users are two doublings"
    assert knee([row(4**index, total) for index, total in enumerate(totals)]) == at


def test_throughput_is_never_below_that_of_a_number_of_users(desk: Problem) -> None:
    most = user_search.throughput(desk, TIER_AWARE).figures
    for users in (1, 16, 64):
        assert most.total_tokens_s >= found(desk, users).figures.total_tokens_s * (1 - 1e-3)


def test_figures_of_a_plan_are_those_of_its_block(problem: Problem) -> None:
    plan = user_search.throughput(problem, TIER_AWARE).plan
    assert figures(plan).users == plan.placement.batch == 60
    assert figures(plan).total_tokens_s == plan.tokens_s


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2.0), ("500ms", 0.5), (1.5, 1.5), ("3", 3.0)])
def test_times_are_read(text: str | float, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["soon", "-1s", "0", "ms", "nan", "inf"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="is no time"):
        seconds_of(text)


def test_goals_that_exclude_each_other_are_refused() -> None:
    for words in ({"users": 4}, {"users": None, "ttft": "2s"}, {"users": None, "tokens_per_s": 3.0}):
        with pytest.raises(RequestError, match="leave out --throughput"):
            goal_of(**{"users": None, "ttft": None, "tokens_per_s": None, **words}, throughput=True)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="they are the same"):
        offload.infer("qwen3-32b", "a10", "liu-a-llm", users=2, batch=2)


def test_without_a_goal_the_plan_is_that_of_the_knee() -> None:
    answer = offload.infer("llama-3.1-8b", "a10", "liu-a-llm", compare=())
    knees = [row for row in answer.data["table"] if row["knee"]]
    assert len(knees) == 1
    assert knees[0]["users"] == answer.data["batch"] == answer.data["users"]["users"]
    assert answer.data["goal"]["kind"] == "table"
    assert answer.data["answer"].startswith("Good for")
    assert answer.data["tool"] == "vllm"


def test_python_takes_the_words_of_the_command_line() -> None:
    words = {"ttft": "10s", "tokens_per_s": 2.0, "prompt": "500..1500", "answer": "128", "compare": ()}
    answer = offload.infer("qwen3-32b", "a10", "liu-a-llm", shared_prefix=100, speculative="3:0.6", **words)  # type: ignore[arg-type]
    assert answer.data["goal"] == {"kind": "limits", "users": None, "ttft_s": 10.0, "tokens_s_user": 2.0}
    assert answer.data["users"]["tokens_s_user"] >= 2.0
    assert answer.data["users"]["ttft_s"] <= 10.0
    assert answer.data["tokens_a_step"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    older = offload.infer("qwen3-32b", "a10", "liu-a-llm", generate=64, batch=2, compare=())
    assert older.data == offload.infer("qwen3-32b", "a10", "liu-a-llm", answer=64, users=2, compare=()).data
