"""What can be swept: each verb as a function from a point's parameters to one row of results.

A row is flat: what varies by memory or policy has that name in its key. Parameters are named as on the
command line, with underscores. ``nouns`` are parameters that name a file or an entry of the catalog: they
are read once, before the study runs, and travel to the workers, which need none of the files. Families
are parameters with a name of their own behind a dot, such as ``scale.cxl.idle``.

Adding a verb: a function in a file beside this one, and one entry in the list below.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tierloom.readers import meant
from tierloom.sweeps import offload_rows, placement_rows, simulation_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tierloom.sweeps.rows import Row


@dataclass(frozen=True)
class Verb:
    """One verb.

    Attributes:
        name: As on the command line.
        call: From parameters to a row.
        nouns: By parameter, how what it names is read.
        objective: Column that a summary looks at, and what is sought in it.
        families: Parameters of ``call`` that take a mapping, by the prefix of its keys.
        always: Nouns that a point has even where the study names none.
        policies: Parameter that may name policies of the user's own: results rest on their text, and workers get it.
    """

    name: str
    call: Callable[..., Row]
    nouns: Mapping[str, Callable[[str], object]]
    objective: tuple[str, str]
    families: tuple[str, ...] = ()
    always: Mapping[str, str] = field(default_factory=dict)
    policies: str | None = None

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What can be set, families apart."""
        found = inspect.signature(self.call).parameters
        return {name: each for name, each in found.items() if name not in self.families}

    def flaws(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Names of parameters that are not known, and those that have to be there and are missing; what to do."""
        given, known = set(names), self.parameters
        for name in sorted(given):
            if name not in known and name.partition(".")[0] not in self._open(name):
                listed = [*known, *(f"{family}.…" for family in self.families)]
                yield f"{name}: `{self.name}` has no such parameter", meant(name, listed)
        for name, each in known.items():
            if each.default is each.empty and name not in self.always and name not in given:
                yield f"{name}: `{self.name}` needs it", "set it in [parameters] or vary it in [axes]"

    def _open(self, name: str) -> tuple[str, ...]:
        return self.families if "." in name else ()

    def __call__(self, parameters: Mapping[str, Any]) -> Row:
        """The row of one point; `parameters` holds nouns as objects."""
        plain = {name: value for name, value in parameters.items() if "." not in name}
        grouped: dict[str, dict[str, Any]] = {family: {} for family in self.families}
        for name, value in parameters.items():
            family, dot, rest = name.partition(".")
            if dot:
                grouped[family][rest] = value
        return self.call(**plain, **grouped)


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("predict", placement_rows.predict_row, placement_rows.NOUNS, ("time_s", "minimize"), ("place", "scale")),
        Verb(
            "plan",
            placement_rows.plan_row,
            placement_rows.NOUNS,
            ("time_s", "minimize"),
            ("scale",),
            policies="policies",
        ),
        Verb(
            "simulate",
            simulation_rows.simulate_row,
            simulation_rows.SIMULATED,
            ("time_s", "minimize"),
            ("knob", "scale"),
            policies="policy",
        ),
        Verb(
            "expand",
            simulation_rows.expand_row,
            simulation_rows.EXPANDED,
            ("time_s", "minimize"),
            always=simulation_rows.OWN_SET,
        ),
        Verb("offload infer", offload_rows.infer_row, offload_rows.NOUNS, ("tokens_s", "maximize"), ("scale",)),
        Verb("offload train", offload_rows.train_row, offload_rows.NOUNS, ("tokens_s", "maximize"), ("scale",)),
        Verb("offload serve", offload_rows.serve_row, offload_rows.NOUNS, ("mean_s", "minimize"), ("scale",)),
        Verb("offload cpu", offload_rows.cpu_row, offload_rows.NOUNS, ("tokens_s", "maximize"), ("scale",)),
    )
}
"""By name, in the order of the documentation."""
