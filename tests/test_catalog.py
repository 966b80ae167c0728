"""The catalog's derived files are what their scripts write, and what their scripts write is right."""

import json
import math
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools" / "catalog"))

import cloverleaf  # noqa: E402
import make_profiles  # noqa: E402
import mlc  # noqa: E402
import npb  # noqa: E402
import paper  # noqa: E402
import xsbench  # noqa: E402

GIB = 1 << 30
PROGRAMS = {program.name: program for program in make_profiles.programs()}


def share(program, *names):
    """Share of a program's traffic that goes to some of its arrays."""
    moved = {array.name: 0.0 for array in program.arrays}
    for traffic in program.traffic:
        moved[traffic.array] += traffic.read + traffic.write
    return sum(moved[name] for name in names) / sum(moved.values())


def test_the_committed_profiles_are_what_the_script_writes(tmp_path):
    written = {file.relative_to(tmp_path): file.read_text() for file in make_profiles.write(tmp_path)}
    committed = {
        file.relative_to(make_profiles.CATALOG): file.read_text() for file in make_profiles.CATALOG.glob("*/*")
    }
    assert written == committed


@pytest.mark.parametrize(
    ("name", "gib"),
    [("bt-e", 166.36), ("sp-e", 174.40), ("lu-e", 135.45), ("mg-e", 210.97), ("ft-d", 80.00), ("xsbench-xl", 116.56)],
)
def test_sizes_add_up_to_the_footprint_of_the_class(name, gib):
    assert PROGRAMS[name].footprint / GIB == pytest.approx(gib, abs=0.01)


@pytest.mark.parametrize(("integer", "gib"), [(4, 76.48), (8, 101.92)])
def test_cg_depends_on_the_width_of_its_integers(integer, gib):
    assert sum(array.size for array in npb.cg_arrays(integer)) / GIB == pytest.approx(gib, abs=0.01)


@pytest.mark.parametrize(
    ("name", "arrays", "expected"),
    [
        ("bt-e", ["rhs"], 0.49),
        ("bt-e", ["u"], 0.26),
        ("bt-e", ["forcing"], 0.03),
        ("bt-e", ["us", "vs", "ws", "qs", "rho_i", "square"], 0.22),
        ("sp-e", ["rhs"], 0.52),
        ("sp-e", ["u"], 0.19),
        ("sp-e", ["us", "vs", "ws", "qs", "rho_i", "speed", "square"], 0.26),
        ("mg-e", ["u"], 0.48),
        ("mg-e", ["r"], 0.44),
        ("mg-e", ["v"], 0.07),
    ],
)
def test_traffic_divides_as_it_was_traced(name, arrays, expected):
    assert share(PROGRAMS[name], *arrays) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("name", "arrays", "memory", "traffic"),
    [("lu-e", "abcd", 0.006, 0.76), ("cg-e", "p", 0.001, 0.6), ("xsbench-xl", ["nuclide_grid"], 0.033, 0.79)],
)
def test_small_arrays_carry_most_traffic(name, arrays, memory, traffic):
    program = PROGRAMS[name]
    size = sum(array.size for array in program.arrays if array.name in set(arrays))
    assert size / program.footprint < memory + 0.001
    assert share(program, *arrays) > traffic


MEASURED = ["bt", "sp", "lu", "mg", "ft", "cg", "xsbench", "cloverleaf"]


@pytest.mark.parametrize("name", MEASURED)
def test_computing_takes_no_longer_than_any_run_that_also_waits(name):
    assert all(npb.rates.rate(name) >= run.rate for run in npb.rates.runs(name) if not run.in_cache)


@pytest.mark.parametrize(
    ("name", "within"), [("bt", 0.03), ("sp", 0.07), ("lu", 0.02), ("ft", 0.12), ("cg", 0.26), ("cloverleaf", 0.04)]
)
def test_one_rate_of_computing_predicts_the_next_size_in_cache(name, within):
    """FT has longer lines in the second, and CG's second outgrows the private caches that hold its first."""
    assert all(abs(error) < within for error in npb.rates.errors(name, in_cache=True).values())


@pytest.mark.parametrize(
    ("name", "within"), [("bt", 0.16), ("sp", 0.06), ("lu", 0.17), ("mg", 0.01), ("cloverleaf", 0.05)]
)
def test_seconds_with_waits_grow_as_operations_do(name, within):
    """Not so for BT and LU from class B to C: planes outgrow the cache, or the machine was busier; not told apart."""
    assert all(abs(error) < within for error in npb.rates.errors(name, in_cache=False).values())


