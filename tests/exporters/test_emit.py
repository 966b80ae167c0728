"""A plan in the words of other tools: the script runs, the C compiles and places what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import lacking

import tierloom
from tierloom import Machine, Plan, Profile
from tierloom.debian import packages
from tierloom.errors import RequestError
from tierloom.exporters import WRITERS, emit
from tierloom.exporters.numactl import MOST_WEIGHT
from tierloom.exporters.steps import steps_of
from tierloom.nouns import FIRST_TOUCH

HEADERS = {"libnuma": ("numa.h", "-lnuma", "libnuma-dev"), "hwloc": ("hwloc.h", "-lhwloc", "libhwloc-dev")}

PLAN = """\
version = 1
machine = "here"
profile = "app"
policy = "by hand"
nodes = ["near", "far"]
default = "first_touch"

[predicted]
time_s = 1.0
low_s = 1.0
high_s = 1.0
threads = 1
bytes = [3000, 1000]
"""
RULES = {
    "a": '{ bind = ["near"] }',
    "a!": '{ prefer = "near" }',
    'quo"ted */ \\\\ name': '{ interleave = ["near"] }',
    "mix": "{ weighted = { near = 3 } }",
    "small": '"first_touch"',
}


def plan(rules: dict[str, str] = RULES, default: str = '"first_touch"') -> Plan:
    text = PLAN.replace('default = "first_touch"', f"default = {default}")
    for name, place in rules.items():
        text += f"\n[[rules]]\nobject = '{name}'\nsize_bytes = 4096\nselect = {{ symbol = 'app:x' }}\nplace = {place}\n"
    return Plan(text)


def compiler(form: str, folder: Path) -> None:
    """Skips where the library's headers are not installed."""
    header, _, package = HEADERS[form]
    if reason := lacking("gcc"):
        pytest.skip(reason)
    tried = subprocess.run(["gcc", "-E", "-include", header, "-x", "c", "/dev/null"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"{header} is not installed here: {packages.named(package).hint}")
    assert folder.exists()


def compiled(form: str, text: str, folder: Path, *more: str) -> None:
    (folder / "placed.c").write_text(text)
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", *more, "-o", folder / "out", folder / "placed.c"]
    done = subprocess.run([*map(str, command), HEADERS[form][1]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", HEADERS)
@pytest.mark.parametrize("profile", Profile.names())
def test_the_c_of_every_plan_of_the_catalog_compiles(form: str, profile: str, tmp_path: Path) -> None:
    compiler(form, tmp_path)
    machine = Machine.load("liu-a")
    threads = min(8, int(machine.data["sockets"][0]["cores"]["value"]))
    made = tierloom.plan(profile, machine, threads=threads, fast_memory="50%").plan()
    text = emit(made, form)
    compiled(form, text, tmp_path, "-c")
    for rule in made.data["rules"]:
        assert f"/* {rule['object']}" in text


MAIN = r"""
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
START
int main(void) {
    size_t bytes = (size_t)16 << 20;
    int (*places[])(void *, size_t) = {place_a, place_a_2, place_quo_ted_name, place_mix};
    PREPARE
    for (int at = 0; at < 4; at++) {
        char *data = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (places[at](data + 1, bytes - 2)) return perror("place"), 1;
        int mode = -1;
        unsigned long nodes[16] = {0};
        if (get_mempolicy(&mode, nodes, 1024, data + bytes / 2, MPOL_F_ADDR)) return perror("get_mempolicy"), 1;
        int edge = -1;
        if (get_mempolicy(&edge, NULL, 0, data, MPOL_F_ADDR)) return perror("get_mempolicy"), 1;
        printf("%d %lu %d\n", mode, nodes[0], edge);
    }
    return 0;
}
"""
PREPARE = {
    "libnuma": "",
    "hwloc": "hwloc_topology_init(&placement_topology); hwloc_topology_load(placement_topology);",
}
BIND, PREFERRED, INTERLEAVE, PREFERRED_MANY = 2, 1, 3, 5


@pytest.mark.parametrize("form", HEADERS)
def test_the_functions_set_the_kernels_policy_on_whole_pages(form: str, tmp_path: Path) -> None:
    compiler(form, tmp_path)
    compiler("libnuma", tmp_path)
    main = MAIN.replace("START", "").replace("PREPARE", PREPARE[form])
    compiled(form, emit(plan(), form) + main, tmp_path, "-Wl,--no-as-needed", "-lnuma")
    done = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=False)
    if done.returncode and "Function not implemented" in done.stderr + done.stdout:
        pytest.skip("the kernel has no memory policies")
    assert done.returncode == 0, done.stderr
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [(nodes, edge) for _, nodes, edge in rows] == [(1, 0)] * 4, "node 0 alone, and nothing at the edges"
    modes = [mode for mode, _, _ in rows]
    assert modes[0] == BIND
    assert modes[1] in (PREFERRED, PREFERRED_MANY)
    assert modes[2] == INTERLEAVE
    assert modes[3] in (PREFERRED, PREFERRED_MANY)


WRITES_DOWN = (
    """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
enum { PREFER };
""",
    r"""
static int place_pages(void *start, size_t bytes, int policy, const int *nodes, int count) {
    printf("%zu %d\n", bytes, nodes[0]);
    return policy != PREFER || count != 1 || !start;
}
""",
)
"""A library that writes down what it is asked."""


@pytest.mark.needs("gcc")
def test_weights_become_stripes_in_turns(tmp_path: Path) -> None:
    text = emit(plan({"mix": "{ weighted = { near = 3, far = 1 } }"}), "libnuma")
    start, end = text.index("static int place_pages"), text.index("/* Stripes of a weighted")
    common = text[text.index("/* The whole pages inside") : start]
    main = "int main(void) { return place_mix((void *)(((uintptr_t)2 << 20) * 5 + 4096), (size_t)20 << 20); }\n"
    (tmp_path / "stripes.c").write_text(WRITES_DOWN[0] + common + WRITES_DOWN[1] + text[end:] + main)
    subprocess.run(["gcc", "-o", tmp_path / "out", tmp_path / "stripes.c"], check=True)
    told = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True).stdout
    runs = [tuple(map(int, line.split())) for line in told.splitlines()]
    page = 4096
    assert runs == [(6 * 2**20 - page, 0), (2 * 2**20, 1), (6 * 2**20, 0), (2 * 2**20, 1), (4 * 2**20 + page, 0)]


SUMS = (
    """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { BIND, PREFER, PREFER_MANY, INTERLEAVE };
static double held[8];
""",
    r"""
static int place_pages(void *start, size_t bytes, int policy, const int *nodes, int count) {
    for (int at = 0; at < count; at++) held[nodes[at]] += (double)bytes / count;
    return !start || policy < 0;
}
static void tell(int (*place)(void *, size_t), size_t bytes) {
    memset(held, 0, sizeof held);
    place((void *)((uintptr_t)1 << 33), bytes);
    for (int node = 0; node < 8; node++) printf("%.0f ", held[node]);
    puts("");
}
""",
)
"""A library that adds up what each node is asked to hold."""


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("profile", Profile.names())
def test_the_c_gives_each_node_the_plans_bytes_object_by_object(profile: str, tmp_path: Path) -> None:
    machine = Machine.load("liu-a")
    threads = min(8, int(machine.data["sockets"][0]["cores"]["value"]))
    made = tierloom.plan(profile, machine, threads=threads, fast_memory="50%").plan()
    text = emit(made, "libnuma")
    steps = [step for step in steps_of(made.data)[:-1] if step.known]
    if not steps:
        assert "int place_" not in text
        return
    ours = text[text.index("/* The whole pages inside") :]
    ours = re.sub(r"static int place_pages\(.*?\n}\n", lambda _: SUMS[1], ours, count=1, flags=re.DOTALL)
    calls = "".join(f"tell(place_{step.identifier}, {step.size_bytes}ull);" for step in steps)
    (tmp_path / "sums.c").write_text(SUMS[0] + ours + f"int main(void) {{ {calls} return 0; }}")
    subprocess.run(["gcc", "-w", "-O1", "-o", tmp_path / "out", tmp_path / "sums.c"], check=True)
    told = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True).stdout
    for step, line in zip(steps, told.splitlines(), strict=True):
        held, pages = list(map(float, line.split())), sum(step.weights.values())
        for node, got in enumerate(held):
            wanted = step.size_bytes * step.weights.get(node, 0) / pages
            assert abs(got - wanted) <= max(step.weights.values()) * (2 << 20) + 8192, (step.object, node)


