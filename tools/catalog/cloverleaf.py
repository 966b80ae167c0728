"""CloverLeaf, 2-D compressible Euler equations: its decks clover_bm256_short and clover_bm1024_short.

Every loop of a step runs over whole fields, row by row; the few rows that a stencil needs stay in
cache. So a loop reads each field that it names once and writes each field that it sets once, after
fetching the lines if it had not read them.
"""

from __future__ import annotations

from dataclasses import dataclass

import rates
from paper import Array, Program, Traffic, origin

SOURCES = {
    "clover": "CloverLeaf_ref (UK-MAC): loops of the OpenMP kernels, allocation and first touch in build_field",
    "measured": rates.source("cloverleaf"),
}
DECKS = {"bm256": 15360, "bm1024": 30720}
"""Cells along an edge, as the decks say; bm1024 is what a study of CXL modules ran."""
STEPS = 87
"""Of the short forms of all decks."""
DOUBLE = 8

FIELDS = [
    *(f"work_array{number}" for number in range(1, 8)),
    *("xvel0", "xvel1", "yvel0", "yvel1"),
    *("density0", "density1", "energy0", "energy1", "pressure", "viscosity", "soundspeed", "volume"),
    *("vol_flux_x", "mass_flux_x", "xarea", "vol_flux_y", "mass_flux_y", "yarea"),
]
"""In the order in which build_field touches them."""


@dataclass(frozen=True)
class Loop:
    """The fields that one loop reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]


def loop(reads: str, writes: str = "") -> Loop:
    """A loop from two lists of names."""
    return Loop(frozenset(reads.split()), frozenset(writes.split()))


def cell_advection(along: str, first_volumes: str) -> list[Loop]:
    """Advection of density and energy along x or y; work arrays 1, 2, 7 are volumes and energy flux."""
    volume, mass = f"vol_flux_{along}", f"mass_flux_{along}"
    return [
        loop(first_volumes, "work_array1 work_array2"),
        loop(f"{volume} work_array1 density1 energy1", f"{mass} work_array7"),
        loop(f"{volume} work_array1 density1 energy1 {mass} work_array7", "density1 energy1"),
    ]


def momentum_advection(along: str, volumes: str) -> list[Loop]:
    """Advection of both velocities along x or y; work arrays 1 to 6 are node masses, fluxes and volumes."""
    start = loop(volumes, "work_array5 work_array6")
    nodes = [
        loop(f"mass_flux_{along}", "work_array1"),
        loop("density1 work_array6 work_array1", "work_array2 work_array3"),
    ]
    loops = []
    for velocity, before in (("xvel1", nodes), ("yvel1", [])):
        flux = loop(f"work_array1 work_array3 {velocity}", "work_array4")
        update = loop(f"{velocity} work_array3 work_array4 work_array2", velocity)
        loops += [start, *before, flux, update]
    return loops


STATE = "xarea yarea volume density0 energy0 pressure viscosity xvel0 yvel0"
STEP = [
    loop("density0 energy0", "pressure soundspeed"),  # ideal_gas
    loop("density0 pressure xvel0 yvel0", "viscosity"),  # viscosity
    loop("soundspeed viscosity density0 xvel0 yvel0 xarea yarea volume"),  # calc_dt
    loop(STATE, "density1 energy1"),  # PdV, predictor
    loop("density1 energy1", "pressure soundspeed"),  # ideal_gas
    loop("density0 energy0", "density1 energy1"),  # revert
    loop("density0 volume xarea yarea pressure viscosity xvel0 yvel0", "xvel1 yvel1"),  # accelerate
    loop(f"{STATE} xvel1 yvel1", "density1 energy1"),  # PdV, corrector
    loop("xarea yarea xvel0 xvel1 yvel0 yvel1", "vol_flux_x vol_flux_y"),  # flux_calc
    *cell_advection("x", "volume vol_flux_x vol_flux_y"),
    *momentum_advection("x", "volume vol_flux_x vol_flux_y"),
    *cell_advection("y", "volume vol_flux_y"),
    *momentum_advection("y", "volume vol_flux_x"),
    loop("density1 energy1 xvel1 yvel1", "density0 energy0 xvel0 yvel0"),  # reset_field
]
"""One step; the next one swaps x and y."""


def sweeps(field: str) -> tuple[int, int]:
    """How often a step reads (fetches for stores included) and writes back a field."""
    reads = sum(field in one.reads | one.writes for one in STEP)
    return reads, sum(field in one.writes for one in STEP)


def field_bytes(field: str, cells: int) -> int:
    """Bytes of a field: two halo cells on each side, and one more where values sit on vertices or faces."""
    vertex = field.startswith(("work", "xvel", "yvel"))
    wide = cells + 4 + (vertex or field in {"xarea", "vol_flux_x", "mass_flux_x"})
    high = cells + 4 + (vertex or field in {"yarea", "vol_flux_y", "mass_flux_y"})
    return wide * high * DOUBLE


def traffic(field: str, cells: int) -> Traffic:
    """Traffic of one field over all steps."""
    reads, writes = sweeps(field)
    size = field_bytes(field, cells)
    how = f"{reads} read and {writes} write sweeps, counted in the kernels, x {size} bytes x {STEPS} steps"
    return Traffic(field, reads * size * STEPS, writes * size * STEPS, origin("derived", "clover", how))


def cloverleaf(deck: str) -> Program:
    """The program as a whole, on one of the decks."""
    cells = DECKS[deck]
    shape = f"{cells} x {cells} cells with halo, doubles"
    return Program(
        f"cloverleaf-{deck}",
        f"CloverLeaf, clover_{deck}_short: {cells} x {cells} cells, {STEPS} steps",
        [Array(field, field_bytes(field, cells), shape, "clover") for field in FIELDS],
        [traffic(field, cells) for field in FIELDS],
        STEPS * rates.operations("cloverleaf", cells) / rates.rate("cloverleaf"),
        SOURCES,
    )
