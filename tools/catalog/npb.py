"""NAS Parallel Benchmarks: classes E of BT, SP, LU, CG and MG, class D of FT.

Sizes follow the array declarations of NPB-CPP (with 64-bit indices, without which class E does not
fit its own counters). Traffic is sweeps x size x iterations; the sweeps were counted with a traced
run of a small class behind a cache that keeps as many grid planes as the real one does at class E.
"""

from __future__ import annotations

from dataclasses import dataclass

import rates
from paper import FREE, LINE, LLC_BYTES, Array, Program, Traffic, origin

LOG_SOURCE = (
    "Public run logs of NPB 3.3 OMP-C, clang -O3, 64 threads of a Zen 4 server, 162^3 (BT) and 512^3 (FT), "
    "September 2026: only for lines in flight along z"
)
SOURCES = {
    "npb": "NPB-CPP 4.1 (GMAP), OpenMP: array declarations, problem classes, operation counts, order of first touch",
    "traced": (
        "Sweeps by object: small classes run with every access traced through a 16-way LRU model of the "
        "last-level cache, scaled to keep as many grid planes as at the class of this profile"
    ),
    "measured": rates.source("npb"),
    "log": LOG_SOURCE,
    "core": "Zen 4: reorder buffer of 320 operations",
}
DOUBLE = 8
GRID = 1020
"""Points along one edge of BT, SP and LU, class E."""


@dataclass(frozen=True)
class Sweeps:
    """How often one iteration reads (fetches for stores included) and writes back a whole array."""

    array: str
    reads: float
    writes: float
    z_reads: float = 0.0
    """Sweeps among `reads` that run along z, a plane apart."""
    z_writes: float = 0.0
    """Sweeps among `writes` that run along z."""
    source: str = "traced"


def field(n: int, components: int) -> int:
    """Bytes of a [n][n+1][n+1][components] array: the two inner edges are padded to odd lengths."""
    odd = n // 2 * 2 + 1
    return n * odd * odd * components * DOUBLE


def field_array(name: str, components: int) -> Array:
    """A field of the class E grid."""
    odd = GRID // 2 * 2 + 1
    shape = f"{GRID} x {odd} x {odd} x {components} doubles"
    return Array(name, field(GRID, components), shape, "npb")


BT = [
    Sweeps("u", 7.3, 0.8, z_reads=1.0),
    Sweeps("forcing", 1.0, 0.0),
    *(Sweeps(name, 5.7, 1.0, z_reads=1.0) for name in ("qs", "square", "rho_i")),
    *(Sweeps(name, 3.6, 1.0) for name in ("us", "vs", "ws")),
    Sweeps("rhs", 7.9, 7.2, z_reads=1.0, z_writes=1.0),
]
SP = [
    Sweeps("u", 7.7, 0.8),
    Sweeps("forcing", 1.0, 0.0),
    *(Sweeps(name, 7.2, 1.0) for name in ("us", "vs", "ws", "qs", "rho_i", "speed", "square")),
    Sweeps("rhs", 11.9, 11.1),
]
LU = [
    Sweeps("u", 8.1, 0.9),
    Sweeps("rsd", 8.9, 7.1),
    Sweeps("frct", 1.0, 0.0),
    Sweeps("qs", 6.0, 1.0),
    Sweeps("rho_i", 6.0, 1.0),
]
MG = [Sweeps("u", 7.7, 2.4), Sweeps("v", 1.8, 0.0), Sweeps("r", 6.6, 2.6)]
FT = [
    Sweeps("u0", 1.0, 1.0, source="npb"),
    Sweeps("u1", 4.0, 4.0, z_reads=1.0, z_writes=1.0, source="npb"),
    Sweeps("twiddle", 1.0, 0.0, source="npb"),
]
"""Counted in the source: evolve and three passes. The trace adds a read sweep of u1, and far more
where power-of-two strides collide in its unhashed cache, which real ones avoid."""

FIVE = {"u", "rhs", "forcing", "rsd", "frct"}
"""Fields with five components; the others have one."""


BT_MLP = 4.0
"""Lines in flight in BT's z sweep: in the log its z solve takes 0.0337 s longer than its x solve over
ten iterations of 6.9e6 lines, 64 threads: 31 ns a line, of about 120 ns of DRAM latency. The y solve
takes no longer than the x solve, nor do y and z in SP, so those count as streams."""
FT_MLP = 24.0
"""Lines in flight in FT's z pass: 0.0275 s longer than the x pass over ten iterations of 3.4e7 lines,
64 threads: 5.2 ns a line, of about 120 ns of DRAM latency."""


