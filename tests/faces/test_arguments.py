"""What is handed to the functions of the API: taken alike everywhere, or refused by its name; never a traceback."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tierloom
from tierloom import migration_simulator
from tierloom.errors import MachineError, ProfileError, RequestError, TierloomError

NAN = float("nan")


def planned(**asked: object) -> object:
    return tierloom.plan("mg-e", "liu-a", **{"threads": 32, **asked}).brief


def simulated(**asked: object) -> object:
    scanned = tierloom.Workload.synthetic("scan", size="16MiB", seconds=0.1)
    return tierloom.simulate(scanned, "liu-a", "none", **asked).data


def traced(**asked: object) -> object:
    np.save("t.npy", np.arange(1000, dtype="u8") * 64)
    return tierloom.simulate_trace("t.npy", "liu-a", "none", **asked).data


def served(**asked: object) -> object:
    return tierloom.offload.serve("llama-3.1-8b", "a10", "liu-a", sessions=8, context=4096, **asked)


def trained(**asked: object) -> object:
    return tierloom.offload.train("gpt2-4b", "a10", "liu-a", batch=2, compare=(), **asked).data


def ran(**asked: object) -> object:
    return tierloom.run(tierloom.plan("mg-e", "liu-a", threads=32).plan(), ["true"], **asked)


def counted(**asked: object) -> object:
    return tierloom.analyse("no.recording", **asked)


def guessed(key: str, value: object) -> dict[str, dict[str, object]]:
    """Costs, all of them with something else under one key."""
    figure = {"value": 1.0, "kind": "assumed", "source": "us"} | {key: value}
    return dict.fromkeys(migration_simulator.terms()["costs"], figure)


LISTS = ("ldram,cxl", "ldram, cxl", ("ldram", "cxl"), np.array(["ldram", "cxl"]), iter(["ldram", "cxl"]))


@pytest.mark.parametrize("ask", [planned, simulated, traced, served, trained])
@pytest.mark.usefixtures("folder")
def test_names_are_taken_as_text_or_any_list(ask: Callable[..., object]) -> None:
    expected = ask(nodes=["ldram", "cxl"])
    for listed in LISTS[:-1]:
        assert ask(nodes=listed) == expected
    assert ask(nodes=iter(["ldram", "cxl"])) == expected


@pytest.mark.parametrize("ask", [planned, simulated, traced])
@pytest.mark.usefixtures("folder")
def test_amounts_are_taken_as_text_or_any_number(ask: Callable[..., object]) -> None:
    expected = ask(fast_memory="64GiB")
    for amount in (64 * 2**30, np.int64(64 * 2**30), float(64 * 2**30), np.float64(64 * 2**30)):
        assert ask(fast_memory=amount) == expected


@pytest.mark.parametrize("threads", [np.int64(32), np.uint8(32), 32.0, np.float32(32)])
def test_threads_are_any_whole_number(threads: object) -> None:
    assert planned(threads=threads) == planned(threads=32)


WRONG: list[tuple[str, Callable[..., object], dict[str, object]]] = [
    *[("threads", ask, {"threads": each}) for ask in (planned, traced) for each in (-1, 0, 1.5, 10**12, True, "8", [])],
    *[
        ("memory", ask, {"fast_memory": each})
        for ask in (planned, simulated)
        for each in (-1, NAN, 0.5, "64", [], True)
    ],
    *[("nodes", ask, {"nodes": each}) for ask in (planned, served) for each in (3, [1], [None], b"ldram")],
    *[("seed", simulated, {"seed": each}) for each in (-1, 1.5, 2**70, "3", None)],
    *[("knobs", simulated, {"knobs": each}) for each in (3, {"a": "x"}, {1: 1})],
    *[("costs", simulated, {"costs": each}) for each in ({}, 3, "x")],
    ("costs", simulated, {"costs": guessed("kind", "guessed")}),
    ("costs", simulated, {"costs": guessed("source", {1})}),
    *[("watch", ran, {"watch": each}) for each in (5, (1.0,), (1.0, 2.0), ("soon", print), (-1.0, print))],
    *[("hold", ran, {"hold": each}) for each in ("x", 1)],
    *[("name", tierloom.measure, {"name": each}) for each in (3, ["box"])],
    *[("counts", counted, {"counts": each}) for each in (3, [3])],
    *[("socket", planned, {"socket": each}) for each in (3, ["socket0"])],
    *[("cxl.idle=x", planned, {"what_if": [each]}) for each in ("cxl.idle=x.", "cxl.idle=x1..5")],
    *[("mlp", traced, {"mlp": each}) for each in (NAN, 0, "3")],
]


@pytest.mark.parametrize(("named", "ask", "asked"), WRONG)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_meant_is_refused_by_its_name(
    named: str, ask: Callable[..., object], asked: dict[str, object]
) -> None:
    with pytest.raises(RequestError, match=r"\nhint: ") as refused:
        ask(**asked)
    assert named in str(refused.value)


NOTHING = (None, 3, [], b"liu-a", "a\0b", "a" * 5000, "\udc80")


@pytest.mark.parametrize("given", NOTHING, ids=lambda given: repr(given)[:12])
@pytest.mark.parametrize(
    ("load", "error"),
    [
        (tierloom.machine, MachineError),
        (tierloom.profile, ProfileError),
        (tierloom.Machine, RequestError),
        (tierloom.Profile, RequestError),
        (tierloom.Plan, RequestError),
        (tierloom.Plan.load, TierloomError),
        (tierloom.Workload.load, TierloomError),
        (tierloom.Study.load, TierloomError),
        (tierloom.analyse, RequestError),
        (tierloom.import_perf, RequestError),
        (lambda given: tierloom.import_machine(given), TierloomError),
        (lambda given: tierloom.import_machine([given]), TierloomError),
        (lambda given: tierloom.diff(given, "mg-e"), RequestError),
        (lambda given: tierloom.emit(given, "numactl"), RequestError),
        (lambda given: tierloom.run(given, ["true"]), RequestError),
        (lambda given: tierloom.apply(given, given), RequestError),
        (lambda given: tierloom.record(given), RequestError),
        (lambda given: tierloom.validate([given], machine="liu-a"), RequestError),
        (lambda given: tierloom.predict("mg-e", "liu-a", given), RequestError),
        (lambda given: tierloom.expand("vadd", config=given), RequestError),
        (lambda given: tierloom.expand(given), RequestError),
        (lambda given: tierloom.offload.infer(given, "a10", "liu-a"), RequestError),
        (lambda given: tierloom.offload.infer("opt-13b", given, "liu-a"), RequestError),
        (lambda given: tierloom.offload.cpu("llama-7b", given), RequestError),
        (lambda given: tierloom.capacity.load_runs(given), RequestError),
        (lambda given: tierloom.pmem.Pool.open(given), RequestError),
    ],
)
def test_what_no_name_and_no_file_can_be_is_refused(
    load: Callable[[object], object], error: type[Exception], given: object
) -> None:
    with pytest.raises(error, match=r"\nhint: "):
        load(given)


@pytest.mark.parametrize("share", [NAN, -0.1, 1.5, "50%", None])
def test_shares_of_a_placement_are_numbers_up_to_1(share: object) -> None:
    with pytest.raises(RequestError, match=r"place\.u.*\nhint: "):
        tierloom.predict("mg-e", "liu-a", {"u.cxl": share}, threads=32)


def test_a_policy_that_was_not_compared_is_answered_with_those_that_were() -> None:
    answer = tierloom.plan("mg-e", "liu-a", threads=32, policies="local,interleave:ldram+cxl")
    for ask in (answer.policy, answer.plan):
        with pytest.raises(RequestError, match=r"'x' is no policy that was compared\nhint: use one of: local, inter"):
            ask("x")
