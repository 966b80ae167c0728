"""A plan in the words of other tools, for people who cannot preload: a script or C to paste.

``numactl`` knows one policy for a whole program, so it is given the split by bytes and told object by
object what is lost; ``libnuma`` and ``hwloc`` become one C function an object, to be called where the
program allocates it. Nothing is promised that the tool cannot do: the rest stands there as comments.
"""

from __future__ import annotations

from tierloom.arguments import instance
from tierloom.errors import RequestError
from tierloom.exporters import hwloc, libnuma, numactl
from tierloom.exporters.steps import steps_of
from tierloom.nouns import Plan

FORMS = {"numactl": numactl.write, "libnuma": libnuma.write, "hwloc": hwloc.write}


def emit(plan: Plan, form: str) -> str:
    """The plan as text of a shell script (``numactl``) or of a C file (``libnuma``, ``hwloc``).

    Raises:
        RequestError: There is no such form.

    Example:
        >>> import tierloom
        >>> plan = tierloom.plan("mg-e", "liu-a", threads=32).plan()
        >>> emit(plan, "libnuma").count("mbind") > 0
        True
    """
    instance(Plan, "give a plan, such as tierloom.plan(…).plan() or Plan.load(path)")("plan", plan)
    if not isinstance(form, str) or form not in FORMS:
        message = f"there is no form `{form}`\nhint: use one of: {', '.join(FORMS)}"
        raise RequestError(message)
    return FORMS[form](plan.data, steps_of(plan.data))