def swept(row: Sweeps, size: int, iterations: int, mlp: float = FREE) -> list[Traffic]:
    """The traffic of a whole run from the sweeps of one iteration; those along z stand apart."""
    run = size * iterations
    how = f"{row.reads:g} read and {row.writes:g} write sweeps x {size} bytes x {iterations} iterations"
    along_z = f"{row.z_reads:g} and {row.z_writes:g} of them along z"
    if not row.z_reads:
        return [Traffic(row.array, row.reads * run, row.writes * run, origin("derived", row.source, how))]
    rest = Traffic(
        row.array,
        (row.reads - row.z_reads) * run,
        (row.writes - row.z_writes) * run,
        origin("derived", row.source, f"{how}, less {along_z}"),
    )
    apart = origin("derived", "log", f"{how}, {along_z}: a plane apart; in flight: the log's z pass less its x pass")
    return [rest, Traffic(row.array, row.z_reads * run, row.z_writes * run, apart, "strided", mlp)]


def on_grid(table: list[Sweeps], iterations: int, mlp: float = FREE) -> list[Traffic]:
    """Traffic of the class E fields."""
    return [part for row in table for part in swept(row, field(GRID, 5 if row.array in FIVE else 1), iterations, mlp)]


def bt() -> Program:
    """Block tridiagonal solver, class E: 1020^3, 250 iterations."""
    order = ["u", "forcing", "us", "vs", "ws", "qs", "rho_i", "square", "rhs"]
    return Program(
        "bt-e",
        "NPB bt, class E: 1020^3 points, 250 iterations (timed part)",
        [field_array(name, 5 if name in FIVE else 1) for name in order],
        on_grid(BT, 250, BT_MLP),
        250 * rates.bt_operations(GRID) / rates.rate("bt"),
        SOURCES,
    )


def sp() -> Program:
    """Scalar pentadiagonal solver, class E: 1020^3, 500 iterations."""
    order = ["u", "forcing", "us", "vs", "ws", "qs", "rho_i", "speed", "square", "rhs"]
    odd = GRID + 1
    size = 3 * odd * odd * 5 * DOUBLE
    lhs = Array("lhs", size, f"lhs, lhsp, lhsm: 3 x {odd} x {odd} x 5 doubles; stays in cache", "npb")
    return Program(
        "sp-e",
        "NPB sp, class E: 1020^3 points, 500 iterations (timed part)",
        [*(field_array(name, 5 if name in FIVE else 1) for name in order), lhs],
        on_grid(SP, 500),
        500 * rates.sp_operations(GRID) / rates.rate("sp"),
        SOURCES,
    )


def lu_blocks(name: str) -> Array:
    """One of LU's four arrays of 5 x 5 blocks, for one plane."""
    odd = GRID // 2 * 2 + 1
    return Array(name, GRID * odd * 25 * DOUBLE, f"{GRID} x {odd} x 5 x 5 doubles, one plane of the grid", "npb")


def lu() -> Program:
    """Lower-upper Gauss-Seidel solver, class E: 1020^3, 300 iterations."""
    blocks = [lu_blocks(name) for name in ("a", "b", "c", "d")]
    planes = GRID * 300
    why = origin(
        "derived",
        "npb",
        "each of the lower and the upper half writes the plane's blocks (1 fetch, 1 write-back) and reads them (1): "
        f"4 read and 2 write sweeps x {GRID} planes x 300 iterations; 833 MB do not stay in 8 core complexes of 32 MiB",
    )
    return Program(
        "lu-e",
        "NPB lu, class E: 1020^3 points, 300 iterations (timed part)",
        [
            *(field_array(name, 5) for name in ("u", "frct", "rsd")),
            *blocks,
            *(field_array(name, 1) for name in ("rho_i", "qs")),
        ],
        [
            *on_grid(LU, 300),
            *(Traffic(block.name, 4.0 * block.size * planes, 2.0 * block.size * planes, why) for block in blocks),
        ],
        300 * rates.lu_operations(GRID) / rates.rate("lu"),
        SOURCES,
    )


def mg() -> Program:
    """Multigrid, class E: 2048^3, 50 iterations."""
    level, edge = 11, 2 + 2**11
    fine = edge**3
    all_levels = (fine + edge**2 + 5 * edge + 7 * level + 6) // 7 * 8
    levels = f"({edge}^3 + {edge}^2 + 5 x {edge} + 7 x {level} + 6) / 7 x 8 doubles: all levels"
    arrays = [
        Array("u", all_levels * DOUBLE, levels, "npb"),
        Array("v", fine * DOUBLE, f"{edge}^3 doubles", "npb"),
        Array("r", all_levels * DOUBLE, levels, "npb"),
    ]
    size = {array.name: array.size for array in arrays}
    return Program(
        "mg-e",
        "NPB mg, class E: 2048^3 points, 50 iterations (timed part)",
        arrays,
        [part for row in MG for part in swept(row, size[row.array], 50)],
        50 * rates.mg_operations(2048) / rates.rate("mg"),
        SOURCES,
    )


