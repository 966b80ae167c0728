"""A plan as C with hwloc: ``hwloc_set_area_membind`` by node, one function an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.exporters import c_source

if TYPE_CHECKING:
    from tierloom.exporters.steps import Step
    from tierloom.schema import PlanDoc

LIBRARY = c_source.Library(
    about="""\
 * Set `placement_topology` to your loaded topology, then call each function where the object is
 * allocated, before it is touched; statics at the start of main. They return 0, or -1 with errno set.
 * Compile with your program and link with -lhwloc. hwloc 2.0 or newer.""",
    preamble="""\
#define _GNU_SOURCE
#include <errno.h>
#include <hwloc.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

hwloc_topology_t placement_topology;

enum { BIND, PREFER, PREFER_MANY, INTERLEAVE };
""",
    place_pages="""\
static int place_pages(void *start, size_t bytes, int policy, const int *nodes, int count) {
    hwloc_membind_policy_t how = policy == INTERLEAVE ? HWLOC_MEMBIND_INTERLEAVE : HWLOC_MEMBIND_BIND;
    int flags = HWLOC_MEMBIND_BYNODESET | (policy == PREFER || policy == PREFER_MANY ? 0 : HWLOC_MEMBIND_STRICT);
    hwloc_nodeset_t set = hwloc_bitmap_alloc();
    if (!set) return -1;
    for (int at = 0; at < count; at++) hwloc_bitmap_set(set, (unsigned)nodes[at]);
    int failed = hwloc_set_area_membind(placement_topology, start, bytes, set, how, flags);
    int why = errno;
    hwloc_bitmap_free(set);
    errno = why;
    return failed ? -1 : 0;
}
""",
)


def write(plan: PlanDoc, steps: list[Step]) -> str:
    """The C file."""
    return c_source.write(LIBRARY, plan, steps)
