"""Every policy lands each page exactly where the plan says, for objects of every kind.

The objects of one run differ in size, and the plan's rules go by size, largest first: so one run
checks many weights, each object with its own at the same time.
"""

from __future__ import annotations

from pathlib import Path

from placing import MIB, PAGE, compiled, drop_caches, huge_unit, law, node_one, obeys, plan, program, rule, run

TOPOLOGIES = ("two-tier", "cxl")

RATIOS = [(1, 1), (3, 1), (1, 3), (2, 1), (7, 2), (17, 14), (25, 6), (1, 255), (255, 1), (255, 254), (5, 5), (29, 2)]


def weighted(first: int, second: int) -> str:
    return f"weighted = {{ n0 = {first}, n1 = {second} }}"


def at_least(size: int) -> str:
    return f"size_at_least = {size}"


def check_every_weight_lands_each_page() -> None:
    """Objects too small for huge pages: few stripes and many, heap and mappings."""
    node_one()
    sizes = [MIB + 64 * 1024 * number for number in range(len(RATIOS))]
    rules = [rule(f"w{size}", at_least(size), weighted(*ratio)) for size, ratio in zip(sizes, RATIOS, strict=True)]
    kinds = ("heap", "mmap")
    actions = [f"{kinds[size // 65536 % 2]}:w{size}:{size}" for size in sizes]
    shown, report = run(plan(*reversed(rules)), *actions, "show")
    for size, (first, second) in zip(sizes, RATIOS, strict=True):
        obeys(shown[f"w{size}"], [(0, first), (1, second)], huge_unit(shown[f"w{size}"]))
    assert all(each["residency"]["elsewhere"] == 0 for each in report["rules"]), report["rules"]


def check_large_objects_have_weights_of_their_own() -> None:
    """One program, three objects, three ratios; the host's weights are not touched."""
    node_one()
    before = host_weights()
    sizes, ratios = (48 * MIB, 32 * MIB, 24 * MIB), ((3, 1), (1, 1), (2, 5))
    rules = [rule(f"big{size}", at_least(size), weighted(*ratio)) for size, ratio in zip(sizes, ratios, strict=True)]
    shown, report = run(plan(*rules), *(f"heap:big{size}:{size}" for size in reversed(sizes)), "show")
    for size, (first, second) in zip(sizes, ratios, strict=True):
        seen = shown[f"big{size}"]
        obeys(seen, [(0, first), (1, second)], huge_unit(seen))
        assert set(seen.nodes) == {0, 1}
    assert host_weights() == before
    assert all(each["held"] for each in report["rules"])


def check_page_granular_weights_without_huge_pages() -> None:
    """Thousands of stripes: populated stripe by stripe, page by page."""
    node_one()
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    before = enabled.read_text()
    enabled.write_text("madvise")
    try:
        rules = [rule("fine", at_least(24 * MIB), weighted(3, 1)), rule("finer", at_least(12 * MIB), weighted(1, 2))]
        shown, report = run(plan(*rules), f"heap:finer:{12 * MIB}", f"mmap:fine:{24 * MIB}", "show")
    finally:
        enabled.write_text(before[before.index("[") + 1 : before.index("]")])
    obeys(shown["fine"], [(0, 3), (1, 1)])
    obeys(shown["finer"], [(0, 1), (1, 2)])
    assert report["rules"][0]["how"] == {"populate": 1}, report["rules"][0]


def check_coarse_units_land_each_page() -> None:
    node_one()
    coarse = rule("coarse", at_least(32 * MIB), weighted(3, 1), f"unit_bytes = {4 * MIB}")
    shown, _ = run(plan(coarse), f"heap:coarse:{32 * MIB}", "show")
    obeys(shown["coarse"], [(0, 3), (1, 1)], 4 * MIB)


def check_the_kernels_policies() -> None:
    node_one()
    places = ['bind = ["n0"]', 'bind = ["n1"]', 'prefer = "n1"', 'prefer_many = ["n1"]', 'prefer = "n0"']
    expected = [0, 1, 1, 1, 0]
    sizes = [MIB + 65536 * number for number in range(len(places))]
    rules = [rule(f"p{size}", at_least(size), place) for size, place in zip(sizes, places, strict=True)]
    shown, report = run(plan(*reversed(rules)), *(f"heap:p{size}:{size}" for size in sizes), "show")
    for size, node in zip(sizes, expected, strict=True):
        assert shown[f"p{size}"].share(node) == 1.0, (size, node)
    assert all(each["residency"]["elsewhere"] == 0 for each in report["rules"])


