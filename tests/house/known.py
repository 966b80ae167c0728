"""What is not yet as the house wants it. Every line here is a debt: a test fails when one is paid and still listed."""

from __future__ import annotations

CIRCLES: dict[str, list[set[str]]] = {
    "expander": [
        {
            "workload/graph.rs",
            "workload/grid.rs",
            "workload/matrix.rs",
            "workload/mesh.rs",
            "workload/mod.rs",
            "workload/tree.rs",
            "workload/vector.rs",
        }
    ],
    "perfdata": [{"cpu_clock.rs", "file.rs", "lib.rs", "memory_samples.rs", "records.rs"}],
    "tiering": [
        {"cohort/lists.rs", "cohort/mod.rs"},
        {"exact/groups.rs", "exact/mod.rs"},
        {"exact/ranks.rs", "exact/source.rs"},
        {"filling.rs", "layout.rs", "workload.rs"},
        {"ours.rs", "request.rs"},
        {
            "policy/alto.rs",
            "policy/autonuma.rs",
            "policy/colloid.rs",
            "policy/damon.rs",
            "policy/hemem.rs",
            "policy/hot_promotion.rs",
            "policy/memtis.rs",
            "policy/mod.rs",
            "policy/mode2.rs",
            "policy/nomad.rs",
            "policy/tpp.rs",
        },
    ],
}
"""Files of a crate that use one another in a circle."""

CROWDED: set[str] = {"expander/src"}
"""Folders with too many files."""

LONG: set[str] = {"binary/src/dataflow/induction.rs"}
"""Files with too many lines."""
