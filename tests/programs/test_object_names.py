"""Objects have the names of the variables that they are assigned to, in programs without debug information."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support import Tierloom

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N (1 << 21)
static double *pressure, *velocity;
double *shared;
static struct { long tag; double *cells; } mesh;

__attribute__((noinline)) static void *checked(size_t bytes) {
    void *found = malloc(bytes);
    if (!found) { fputs("no memory\n", stderr); exit(1); }
    memset(found, 0, bytes);
    return found;
}

__attribute__((noinline)) static double *nobodys(void) { return checked(N * sizeof(double)); }

int main(void) {
    pressure = malloc(N * sizeof *pressure);
    velocity = checked(N * sizeof *velocity);
    shared = calloc(N, sizeof *shared);
    mesh.cells = checked(N * sizeof *mesh.cells);
    double *local = nobodys(), sum = 0.0;
    for (int round = 0; round < 30; round++)
        for (long i = 0; i < N; i++) {
            pressure[i] = velocity[i] + shared[i] * 0.5 + mesh.cells[i];
            sum += pressure[i] + (local[i] += 1.0) + (shared[i] += 2.0) + (velocity[i] += 3.0) + (mesh.cells[i] += 4.0);
        }
    return sum < 0.0;
}
"""


VARIABLES = {"pressure", "velocity", "shared", "mesh"}


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O3", "-fno-pie", "-no-pie")], ids=lambda flags: flags[0])
def test_objects_are_named_after_static_variables(flags: tuple[str, ...], tierloom: Tierloom, folder: Path) -> None:
    (folder / "fields.c").write_text(SOURCE)
    subprocess.run(["cc", *flags, "-o", "fields", "fields.c"], cwd=folder, check=True)
    answer = tierloom("profile", "-o", "fields.profile", "--json", "--", str(folder / "fields"))
    assert answer.exit_code == 0, answer.stderr
    profile = json.loads((folder / "fields.profile" / "profile.json").read_text())
    names = {item["name"] for item in profile["objects"] if item["size_bytes"] >= 1 << 24}
    assert names >= VARIABLES
    assert all(name.startswith(("nobodys", "checked", "main")) for name in names - VARIABLES)
