"""Answers that no verb prints in a test, as it would print them."""

CLAIMS = [
    {
        "id": "liu24.fig9",
        "source": "liu24",
        "kind": "prediction",
        "published": 1.4,
        "ours": 1.33,
        "band": [1.2, 1.6],
        "verdict": "in band",
        "why": "",
    },
    {
        "id": "sun23.t2",
        "source": "sun23",
        "kind": "prediction",
        "published": 2.0,
        "ours": 3.1,
        "band": [1.8, 2.2],
        "verdict": "missed",
        "why": "prefetching <is> not modelled",
    },
    {"id": "sun23.t1", "source": "sun23", "kind": "input", "published": {"ns": 85}, "ours": None, "verdict": "input"},
]


VALIDATED = {
    "command": ["./app", "big"],
    "told": None,
    "threads": 4,
    "profiled_threads": 4,
    "neighbours_gb_s": 0.0,
    "measured_s": [0.9, 1.0, 1.1],
    "placement": "local",
    "ablated": None,
    "repeat": 0.1,
    "others": 0.0,
    "elsewhere": None,
    "notes": [],
    "predicted_s": 1.05,
    "low_s": 0.95,
    "high_s": 1.15,
    "error": 0.05,
    "inside": True,
    "modelled_s": 2.0,
    "residual": 1.0,
}
"""A program that `validate` ran."""

CHANGES = [
    {
        "where": "object u",
        "what": "waits, share",
        "a": 0.5,
        "b": 0.25,
        "range_a": [0.48, 0.52],
        "range_b": [0.23, 0.27],
        "relative": -0.5,
        "verdict": "changed",
    },
    {
        "where": "object w",
        "what": "size, bytes",
        "a": None,
        "b": 4096.0,
        "range_a": None,
        "range_b": None,
        "relative": None,
        "verdict": "only in B",
    },
]


RESIDENCY = {
    "objects": 1,
    "bytes": 4 * 2**20,
    "looked": 1000,
    "absent": 200,
    "elsewhere": 200,
    "stale_s": 0.0,
    "by_node": {"0": 3 * 2**20, "1": 2**20},
}
RULE = {
    "object": "u",
    "held": True,
    "ranges": 2,
    "bytes": 4 * 2**20,
    "how": {"policy": 1, "stripes": 1},
    "locked": 0,
    "asked": {"0": 0.5, "1": 0.5},
    "residency": RESIDENCY,
    "moved_bytes": 0,
    "problems": [],
}
NOWHERE = {**RESIDENCY, "looked": 0, "absent": 0, "elsewhere": 0, "by_node": {}}
NEVER = {**RULE, "object": "never", "held": False, "ranges": 0, "residency": NOWHERE}
RUN = {
    "exit_code": 3,
    "wall_s": 2.5,
    "cpu_s": 5.0,
    "nodes": [0, 1],
    "memories": [],
    "phases": [],
    "counters": {"pgmigrate_success": 12},
    "warnings": [{"kind": "short", "text": "The run was short."}],
    "rules": [RULE, NEVER],
}

STUDY = """
title = "How far?"
verb = "predict"
[axes]
threads = [1, 2]
"place.*.cxl" = [0.0, 0.5]
"""