@pytest.mark.parametrize("profile", Profile.names())
def test_numactl_spreads_memory_as_the_plans_bytes_are(profile: str) -> None:
    made = tierloom.plan(profile, "liu-a", threads=8, fast_memory="50%").plan()
    text = emit(made, "numactl")
    asked = re.search(r"exec numactl --([a-z-]+)=([0-9,]+) -- ", text)
    if asked is None:
        assert {step.mode for step in steps_of(made.data)} == {FIRST_TOUCH}, "nothing is asked where nothing is planned"
        return
    assert asked[1] in ("weighted-interleave", "interleave")
    weights = {int(node): int(weight) for weight, node in re.findall(r"echo (\d+) > \S*/node(\d+)", text)}
    nodes = list(map(int, asked[2].split(",")))
    pages = {node: weights.get(node, 1) for node in nodes}
    planned = made.data["predicted"]["bytes"]
    for node, bytes_ in enumerate(planned):
        share = pages.get(node, 0) / sum(pages.values())
        assert share == pytest.approx(bytes_ / sum(planned), abs=1 / MOST_WEIGHT), node


def shell(text: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "place.sh").write_text(text)
    return subprocess.run(["sh", folder / "place.sh", *words], capture_output=True, text=True, check=False)


def test_one_policy_for_all_is_what_numactl_does(tmp_path: Path) -> None:
    alike = {"a": '{ bind = ["near"] }', "b": '{ bind = ["near"] }'}
    text = emit(plan(alike, default='{ bind = ["near"] }'), "numactl")
    assert 'exec numactl --membind=0 -- "$@"' in text
    assert "Cannot be expressed" not in text
    if shutil.which("numactl"):
        done = shell(text, tmp_path, "echo", "run")
        if "not permitted" not in done.stderr and "not implemented" not in done.stderr:
            assert (done.returncode, done.stdout) == (0, "run\n"), done.stderr


