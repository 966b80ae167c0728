"""What a plan asks, object by object, with node numbers in place of names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.schema import Action, PlanDoc, RuleDoc

MODES = ("bind", "prefer", "prefer_many", "interleave", "weighted")
"""The kernel's policies, as plans spell them."""


@dataclass(frozen=True)
class Step:
    """One object and its policy."""

    object: str
    identifier: str
    """The object's name as a name in C, of its own."""
    size_bytes: int
    found: str
    """How to find it in the program, for people."""
    mode: str
    """``first_touch``, one of `MODES`, or a policy that is newer than this file."""
    weights: dict[int, int]
    """Pages by node number; 1 each unless weighted."""
    words: str
    """The policy, for people."""
    lost: tuple[str, ...] = ()
    """What else the plan asks of the object and other tools do not do by themselves."""

    @property
    def known(self) -> bool:
        """Whether the policy is one of those that other tools have."""
        return self.mode in MODES and bool(self.weights)


def steps_of(plan: PlanDoc) -> list[Step]:
    """The plan's rules, and at the end its default."""
    taken: set[str] = set()
    rules = [_rule(plan, rule, taken) for rule in plan["rules"]]
    mode, weights = _policy(plan["nodes"], plan["default"])
    words = _words(plan["nodes"], mode, weights)
    rest = Step("default", _identifier("default", taken), 0, "whatever no rule selects", mode, weights, words)
    return [*rules, rest]


def _rule(plan: PlanDoc, rule: RuleDoc, taken: set[str]) -> Step:
    mode, weights = _policy(plan["nodes"], rule["place"])
    words = _words(plan["nodes"], mode, weights)
    name = rule["object"]
    return Step(
        name, _identifier(name, taken), rule["size_bytes"], _found(rule), mode, weights, words, _lost(plan, rule)
    )


def _lost(plan: PlanDoc, rule: RuleDoc) -> tuple[str, ...]:
    """Options and phases, which only a run under the plan has."""
    options = cast("dict[str, Any]", rule.get("options", {}))
    phases = cast("list[dict[str, Any]]", plan.get("phases", []))
    moved = [phase["name"] for phase in phases if any(move["object"] == rule["object"] for move in phase["moves"])]
    lost = []
    if options.get("hold"):
        lost.append("hold it against demotion: mlock2(start, bytes, MLOCK_ONFAULT)")
    if options.get("hint_faults") is not None:
        lost.append(f"hint faults {'on' if options['hint_faults'] else 'off'}")
    if moved:
        lost.append(f"it moves in phase {', '.join(moved)}")
    return tuple(lost)


def _policy(nodes: list[str], place: Action) -> tuple[str, dict[int, int]]:
    if isinstance(place, str):
        return place, {}
    mode, value = next(iter(place.items()))
    return mode, _weights(nodes, value)


def _weights(nodes: list[str], value: Any) -> dict[int, int]:  # noqa: ANN401 (a name, names, or weights by name)
    by_name = value if isinstance(value, dict) else dict.fromkeys([value] if isinstance(value, str) else value, 1)
    known = {name: weight for name, weight in by_name.items() if name in nodes and isinstance(weight, int)}
    return {nodes.index(name): weight for name, weight in sorted(known.items(), key=lambda pair: nodes.index(pair[0]))}


def _words(nodes: list[str], mode: str, weights: dict[int, int]) -> str:
    if not weights:
        return mode.replace("_", " ")
    parts = [
        f"{nodes[node]} (node {node})" + (f" x {weight}" if mode == "weighted" else "")
        for node, weight in weights.items()
    ]
    return f"{mode} {', '.join(parts)}"


def _found(rule: RuleDoc) -> str:
    how, value = next(iter(rule["select"].items()))
    match how:
        case "stack":
            return "allocated at " + " < ".join(value)
        case "symbol":
            return f"static array {value}"
        case "file":
            return f"mapping of {value}"
        case "size_at_least":
            return f"every allocation of at least {bytes_text(value)}"
        case _:
            return "described on paper: where your program allocates it"


def _identifier(name: str, taken: set[str]) -> str:
    """A C identifier that no other object has."""
    base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "object"
    free, number = base, 1
    while free in taken:
        number += 1
        free = f"{base}_{number}"
    taken.add(free)
    return free


def comment(text: str) -> str:
    """Text that ends no comment and stays on its line."""
    return re.sub(r"[\x00-\x1f\x7f\u2028\u2029\\]", " ", text).replace("*/", "* /")


def title(plan: PlanDoc) -> str:
    """Which plan it is."""
    return comment(f"Plan for {plan['profile']} on {plan['machine']} (policy {plan['policy']})")
