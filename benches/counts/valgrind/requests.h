/* What allocations.c tells the tool: client requests, which are no-ops outside of Valgrind. */
#pragma once

#include <valgrind/valgrind.h>

enum {
    REQUEST_BLOCK = VG_USERREQ_TOOL_BASE('O', 'C'), /* address, bytes, kind: allocated here, by this call stack */
    REQUEST_FREED,                                  /* address */
    REQUEST_STATIC,                                 /* address, bytes, number in the list of statics */
    REQUEST_STACK,                                  /* address, bytes: the stack of a thread */
};

enum { KIND_HEAP, KIND_MMAP };
