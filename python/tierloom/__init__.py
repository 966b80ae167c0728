"""Tierloom: where should each piece of my data live, and how fast will my program then run?

Three nouns (:class:`Machine`, :class:`Profile`, :class:`Plan`) and things to do with them: :func:`machine`
and :func:`profile` load one by name, :func:`measure` and :func:`record` make one here; :func:`plan` compares
the policies that could place a program's data, :func:`predict` answers for one placement, :func:`run` runs a
program under a plan, :func:`simulate` lets its pages move, :func:`sweep` asks thousands of such questions.
Nouns and answers are tables: a notebook shows them, ``.to_polars()`` and ``.to_pandas()`` hand them on.
What can go wrong is in ``tierloom.errors``.

Example:
    >>> import tierloom
    >>> answer = tierloom.plan("mg-e", "liu-a", threads=32, fast_memory="64GiB")
    >>> answer.chosen["policy"]
    'tierloom'
    >>> answer.plan()
    <Plan of mg-e for liu-a: 3 rules>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.asking import machine, predict, profile
from tierloom.emitting import emit
from tierloom.errors import TierloomError
from tierloom.kept import analyse
from tierloom.measuring import Measured, measure
from tierloom.nouns import Curve, Machine, Plan, Profile
from tierloom.planning import Comparison, Prediction, plan
from tierloom.recording import Recorded, import_perf, record, run
from tierloom.simulating import Simulation, Workload, simulate, simulate_trace
from tierloom.topology import Imported, import_machine

if TYPE_CHECKING:
    from tierloom.study import Study, Sweep, sweep

__all__ = [
    "Comparison",
    "Curve",
    "Imported",
    "Machine",
    "Measured",
    "Plan",
    "Prediction",
    "Profile",
    "Recorded",
    "Simulation",
    "Study",
    "Sweep",
    "TierloomError",
    "Workload",
    "analyse",
    "emit",
    "import_machine",
    "import_perf",
    "machine",
    "measure",
    "plan",
    "predict",
    "profile",
    "record",
    "run",
    "simulate",
    "simulate_trace",
    "sweep",
]


def __getattr__(name: str) -> object:
    """Loads sweeps when they are asked for: no verb but one needs them."""
    if name in {"Study", "Sweep", "sweep"}:
        from tierloom import study

        return getattr(study, name)
    message = f"module `tierloom` has no attribute `{name}`"
    raise AttributeError(message)