def ft() -> Program:
    """Fourier transform, class D: 2048 x 1024 x 1024, 25 iterations."""
    points = 2048 * 1024 * 1024
    arrays = [
        Array("u0", points * 16, "2048 x 1024 x 1024 complex doubles", "npb"),
        Array("u1", points * 16, "2048 x 1024 x 1024 complex doubles", "npb"),
        Array("twiddle", points * DOUBLE, "2048 x 1024 x 1024 doubles", "npb"),
    ]
    size = {array.name: array.size for array in arrays}
    return Program(
        "ft-d",
        "NPB ft, class D: 2048 x 1024 x 1024 points, 25 iterations (timed part)",
        arrays,
        [part for row in FT for part in swept(row, size[row.array], 25, FT_MLP)],
        25 * rates.ft_operations(points) / rates.rate("ft"),
        SOURCES,
        touched_together=True,
    )


CG_ROWS, CG_NONZER, CG_ITERATIONS = 9_000_000, 26, 100
CG_PRODUCTS = 26
"""Sparse matrix-vector products of one outer iteration: 25 of the inner solver and the residual."""
CG_SWEEPS = 23.3
"""Sweeps over `a` and `colidx` that the trace counted: duplicates are summed, so 0.9 of the array is in use."""


def cg_arrays(integer: int) -> list[Array]:
    """CG's arrays with integers of 4 or 8 bytes, in the order of first touch."""
    rows, per_row = CG_ROWS, CG_NONZER + 1
    stored = rows * per_row * per_row
    whole = f"{integer}-byte integers"
    vectors = [Array(name, (rows + 2) * DOUBLE, f"{rows} + 2 doubles", "npb") for name in ("x", "q", "z", "r", "p")]
    return [
        Array("arow", rows * integer, f"{rows} {whole}", "npb"),
        Array("acol", rows * per_row * integer, f"{rows} x {per_row} {whole}", "npb"),
        Array("aelt", rows * per_row * DOUBLE, f"{rows} x {per_row} doubles", "npb"),
        Array("rowstr", (rows + 1) * integer, f"{rows} + 1 {whole}", "npb"),
        Array("a", stored * DOUBLE, f"{rows} x {per_row}^2 doubles", "npb"),
        Array("colidx", stored * integer, f"{rows} x {per_row}^2 {whole}", "npb"),
        Array("iv", rows * integer, f"{rows} {whole}", "npb"),
        *vectors,
    ]


def cg_gathers() -> Traffic:
    """The random reads of `p`: nine of ten stored elements, each missing as p outgrows a core complex."""
    size = (CG_ROWS + 2) * DOUBLE
    gathers = CG_SWEEPS / CG_PRODUCTS * CG_ROWS * (CG_NONZER + 1) ** 2 * CG_PRODUCTS * CG_ITERATIONS
    miss = 1 - LLC_BYTES / size
    how = (
        f"{gathers:.3e} gathers x (1 - {LLC_BYTES} / {size}) misses x {LINE} bytes: a core complex holds "
        "the rest of p; the trace, with the matrix streaming through the same cache, counts 0.61. "
        "In flight: about 5 operations an element, 320 in the reorder buffer, so the core's miss queue is the limit"
    )
    return Traffic("p", gathers * miss * LINE, 0.0, origin("derived", "core", how), "random", FREE, LINE)


def cg_vectors() -> list[Traffic]:
    """The dense updates of the 25 inner iterations."""
    size = (CG_ROWS + 2) * DOUBLE
    passes = 25 * CG_ITERATIONS * size
    why = origin(
        "derived", "npb", "loops of conj_grad: reads, fetches for stores, writes of an inner iteration x 25 x 100"
    )
    counts = {"q": (3, 1), "z": (1, 1), "r": (2, 1), "p": (3, 1)}
    return [Traffic(name, reads * passes, writes * passes, why) for name, (reads, writes) in counts.items()]


def cg() -> Program:
    """Conjugate gradient, class E: 9 million rows, 100 outer iterations, 8-byte integers."""
    arrays = cg_arrays(8)
    size = {array.name: array.size for array in arrays}
    matrix = [swept(Sweeps(name, CG_SWEEPS, 0.0), size[name], CG_ITERATIONS) for name in ("a", "colidx")]
    return Program(
        "cg-e",
        "NPB cg, class E: 9000000 rows, 100 outer iterations, 64-bit integers (timed part)",
        arrays,
        [*(part for parts in matrix for part in parts), cg_gathers(), *cg_vectors()],
        CG_ITERATIONS * rates.cg_operations(CG_ROWS, CG_NONZER) / rates.rate("cg"),
        SOURCES,
    )


def programs() -> list[Program]:
    """All of the suite that the catalog holds."""
    return [bt(), cg(), ft(), lu(), mg(), sp()]
