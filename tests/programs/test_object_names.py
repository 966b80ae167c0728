"""Objects are named after the variables that they are assigned to: static ones, and local ones by debug information."""

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


def heap_names(tierloom: Tierloom, folder: Path, program: str) -> set[str]:
    """Names of the large objects of a program's heap."""
    answer = tierloom("profile", "-o", "named.profile", "--json", "--", str(folder / program))
    assert answer.exit_code == 0, answer.stderr
    profile = json.loads((folder / "named.profile" / "profile.json").read_text())
    return {item["name"] for item in profile["objects"] if item["kind"] == "heap" and item["size_bytes"] >= 1 << 20}


FORTRAN = """
program cells
  real(8), allocatable :: field(:)
  allocate(field(1000000 + command_argument_count()))
  field = 1
  call work(size(field))
  print *, sum(field)
contains
  subroutine work(n)
    integer :: n
    real(8), allocatable :: other(:)
    allocate(other(n))
    other = 2
    print *, sum(other)
  end subroutine
end program
"""


@pytest.mark.needs("gfortran")
@pytest.mark.parametrize(
    ("optimized", "told"), [("-O0", {"field", "other"}), ("-O1", {"field", "other"}), ("-O2", {"field"})]
)
def test_allocatable_arrays_of_fortran_name_their_allocations(
    optimized: str, told: set[str], tierloom: Tierloom, folder: Path
) -> None:
    # At -O2 gfortran 12 says nowhere where `other` is kept: its allocation stays function and line.
    (folder / "cells.f90").write_text(FORTRAN)
    compiler = ["gfortran", "-g", optimized, "-fno-inline", "-o", "cells", "cells.f90"]
    subprocess.run(compiler, cwd=folder, check=True)
    names = heap_names(tierloom, folder, "cells")
    assert names >= told
    assert all("@cells.f90:" in name for name in names - {"field", "other"})


RUST = """
#[inline(never)]
fn touch(field: &mut [f64]) -> f64 {
    for (at, cell) in field.iter_mut().enumerate() { *cell += at as f64; }
    field[field.len() / 2]
}
fn main() {
    let count = 1_000_000 + std::env::args().count();
    let mut pressure = vec![0.0; count];
    let mut velocity: Vec<f64> = Vec::with_capacity(count);
    velocity.resize(count, 1.0);
    let mut flags = vec![3.0; count].into_boxed_slice();
    println!("{}", touch(&mut pressure) + touch(&mut velocity) + touch(&mut flags));
}
"""


@pytest.mark.needs("rustc")
def test_vectors_of_rust_name_their_allocations(tierloom: Tierloom, folder: Path) -> None:
    (folder / "cells.rs").write_text(RUST)
    subprocess.run(["rustc", "-g", "-O", "-o", "cells", "cells.rs"], cwd=folder, check=True)
    names = heap_names(tierloom, folder, "cells")
    assert names & {"pressure", "velocity", "flags"}
    assert all("@cells.rs:" in name for name in names - {"pressure", "velocity", "flags"})


WRAPPED = """
#include <stdlib.h>
#include <string.h>
typedef struct { double *cells, *faces; } Mesh;
static void *checked(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) exit(1);
    return memset(memory, 1, bytes);
}
__attribute__((noinline)) static void fill(Mesh *mesh, size_t bytes) {
    mesh->cells = checked(bytes);
    mesh->faces = checked(bytes);
}
int main(int count, char **words) {
    size_t bytes = (1 << 21) + count;
    double *field = checked(bytes);
    double *grown = malloc(bytes);
    grown = realloc(memset(grown, 1, bytes),
                    4 * bytes);
    Mesh mesh;
    fill(&mesh, bytes);
    char **rows = calloc(2, sizeof *rows);
    for (int row = 0; row < 2; row++)
        rows[row] = checked(bytes);
    memset(grown, 1, 4 * bytes);
    return field[7] + grown[9] + mesh.cells[3] + mesh.faces[5] + rows[1][3] > 100;
}
"""


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-fno-inline")])
def test_the_variable_of_a_wrapper_names_nothing(flags: tuple[str, ...], tierloom: Tierloom, folder: Path) -> None:
    (folder / "fields.c").write_text(WRAPPED)
    subprocess.run(["gcc", "-g", *flags, "-o", "fields", "fields.c"], cwd=folder, check=True)
    names = heap_names(tierloom, folder, "fields")
    told = {"field", "mesh.cells", "mesh.faces", "grown@fields.c:17", "grown@fields.c:18"}
    assert names > told
    # What the rows point to has no variable of its own, and the wrapper's is that of others, too.
    assert all(name.startswith(("checked@", "main@")) for name in names - told)
