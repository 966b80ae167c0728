"""A plan as C with libnuma: its node masks and its ``mbind``, one function an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.exporters import c_source

if TYPE_CHECKING:
    from tierloom.exporters.steps import Step
    from tierloom.schema import PlanDoc

LIBRARY = c_source.Library(
    about="""\
 * Call each function where the object is allocated, before it is touched; statics at the start of main.
 * They return 0, or -1 with errno set. Compile with your program and link with -lnuma.""",
    preamble="""\
#define _GNU_SOURCE
#include <numa.h>
#include <numaif.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#ifndef MPOL_PREFERRED_MANY /* Linux 5.15; libnuma 2.0.15 */
#define MPOL_PREFERRED_MANY 5
#endif
enum { BIND = MPOL_BIND, PREFER = MPOL_PREFERRED, PREFER_MANY = MPOL_PREFERRED_MANY, INTERLEAVE = MPOL_INTERLEAVE };
""",
    place_pages="""\
static int place_pages(void *start, size_t bytes, int policy, const int *nodes, int count) {
    struct bitmask *mask = numa_allocate_nodemask();
    for (int at = 0; at < count; at++) numa_bitmask_setbit(mask, (unsigned)nodes[at]);
    long failed = mbind(start, bytes, policy, mask->maskp, mask->size + 1, 0);
    numa_bitmask_free(mask);
    return failed ? -1 : 0;
}
""",
)


def write(plan: PlanDoc, steps: list[Step]) -> str:
    """The C file."""
    return c_source.write(LIBRARY, plan, steps)
