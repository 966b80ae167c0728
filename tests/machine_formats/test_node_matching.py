"""A plan for another machine meets recorded machines: which memory is which node, without a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

import tierloom
from tierloom.errors import RequestError
from tierloom.node_match import is_rehearsal, match_nodes, nodes_to_give
from tierloom.nouns import Plan

ONE_SOCKET = """\
/sys/devices/system/node/online = 0-1
/sys/devices/system/node/node0/cpulist = 0-7
/sys/devices/system/node/node1/cpulist =
/sys/devices/system/node/node1/meminfo = Node 1 MemTotal: 2097152 kB
/sys/bus/dax/devices/dax0.0/target_node = 1
"""
"""Node 0 DRAM and node 1 a CXL card, the commonest machine with CXL memory."""

SIZES = "".join(
    f"/sys/devices/system/node/node{node}/meminfo = Node {node} MemTotal: {200 << 20} kB\n" for node in range(3)
)
"""200 GiB on every node, so that the plan's data fit."""


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """Plans for liu-a, whose memories are `rdram`, `ldram` and `cxl` in this order, by what they use."""

    def made(policy: str) -> Plan:
        answer = tierloom.plan("mg-e", "liu-a", threads=32, policies=[policy])
        assert [memory["name"] for memory in answer.plan().data["memories"]] == ["rdram", "ldram", "cxl"]
        return answer.plan()

    return {"two": made("object-interleave:ldram+cxl"), "three": made("interleave:ldram+rdram+cxl")}


def numbers(plan: Plan, root: Path, given: dict[str, int] | None = None, cpus: tuple[int, ...] = ()) -> dict[str, int]:
    return {match["memory"]: match["node"] for match in match_nodes(plan, given, cpus=cpus, root=root)}


def test_hot_data_of_a_plan_for_three_memories_goes_to_dram_and_not_to_the_card(tree, plans: dict[str, Plan]) -> None:
    """By position `ldram` was node 1: the card."""
    root = tree("two-nodes-cxl", SIZES + ONE_SOCKET.replace("2097152", str(200 << 20)))
    found = match_nodes(plans["two"], root=root)
    assert [(match["memory"], match["node"], match["kind"]) for match in found] == [
        ("ldram", 0, "dram"),
        ("cxl", 1, "cxl"),
    ]


def test_a_plan_of_before_the_table_is_matched_by_its_names(tree, plans: dict[str, Plan]) -> None:
    head, *tables = plans["two"].text.split("[[memories]]")
    old = Plan(head + tables[-1][tables[-1].index("[predicted]") :])
    assert "memories" not in old.data
    root = tree("two-nodes-cxl", SIZES + ONE_SOCKET.replace("2097152", str(200 << 20)))
    assert numbers(old, root) == {"ldram": 0, "cxl": 1}


def test_the_nodes_to_give_on_a_machine_without_a_card_make_a_rehearsal(tree, plans: dict[str, Plan]) -> None:
    one = tree("two-nodes-cxl", SIZES + ONE_SOCKET.replace("2097152", str(200 << 20)))
    assert nodes_to_give(plans["two"], root=one) == {}
    assert not is_rehearsal(plans["two"], match_nodes(plans["two"], root=one))
    given = nodes_to_give(plans["three"], root=one)
    assert is_rehearsal(plans["three"], match_nodes(plans["three"], given, root=one))


@pytest.mark.parametrize(("cpus", "near", "far"), [((0, 4), 0, 1), ((3,), 1, 0)])
def test_local_dram_is_that_of_the_socket_that_the_program_runs_on(
    tree, plans: dict[str, Plan], cpus: tuple[int, ...], near: int, far: int
) -> None:
    root = tree("two-nodes-cxl", SIZES)
    assert numbers(plans["three"], root, cpus=cpus) == {"ldram": near, "rdram": far, "cxl": 2}


def test_a_program_on_both_sockets_is_refused_until_somebody_says_what_is_meant(tree, plans: dict[str, Plan]) -> None:
    root = tree("two-nodes-cxl", SIZES)
    with pytest.raises(RequestError, match="may run on several sockets") as refused:
        numbers(plans["three"], root)
    assert "--node rdram=0 --node ldram=1" in str(refused.value)
    assert numbers(plans["three"], root, {"ldram": 1}) == {"ldram": 1, "rdram": 0, "cxl": 2}


def test_memory_that_is_not_there_or_too_small_is_refused(tree, plans: dict[str, Plan]) -> None:
    with pytest.raises(RequestError, match="hint: say which nodes to take: --node rdram=0"):
        numbers(plans["three"], tree("two-nodes-cxl", SIZES + ONE_SOCKET))
    with pytest.raises(RequestError, match="node 1 has 2GiB"):
        numbers(plans["two"], tree("two-nodes-cxl", SIZES + ONE_SOCKET))
    with pytest.raises(RequestError, match="has no node 9"):
        numbers(plans["two"], tree("two-nodes-cxl", ONE_SOCKET), {"cxl": 9})
