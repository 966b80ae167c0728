"""What placing costs: 1 GiB with weights of its own against plain first touch of 1 GiB.

    python benches/placement.py [--node 0] [--repeats 7]

Both weights go to node 0 (`--node`), so that the stripes and all calls are made on any machine; the
time is that of the program between the request for memory and the last page touched, by its own
clock. Interleaved runs, medians, and the spread; the claim is at most 1.2 times first touch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
int main(void) {
    size_t bytes = (size_t)1 << 30;
    double begin = now();
    char *block = malloc(bytes);
    for (size_t at = 0; at < bytes; at += 4096) block[at] = 1;
    printf("%.6f\n", now() - begin);
    return 0;
}
"""

PLAN = """version = 1
machine = "here"
profile = "bench"
policy = "by hand"
nodes = ["first", "second"]
default = "first_touch"
[predicted]
time_s = 1.0
low_s = 1.0
high_s = 1.0
threads = 1
bytes = [0, 0]
"""
RULE = """[[rules]]
object = "block"
size_bytes = 1073741824
select = {{ size_at_least = 1073741824 }}
place = {{ weighted = {{ first = {0}, second = {1} }} }}
"""


def seconds(plan: Path, program: Path, node: int) -> float:
    """The program's own time under a plan."""
    tierloom = Path(sys.executable).parent / "tierloom"
    nodes = ["--node", f"first={node}", "--node", f"second={node}"]
    command = [tierloom, "run", "--plan", plan, *nodes, "--json", "--", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rules = json.loads(done.stdout)["rules"]
    assert all(rule["held"] or rule["object"] == "default" for rule in rules), rules
    return float(done.stderr.split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "touch.c").write_text(PROGRAM)
        program = folder / "touch"
        subprocess.run(["cc", "-O2", "-o", program, folder / "touch.c"], check=True)
        plans = {"first touch": PLAN, "3:1": PLAN + RULE.format(3, 1), "17:14": PLAN + RULE.format(17, 14)}
        times: dict[str, list[float]] = {what: [] for what in plans}
        for _ in range(asked.repeats):
            for number, (what, text) in enumerate(plans.items()):
                path = folder / f"{number}.plan.toml"
                path.write_text(text)
                times[what].append(seconds(path, program, asked.node))
    base = statistics.median(times["first touch"])
    for what, each in times.items():
        median = statistics.median(each)
        print(f"{what:12} {median:.3f} s ({min(each):.3f} to {max(each):.3f}), {median / base:.2f} times first touch")


if __name__ == "__main__":
    main()
