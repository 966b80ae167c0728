"""Many runs at once: a study file says what varies, workers compute, a Parquet file holds what came out.

In the order of the flow: ``studies`` (with ``axes``) reads the file, ``points`` makes points of it,
``keys`` gives each an address by content, ``store`` keeps what was computed, ``clusters`` hands batches to
workers, ``computing`` is what these do, with a function a verb in ``placing``, ``moving``
and ``offloading``; ``running`` drives, ``results`` writes the table.
"""

from tierloom.sweeps.results import Sweep
from tierloom.sweeps.studies import Study
from tierloom.sweeps.study_runner import Progress, sweep

__all__ = ["Progress", "Study", "Sweep", "sweep"]
