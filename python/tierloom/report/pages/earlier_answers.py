"""Answers of the version before, which do not say what they are: known by their keys, and brought up to date."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

SIGNS: dict[str, frozenset[str]] = {
    "machine": frozenset({"sockets", "memories", "paths"}),
    "profile": frozenset({"program", "objects", "phases"}),
    "comparison": frozenset({"policies", "chosen", "frontier"}),
    "plan": frozenset({"rules", "nodes", "predicted"}),
    "run": frozenset({"rules", "wall_s", "counters"}),
    "inference": frozenset({"prefill_pieces_s", "decode_pieces_s", "places"}),
    "training": frozenset({"stage", "host_bytes", "policies"}),
    "serving": frozenset({"session_bytes", "break_even_gb_s", "tiers"}),
    "ratios": frozenset({"ratios", "backends"}),
    "claims": frozenset({"claims"}),
    "difference": frozenset({"changed", "changes"}),
    "validation": frozenset({"rows", "failures", "summary"}),
    "spill-fit": frozenset({"model", "points", "spread"}),
    "purchases": frozenset({"chosen", "purchases", "hits"}),
}
"""Keys by which each kind of document is known; the first that fits. Files of nouns say their version only."""

ANYTHING = "anything"
"""What is nothing that we know."""


def kind_of(data: Data) -> str:
    """What a document is, by its keys; :data:`ANYTHING` when it is nothing that we know."""
    runs = data.get("runs")
    if isinstance(runs, list) and runs and isinstance(runs[0], dict):
        inside = runs[0]
        if {"series", "parts", "policy"} <= inside.keys():
            return "simulation"
        if {"setup", "endpoint", "loads"} <= inside.keys():
            return "expansion"
    return next((kind for kind, signs in SIGNS.items() if signs <= data.keys()), ANYTHING)


def updated(kind: str, data: Data) -> Data:
    """A document as today's version has it: results of policies were under ``outcome``, as ``Ok`` or ``Err``."""
    if kind != "comparison":
        return data
    return {**data, "policies": [_policy(policy) for policy in data["policies"]]}


def _policy(policy: Data) -> Data:
    if "outcome" not in policy:
        return policy
    rest = {key: value for key, value in policy.items() if key != "outcome"}
    outcome = policy["outcome"]
    return {**rest, "prediction": outcome["Ok"]} if "Ok" in outcome else {**rest, "refused": outcome["Err"]}
