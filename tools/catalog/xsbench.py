"""XSBench, size XL, history-based: Monte-Carlo lookups of neutron cross-sections.

A lookup draws an energy and a material, finds the energy in the unionised grid by bisection, reads
that point's row of the index grid, and for each nuclide of the material two neighbouring points of
the nuclide's own grid. Which material and how many of its nuclides share a line follow from the
tables of the source.
"""

from __future__ import annotations

import math

import rates
from paper import LINE, LLC_BYTES, Array, Program, Traffic, origin

SOURCES = {
    "xsbench": "XSBench (ANL-CESAR), openmp-threading: Materials.c, GridInit.c, Simulation.c; size XL, history-based",
    "core": "Zen 4: reorder buffer of 320 operations",
    "measured": rates.source("xsbench"),
}
NUCLIDES, POINTS = 355, 238_847
POINT = 48
"""Bytes of a point of a nuclide's grid: energy and five cross-sections."""
LOOKUPS = 500_000 * 34
"""Particles x lookups of each, the default of the program."""
INTEGER, DOUBLE = 4, 8

CHANCES = [0.139, 0.052, 0.275, 0.134, 0.154, 0.064, 0.066, 0.055, 0.008, 0.015, 0.025, 0.013]
"""Of the twelve materials; the fuel gets what the eleven others leave."""
_WATER = [24, 41, 4, 5]
_REFLECTOR = [*_WATER, 19, 20, 21, 22, 35, 36, 37, 38, 39, 25, 49, 50, 51, 11, 12, 13, 14]
_CLADDING = [63, 64, 65, 66, 67]
_VESSEL = [*range(19, 23), *range(35, 40), 25, *range(27, 33), 26, 49, 50, 51, 11, 12, 13, 14, 6, 16, 17]
_SMALL_FUEL = [*range(58, 62), 40, *range(42, 47), 1, 2, 3, 7, 8, 9, 10, 29, 57, 47, 48, 0, 62, 15, 33, 34]
_FUEL = [*_SMALL_FUEL, *range(52, 57), 18, 23, 41, *range(68, 68 + 321 - 34)]
MATERIALS = [
    _FUEL,
    _CLADDING,
    _WATER,
    _WATER,
    _VESSEL,
    *([_REFLECTOR] * 5),
    [*_WATER, *_CLADDING],
    [*_WATER, *_CLADDING],
]

OPERATIONS_A_NUCLIDE = 70
"""Interpolation of five cross-sections, index load, loop: counted in the source; for lines in flight."""


def mean(values: list[float]) -> float:
    """Mean over the materials; exact sums, for `sum` of floats rounds otherwise from Python 3.12 on."""
    return math.fsum(chance * value for chance, value in zip(CHANCES, values, strict=True)) / math.fsum(CHANCES)


def lines_of_row(nuclides: list[int]) -> float:
    """Lines of an index row that a material touches, over the 16 offsets at which a row can start."""
    row = NUCLIDES * INTEGER
    starts = [start * row % LINE for start in range(16)]
    return sum(len({(start + INTEGER * nuclide) // LINE for nuclide in nuclides}) for start in starts) / 16


def lines_of_points() -> float:
    """Lines of two neighbouring points, over the four offsets at which a point can start."""
    starts = [start * POINT % LINE for start in range(4)]
    return sum((start + 2 * POINT - 1) // LINE + 1 for start in starts) / 4


def search_misses() -> float:
    """Steps of the bisection that miss: half of the cache holds its first levels, its last three share a line."""
    steps = math.ceil(math.log2(NUCLIDES * POINTS))
    held = math.floor(math.log2(LLC_BYTES / 2 / LINE))
    return steps - held - 2


def xsbench() -> Program:
    """The program as a whole."""
    energies = NUCLIDES * POINTS
    nuclides = mean([float(len(material)) for material in MATERIALS])
    row = NUCLIDES * INTEGER
    rows = mean([lines_of_row(material) for material in MATERIALS])
    points = nuclides * lines_of_points()
    in_flight = 320 / OPERATIONS_A_NUCLIDE * lines_of_points()
    flight = f"in flight: 320 operations / {OPERATIONS_A_NUCLIDE} a nuclide x {lines_of_points():g} lines"
    return Program(
        "xsbench-xl",
        "XSBench -s XL -m history: 355 nuclides, 17 million lookups",
        [
            Array("nuclide_grid", energies * POINT, f"{NUCLIDES} x {POINTS} points x {POINT} bytes", "xsbench"),
            Array("unionized_energy", energies * DOUBLE, f"{NUCLIDES} x {POINTS} doubles", "xsbench"),
            Array("index_grid", energies * row, f"{NUCLIDES} x {POINTS} rows x {NUCLIDES} integers", "xsbench"),
        ],
        [
            Traffic(
                "nuclide_grid",
                LOOKUPS * points * LINE,
                0.0,
                origin("derived", "xsbench", f"{LOOKUPS} lookups x {points:.1f} lines of nuclides' points; {flight}"),
                "random",
                in_flight,
                LINE,
            ),
            Traffic(
                "unionized_energy",
                LOOKUPS * search_misses() * LINE,
                0.0,
                origin("assumed", "xsbench", "27 steps: half the cache holds the first 18, the last 3 share a line"),
                "chain",
                1.0,
                LINE,
            ),
            Traffic(
                "index_grid",
                LOOKUPS * rows * LINE,
                0.0,
                origin("derived", "xsbench", f"{LOOKUPS} lookups x {rows:.1f} lines of a row, by material; {flight}"),
                "random",
                in_flight,
                LINE,
            ),
        ],
        LOOKUPS * rates.operations("xsbench", POINTS) / rates.rate("xsbench"),
        SOURCES,
    )