def check_interleave_goes_page_by_page() -> None:
    node_one()
    shown, _ = run(plan(rule("i", at_least(MIB), 'interleave = ["n0", "n1"]')), f"mmap:i:{MIB + 65536}", "show")
    obeys(shown["i"], [(0, 1), (1, 1)])


def check_static_arrays() -> None:
    """Zeroed and initialised ones, each with its own place."""
    node_one()
    name = program().name
    rules = [
        rule("bss", f'symbol = "{name}:bss_array"', weighted(1, 3)),
        rule("data", f'symbol = "{name}:data_array"', 'bind = ["n1"]'),
    ]
    shown, report = run(plan(*rules), "bss:bss", "data:data", "show")
    obeys(shown["bss"], [(0, 1), (1, 3)], huge_unit(shown["bss"]))
    assert shown["data"].share(1) == 1.0
    assert all(each["residency"]["objects"] == 1 for each in report["rules"][:2]), report["rules"]


def check_arrays_of_a_library_that_is_loaded_later() -> None:
    node_one()
    library = compiled("late.c", "late.so", "-shared", "-fPIC")
    late = rule("late", f'symbol = "{library.name}:far_array"', 'bind = ["n1"]')
    shown, _ = run(plan(late), f"lib:late:{library}", "show")
    assert shown["late"].share(1) == 1.0


def check_a_block_that_grows_keeps_its_place() -> None:
    node_one()
    shown, _ = run(plan(rule("g", at_least(MIB), weighted(1, 1))), f"heap:g:{MIB}", f"grow:g:{12 * MIB}", "show")
    obeys(shown["g"], [(0, 1), (1, 1)], huge_unit(shown["g"]))


def check_memory_that_was_given_back_has_no_policy() -> None:
    """The next owner of a block's pages is not placed by the block's rule."""
    node_one()
    actions = (f"heap:a:{120 * 1024}", f"heap:guard:{4096}", "free:a", f"heap:b:{40 * 1024}", "show")
    shown, _ = run(plan(rule("a", at_least(100 * 1024), 'bind = ["n1"]')), *actions)
    touched_first = shown["b"].nodes[4:]
    assert touched_first, "the second block lies in the first one's pages"


def check_small_objects_are_left_alone() -> None:
    node_one()
    shown, _ = run(plan(rule("s", at_least(1), 'bind = ["n1"]')), f"heap:small:{16 * 1024}", "show")
    assert shown["small"].share(0) == 1.0


def check_first_touch_spills_when_the_node_is_full() -> None:
    """The default: pages come to the nearest node while it has room, then to the next.

    Some of the later ones may come to the first again: what gives memory back there is not for us to say.
    """
    node_one()
    drop_caches()
    shown, _ = run(plan(), "spill:spill:0", "show")
    nodes = shown["spill"].nodes
    assert set(nodes) == {0, 1}
    assert nodes.index(1) > 0.8 * len(nodes), (nodes.index(1), len(nodes))


def check_a_full_node_overflows_and_is_told() -> None:
    """Weights that ask more of a node than it has: the rest goes to the other, and the report says how much."""
    node_one()
    drop_caches()
    weights = [(0, 31), (1, 1)]
    shown, report = run(plan(rule("over", at_least(64 * MIB), weighted(31, 1))), "spill:over:0", "show")
    seen = shown["over"]
    unit = huge_unit(seen)
    wanted = sum(law(seen.start + page * PAGE, weights, unit) == 0 for page in range(len(seen.nodes)))
    got = seen.nodes.count(0)
    assert got < wanted, "the node was not full"
    told = report["rules"][0]["residency"]
    share = told["elsewhere"] / told["looked"]
    assert abs(share - (wanted - got) / len(seen.nodes)) < 0.02, (share, wanted - got, len(seen.nodes))


def check_a_shared_file_in_memory_is_placed() -> None:
    node_one()
    path = Path("/dev/shm") / "tierloom-lab-file"  # noqa: S108 (memory that has a path)
    with path.open("wb") as file:
        file.truncate(8 * MIB)
    try:
        shown, _ = run(plan(rule("file", f'file = "{path}"', weighted(1, 1))), f"file:f:{path}", "show")
    finally:
        path.unlink()
    obeys(shown["f"], [(0, 1), (1, 1)])


def host_weights() -> dict[str, str]:
    folder = Path("/sys/kernel/mm/mempolicy/weighted_interleave")
    return {path.name: path.read_text() for path in sorted(folder.glob("node*"))} if folder.is_dir() else {}
