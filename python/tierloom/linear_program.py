"""A linear programme with named variables and rows, solved by HiGHS.

The engines of this room say their models in it. It scales what it hands to the solver: bytes and
seconds differ by twelve orders of magnitude, and HiGHS works with absolute tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tierloom.extras import brought_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

Terms = dict[str, float]
"""Coefficients by variable."""

OPTIMAL = 0
NODES = 4000
"""Most branch-and-bound nodes: a limit that, unlike a limit of time, gives the same plan every time."""


@dataclass(frozen=True)
class Solution:
    """The optimum.

    Attributes:
        value: Objective.
        values: By variable.
        duals: Change of the objective for each unit that a row's right side grows, by row; only rows of
            inequality.
    """

    value: float
    values: Mapping[str, float]
    duals: Mapping[str, float]


class Programme:
    """Minimises a sum subject to rows; all variables are at least 0.

    Example:
        >>> programme = Programme()
        >>> programme.variable("x")
        >>> programme.at_most("room", {"x": -2.0}, -6.0)
        >>> programme.minimise({"x": 1.0})
        >>> programme.solve().value
        3.0
    """

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.scales: list[float] = []
        self.bounds: list[tuple[float, float]] = []
        self.whole: list[bool] = []
        self.upper: list[tuple[str, Terms, float]] = []
        self.equal: list[tuple[str, Terms, float]] = []
        self.cost: Terms = {}

    def variable(
        self, name: str, scale: float = 1.0, low: float = 0.0, high: float = math.inf, *, whole: bool = False
    ) -> None:
        """Adds a variable; `scale` is its usual size, for the solver."""
        self.index[name] = len(self.scales)
        self.scales.append(1.0 if whole else scale)
        self.bounds.append((low, high))
        self.whole.append(whole)

    def at_most(self, row: str, terms: Terms, right: float) -> None:
        """Adds a row: the terms come to at most `right`."""
        self.upper.append((row, terms, right))

    def exactly(self, row: str, terms: Terms, right: float) -> None:
        """Adds a row: the terms come to `right`."""
        self.equal.append((row, terms, right))

    def minimise(self, terms: Terms) -> None:
        """Sets the objective."""
        self.cost = terms

    def demand(self, row: str, solution: Solution, without: str) -> float:
        """What the terms of a row come to without one variable."""
        terms = next(terms for name, terms, _ in self.upper if name == row)
        return sum(factor * solution.values[name] for name, factor in terms.items() if name != without)

    def solve(self) -> Solution | None:
        """The optimum; none when no point satisfies all rows."""
        with brought_by("offload"):
            import numpy as np
            from scipy.optimize import linprog

        upper, upper_right, upper_scale = self._matrix(self.upper)
        equal, equal_right, _ = self._matrix(self.equal)
        scales = np.array(self.scales)
        found = linprog(
            self._vector(self.cost) * scales,
            A_ub=upper,
            b_ub=upper_right,
            A_eq=equal,
            b_eq=equal_right,
            bounds=[(low / scale, high / scale) for (low, high), scale in zip(self.bounds, self.scales, strict=True)],
            method="highs",
        )
        if found.status != OPTIMAL:
            return None
        marginals = found.ineqlin.marginals / upper_scale
        names = [row for row, _, _ in self.upper]
        duals = {name: float(dual) for name, dual in zip(names, marginals, strict=True)}
        return Solution(float(found.fun), self._named(found.x * scales), duals)

    def solve_whole(self, gap: float, *, presolve: bool = True) -> Solution | None:
        """The optimum with whole variables, to within `gap` of it; none when there is none.

        With whole numbers into the millions, HiGHS' presolve can end per cents above the optimum: it can be left out.
        """
        with brought_by("offload"):
            import numpy as np
            from scipy.optimize import Bounds, LinearConstraint, milp

        upper, upper_right, _ = self._matrix(self.upper)
        equal, equal_right, _ = self._matrix(self.equal)
        scales = np.array(self.scales)
        lows, highs = np.array(self.bounds).T
        right, both = cast("Any", upper_right), cast("Any", equal_right)  # SciPy takes arrays; its hints do not
        rows = [LinearConstraint(upper, -np.inf, right)]
        if len(equal):
            rows.append(LinearConstraint(equal, both, both))
        found = milp(
            self._vector(self.cost) * scales,
            constraints=rows,
            bounds=Bounds(lows / scales, highs / scales),
            integrality=np.array(self.whole, dtype=int),
            options={"mip_rel_gap": gap, "node_limit": NODES, "presolve": presolve},
        )
        if found.x is None:
            return None
        return Solution(float(found.fun), self._named(found.x * scales), {})

    def _vector(self, terms: Terms) -> npt.NDArray[np.float64]:
        import numpy as np

        row = np.zeros(len(self.scales))
        for name, factor in terms.items():
            row[self.index[name]] += factor
        return row

    def _matrix(
        self, rows: list[tuple[str, Terms, float]]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Scaled coefficients and right sides, and by what each row was divided."""
        import numpy as np

        if not rows:
            return np.zeros((0, len(self.scales))), np.zeros(0), np.ones(0)
        dense = np.array([self._vector(terms) for _, terms, _ in rows]) * np.array(self.scales)
        largest = np.maximum(np.abs(dense).max(axis=1), 1e-300)
        right = np.array([value for _, _, value in rows])
        return dense / largest[:, None], right / largest, largest

    def _named(self, values: npt.NDArray[np.float64]) -> dict[str, float]:
        return {name: float(values[position]) for name, position in self.index.items()}