def test_the_operation_counts_are_those_that_the_benchmarks_print():
    """Class C of a measured run: seconds times rate of so many iterations."""
    assert 3 * npb.rates.bt_operations(162) == pytest.approx(7.87 * 5464.04e6, rel=0.01)
    assert 5 * npb.rates.sp_operations(162) == pytest.approx(3.32 * 5454.61e6, rel=0.01)
    assert 5 * npb.rates.lu_operations(162) == pytest.approx(7.70 * 5296.54e6, rel=0.01)
    points = 512 * 256 * 256
    first = points * (14.8157 + 7.19641 * math.log(points))
    assert first + 20 * npb.rates.ft_operations(points) == pytest.approx(32.52 * 2830.67e6, rel=0.01)
    assert 75 * npb.rates.cg_operations(75000, 13) == pytest.approx(36.26 * 1508.60e6, rel=0.01)


def test_a_lookup_touches_the_lines_of_its_material():
    assert xsbench.mean([float(len(material)) for material in xsbench.MATERIALS]) == pytest.approx(55.4, abs=0.1)
    assert [len(set(material)) for material in xsbench.MATERIALS] == [321, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9]
    assert xsbench.lines_of_points() == 2.25
    assert 1.0 <= xsbench.lines_of_row(xsbench.MATERIALS[1]) <= 2.0
    assert 22.0 <= xsbench.lines_of_row(xsbench.MATERIALS[0]) <= 24.0


def test_a_step_of_cloverleaf_reads_and_writes_what_its_loops_name():
    assert cloverleaf.sweeps("volume") == (10, 0)
    assert cloverleaf.sweeps("soundspeed") == (3, 2), "two ideal_gas loops set it, calc_dt reads it"
    assert cloverleaf.sweeps("mass_flux_x") == (3, 1)
    named = set().union(*(loop.reads | loop.writes for loop in cloverleaf.STEP))
    assert named == set(cloverleaf.FIELDS)
    program = PROGRAMS["cloverleaf-bm1024"]
    assert program.footprint / GIB == pytest.approx(175.8, abs=0.1)
    reads, writes = (sum(getattr(traffic, way) for traffic in program.traffic) for way in ("read", "write"))
    assert 2.0 < reads / writes < 4.0


def test_every_number_of_a_profile_says_where_it_comes_from():
    for program in PROGRAMS.values():
        profile = json.loads(paper.text(program))
        entries = profile["objects"] + profile["phases"][0]["accesses"]
        assert all(entry["origin"]["how"] and entry["origin"]["source"] in profile["sources"] for entry in entries)


def test_a_measured_curve_is_cleaned_by_rule():
    raw = [(1.0, 100.0), (1.1, 102.0), (10.0, 99.0), (40.0, 150.0), (60.0, 300.0), (59.9, 700.0), (58.0, 900.0)]
    assert mlc.cleaned(raw) == [(1.05, 100.0), (10.0, 100.0), (40.0, 150.0), (60.0, 300.0)]


def test_isotonic_regression_keeps_the_mean_and_rises():
    values = [5.0, 3.0, 4.0, 8.0, 7.0, 9.0]
    fitted = mlc._isotonic(values)
    assert fitted == [4.0, 4.0, 4.0, 7.5, 7.5, 9.0]
    assert sum(fitted) == pytest.approx(sum(values))


MACHINES = ROOT / "python" / "tierloom" / "catalog" / "machines"
REAL_CARD = "bytedance-spr-a1000"
CARDS = [
    ("liu-a", ("near", "near")),
    ("liu-a-llm", ("near", "near")),
    ("liu-c", ("near", "far")),
    ("fridman-spr-fpga", ("near", "far")),
    ("micron-bergamo-cz120", ("near",)),
]
"""Machines of whose cards nothing says how latency rises under load, and which curve of the real card each path has."""

FITTED = {"near": (48.93, 257.6, 0.025), "far": (22.58, 479.5, 0.005)}
"""Peak (GB/s) and idle latency (ns) of the fit of each curve, and the mean error within which it follows the curve."""


def card_paths(name):
    """Paths of a machine to its card."""
    machine = tomllib.loads((MACHINES / f"{name}.toml").read_text(encoding="utf-8"))
    return [path for path in machine["paths"] if path["to"] == "cxl"]


@pytest.mark.parametrize(("name", "sides"), CARDS)
def test_cards_wait_under_load_as_the_card_does_that_was_measured(name, sides):
    """A simulated expander stood here; its latency rose by a tenth of what a real card's does."""
    measured = dict(zip(("near", "far"), card_paths(REAL_CARD), strict=True))
    for path, side in zip(card_paths(name), sides, strict=True):
        knee = path["load"]["form"]["shape"]["knee"]
        peak, idle, within = FITTED[side]
        (curve,) = [each for each in measured[side]["load"]["points"] if each["read_fraction"] == 1.0]
        off = [abs(knee_ns(knee, gb_s / peak, idle) / ns - 1.0) for gb_s, ns in curve["points"]]
        assert sum(off) / len(off) < within


def knee_ns(knee, u, idle):
    """Latency at a share of the peak."""
    return idle + knee["linear_ns"] * u + knee["wait_ns"] * u ** knee["exponent"] / (1.0 - u)
