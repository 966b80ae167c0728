"""A plan: rules that say which object goes where."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import arguments, catalog, outputs
from tierloom.columns import Column, Row
from tierloom.errors import PlanError
from tierloom.notebook_tables import Charted, Tabular

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.schema import Action, PlanDoc

FIRST_TOUCH = "first_touch"
"""The action of an object that is left to the kernel."""


RULES = (
    *(Column("object", "object"), Column("size_bytes", "size", "bytes")),
    Column("place", "asked of the kernel", "code", "key"),
)


class Plan(Charted, Tabular):
    """Rules that say which object goes where; a person can read and edit its file.

    Example:
        >>> import tierloom
        >>> plan = tierloom.plan("cg-e", "liu-a", nodes=["ldram", "cxl"], policies=["bind:cxl"]).plan()
        >>> plan.rows()
        [{'object': '*', 'size_bytes': None, 'place': 'bind cxl'}]
    """

    def __init__(self, text: str, file: str = "plan") -> None:
        self.text = arguments.text(file, text)
        self.core = _core.Plan.from_toml(text, file)

    def __reduce__(self) -> tuple[type[Plan], tuple[str]]:
        return Plan, (self.text,)

    @cached_property
    def data(self) -> PlanDoc:
        """What the file says, as a document."""
        return cast("PlanDoc", self.core.document())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Reads a plan from its TOML file.

        Raises:
            PlanError: The file cannot be read or does not hold a plan.
        """
        text = catalog.plan_text(arguments.path("plan", path, PlanError))
        return cls(text.content, text.file)

    def save(self, path: str | Path) -> None:
        """Writes the file that :meth:`load` reads.

        Raises:
            RequestError: It cannot be written there.
            OutputError: There is no room for it.
        """
        outputs.write(Path(arguments.path("path", path)), self.text)

    @property
    def columns(self) -> Sequence[Column]:
        """Of a rule."""
        return RULES

    def told(self) -> list[Row]:
        """A row a rule, and one for everything that no rule names: what is asked of the kernel."""
        named: list[Row] = [
            {"object": rule["object"], "size_bytes": rule["size_bytes"], "place": action_text(rule["place"])}
            for rule in self.data["rules"]
        ]
        return [*named, {"object": "*", "size_bytes": None, "place": action_text(self.data["default"])}]

    def __repr__(self) -> str:
        return f"<Plan of {self.data['profile']} for {self.data['machine']}: {len(self.data['rules'])} rules>"


def action_text(action: Action) -> str:
    """What is asked of the kernel, in words.

    Example:
        >>> action_text({"weighted": {"ldram": 3, "cxl": 1}})
        'weighted interleave ldram 3 : cxl 1'
    """
    if isinstance(action, str):
        return action.replace("_", " ")
    (verb, nodes), *_ = action.items()
    if isinstance(nodes, dict):
        return "weighted interleave " + " : ".join(f"{node} {weight}" for node, weight in nodes.items())
    return f"{verb} {nodes if isinstance(nodes, str) else ', '.join(nodes)}"
