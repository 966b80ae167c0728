"""Data that does not fit: what more memory, DRAM or CXL, does for a job that spills, and what it costs.

`read` and `fit` make a model of a few runs, `mixes` and `choose` buy memory by it; `saving`, `cheapest` and
`shape` answer for clusters and hosts; `findings` holds published cases against ours. The engines (`spill`,
`fit`, `mixes`, `cost`, `fleet`, `skew`, `store`) know no files; `run_files` and `catalog` are the doors to
them, `experiment` is the instrument that measures.

Example:
    >>> fitted = fit(load_runs("duckdb-tpch"))
    >>> fitted.spill.speed_up(256 * 2**20, 1024 * 2**20) > 1.0
    True
"""

from tierloom.capacity.catalog import load_runs
from tierloom.capacity.cost import Rates, Saving, Shape, saving, shape, spare_revenue
from tierloom.capacity.fit import Fit, fit, held_out
from tierloom.capacity.fleet import Fleet, Heat, Layer, cheapest
from tierloom.capacity.mixes import Hits, Mix, Prices, choose, frontier, mixes
from tierloom.capacity.published import findings
from tierloom.capacity.run_files import read
from tierloom.capacity.runs import Run
from tierloom.capacity.spill import Spill

__all__ = [
    "Fit",
    "Fleet",
    "Heat",
    "Hits",
    "Layer",
    "Mix",
    "Prices",
    "Rates",
    "Run",
    "Saving",
    "Shape",
    "Spill",
    "cheapest",
    "choose",
    "findings",
    "fit",
    "frontier",
    "held_out",
    "load_runs",
    "mixes",
    "read",
    "saving",
    "shape",
    "spare_revenue",
]
