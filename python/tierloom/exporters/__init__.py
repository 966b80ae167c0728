"""A plan in the words of other tools, for people who cannot preload: a script or C to paste.

``numactl`` knows one policy for a whole program, so it is given the split by bytes and told object by
object what is lost; ``libnuma`` and ``hwloc`` become one C function an object, to be called where the
program allocates it. Nothing is promised that the tool cannot do: the rest stands there as comments.
"""

from __future__ import annotations

from typing import Literal

from tierloom.arguments import instance, reads
from tierloom.exporters import hwloc, libnuma, numactl
from tierloom.exporters.steps import steps_of
from tierloom.nouns import Plan

Form = Literal["numactl", "libnuma", "hwloc"]

WRITERS = {"numactl": numactl.write, "libnuma": libnuma.write, "hwloc": hwloc.write}


@reads(plan=instance(Plan, "give a plan, such as tierloom.plan(…).plan() or Plan.load(path)"))
def emit(plan: Plan, form: Form) -> str:
    """The plan as text of another tool.

    Args:
        plan: The plan.
        form: A shell script (``"numactl"``), or C with a function an object (``"libnuma"``, ``"hwloc"``).

    Raises:
        RequestError: There is no such form.

    Example:
        >>> import tierloom
        >>> plan = tierloom.plan("mg-e", "liu-a", threads=32).plan()
        >>> emit(plan, "libnuma").count("mbind") > 0
        True
    """
    return WRITERS[form](plan.data, steps_of(plan.data))
