"""Tierloom: where should each piece of my data live, and how fast will my program then run?

Three nouns (:class:`Machine`, :class:`Profile`, :class:`Plan`) and things to do with them:
:func:`measure` this machine, :func:`record` a program, :func:`compare` the policies that could place
its data, :func:`predict` one placement, :func:`run` a program under a plan,
:func:`simulate` what happens when its pages move, :func:`sweep` over thousands of such questions.
What can go wrong is in ``tierloom.errors``.

Example:
    >>> import tierloom
    >>> profile = tierloom.Profile.load("mg-e")
    >>> machine = tierloom.Machine.load("liu-a")
    >>> answer = tierloom.compare(profile, machine, threads=32, fast_memory="64GiB")
    >>> answer.chosen["policy"]
    'tierloom'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.emitting import emit
from tierloom.errors import TierloomError
from tierloom.measuring import Measured, measure
from tierloom.nouns import Curve, Machine, Plan, Profile
from tierloom.planning import Comparison, compare, predict
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
    "Profile",
    "Recorded",
    "Simulation",
    "Study",
    "Sweep",
    "TierloomError",
    "Workload",
    "compare",
    "emit",
    "import_machine",
    "import_perf",
    "measure",
    "predict",
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
