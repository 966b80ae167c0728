"""Tierloom: where should each piece of my data live, and how fast will my program then run?

Three nouns (:class:`Machine`, :class:`Profile`, :class:`Plan`) and things to do with them: :func:`machine`
and :func:`profile` load one by name, :func:`measure` and :func:`record` make one here; :func:`plan` compares
the policies that could place a program's data, :func:`predict` answers for one placement, :func:`run` runs a
program under a plan, :func:`simulate` lets its pages move, :func:`sweep` asks thousands of such questions.
:func:`expand` gives a GPU more memory, :func:`validate` holds predictions against runs here, :func:`diff` says what
changed, :func:`calibrate` measures what moving pages costs. The rooms ``offload`` (language models), ``capacity``
(data that does not fit) and ``pmem`` (data that survives) are loaded when they are asked for, as all of this is.
Nouns and answers are tables: a notebook shows them, ``.to_polars()`` and ``.to_pandas()`` hand them on, and
``.charts()`` draws what a report would; :func:`charts` does so for documents.
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

import importlib
from typing import TYPE_CHECKING

from tierloom.errors import TierloomError

if TYPE_CHECKING:
    from tierloom import capacity, offload, pmem
    from tierloom.differences import diff
    from tierloom.exporters import emit
    from tierloom.gpu_expansion import expand
    from tierloom.machine_formats import Imported, import_machine
    from tierloom.measurement import Measured, measure
    from tierloom.migration_simulator import Simulation, simulate, simulate_trace
    from tierloom.nouns import Curve, Machine, Plan, Profile, Workload
    from tierloom.page_costs import calibrate
    from tierloom.plan_runner import apply, run
    from tierloom.policy_search import Comparison, Prediction, plan
    from tierloom.prediction import machine, predict, profile
    from tierloom.profiler import Recorded, import_perf, record
    from tierloom.recordings import analyse
    from tierloom.report.notebook import Chart, Charts, charts
    from tierloom.sweeps import Study, Sweep, sweep
    from tierloom.validation import validate

__all__ = [
    "Chart",
    "Charts",
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
    "apply",
    "calibrate",
    "capacity",
    "charts",
    "diff",
    "emit",
    "expand",
    "import_machine",
    "import_perf",
    "machine",
    "measure",
    "offload",
    "plan",
    "pmem",
    "predict",
    "profile",
    "record",
    "run",
    "simulate",
    "simulate_trace",
    "sweep",
    "validate",
]

__version__ = "0.1.0"
"""That of ``pyproject.toml``: asking what is installed for it takes longer than starting Python."""

HOMES = {
    "prediction": ("machine", "predict", "profile"),
    "differences": ("diff",),
    "exporters": ("emit",),
    "gpu_expansion": ("expand",),
    "recordings": ("analyse",),
    "measurement": ("Measured", "measure"),
    "nouns": ("Curve", "Machine", "Plan", "Profile", "Workload"),
    "policy_search": ("Comparison", "Prediction", "plan"),
    "profiler": ("Recorded", "import_perf", "record"),
    "plan_runner": ("apply", "run"),
    "page_costs": ("calibrate",),
    "migration_simulator": ("Simulation", "simulate", "simulate_trace"),
    "sweeps": ("Study", "Sweep", "sweep"),
    "machine_formats": ("Imported", "import_machine"),
    "report.notebook": ("Chart", "Charts", "charts"),
    "validation": ("validate",),
}
"""Modules by what they offer here, as the type checker is told above. One is loaded when it is first asked for: all of
them take longer than a short program that somebody profiles."""

ROOMS = ("capacity", "offload", "pmem")
"""Modules that are part of the API as they are, loaded as late."""


def __getattr__(name: str) -> object:
    """Loads the module of a name when it is asked for."""
    if name in ROOMS:
        return importlib.import_module(f"tierloom.{name}")
    from tierloom.on_demand import attribute

    return attribute(__name__, HOMES, name)


def __dir__() -> list[str]:
    """What there is to complete, loaded or not."""
    return sorted({*globals(), *__all__})