def test_what_numactl_cannot_do_is_said_object_by_object() -> None:
    text = emit(plan(), "numactl")
    assert "# Cannot be expressed" in text
    for name in ("a!", "mix", "small"):
        assert any(line.startswith(f"#   {name}, 4KiB: ") for line in text.splitlines())
    assert "#   echo 3 > /sys/kernel/mm/mempolicy/weighted_interleave/node0" in text
    assert 'exec numactl --weighted-interleave=0,1 -- "$@"' in text


def test_options_and_phases_are_said_to_be_lost() -> None:
    made = plan({"a": '{ prefer_many = ["near", "far"] }'})
    made.data["rules"][0]["options"] = {"hold": True, "hint_faults": False}
    made.data["phases"] = [{"name": "second", "start_s": 1.0, "gain_s": 1.0, "moves": [{"object": "a", "place": "x"}]}]
    for form in WRITERS:
        text = emit(made, form)
        for told in ("hold it against demotion", "hint faults off", "it moves in phase second"):
            assert told in text, form
    assert 'exec numactl --preferred-many=0,1 -- "$@"' in emit(made, "numactl")
    assert "PREFER_MANY, nodes, 2" in emit(made, "libnuma")


def test_first_touch_needs_no_numactl(tmp_path: Path) -> None:
    done = shell(emit(plan({"a": '"first_touch"'}), "numactl"), tmp_path, "echo", "run")
    assert (done.returncode, done.stdout) == (0, "run\n")


def test_a_form_that_is_not_known_is_refused() -> None:
    with pytest.raises(RequestError, match="use one of: numactl, libnuma, hwloc"):
        emit(plan(), "memkind")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(
        st.text(st.characters(exclude_characters="'", exclude_categories=["Cs"]), min_size=1), max_size=5, unique=True
    )
)
def test_any_name_stays_inside_its_comment(names: list[str]) -> None:
    made = plan()
    made.data["rules"] = [{**made.data["rules"][0], "object": name} for name in names]
    for form in WRITERS:
        text = emit(made, form)
        if form == "numactl":
            assert all(line.startswith(("#", "exec")) for line in text.split("\n") if line)
        else:
            assert text.count("int place_") >= len(names)
            assert text.count("/*") >= text.count("*/")
