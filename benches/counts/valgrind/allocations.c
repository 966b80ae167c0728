/* Preloaded into a program under the tool `objects`: tells it of every large block, of static arrays, and of
   threads' stacks. The blocks themselves come from the C library, at the addresses that they have without us.

   Statics are lines "MODULE OFFSET BYTES" (hexadecimal) in the file that OBJECT_COUNTS_STATICS names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "requests.h"

enum { LEAST_BYTES = 32 << 10 }; /* smaller blocks are no objects to Tierloom either */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

#define TELL(request, first, second, third) \
    VALGRIND_DO_CLIENT_REQUEST_STMT(request, (first), (second), (third), 0, 0)

static inline __attribute__((always_inline)) void *told(void *block, size_t bytes)
{
    if (block && bytes >= LEAST_BYTES) TELL(REQUEST_BLOCK, block, bytes, KIND_HEAP);
    return block;
}

static void forget(void *block)
{
    if (block) TELL(REQUEST_FREED, block, 0, 0);
}

void *malloc(size_t bytes) { return told(__libc_malloc(bytes), bytes); }

void *calloc(size_t count, size_t bytes) { return told(__libc_calloc(count, bytes), count * bytes); }

void *realloc(void *old, size_t bytes)
{
    forget(old);
    return told(__libc_realloc(old, bytes), bytes);
}

void *memalign(size_t alignment, size_t bytes) { return told(__libc_memalign(alignment, bytes), bytes); }

void *aligned_alloc(size_t alignment, size_t bytes) { return told(__libc_memalign(alignment, bytes), bytes); }

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    void *found = __libc_memalign(alignment, bytes);
    if (!found) return ENOMEM;
    *block = told(found, bytes);
    return 0;
}

void free(void *block)
{
    forget(block);
    __libc_free(block);
}

void *mmap(void *hint, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "mmap");
    void *block = real(hint, bytes, protection, flags, file, offset);
    if (block != MAP_FAILED && flags & MAP_ANONYMOUS && protection & PROT_WRITE && bytes >= LEAST_BYTES)
        TELL(REQUEST_BLOCK, block, bytes, KIND_MMAP);
    return block;
}

void *mmap64(void *hint, size_t bytes, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

/* A thread's own function, behind a note of where its stack is. */
struct start {
    void *(*run)(void *);
    void *argument;
};

static void *started(void *given)
{
    struct start start = *(struct start *)given;
    __libc_free(given);
    pthread_attr_t attributes;
    void *stack;
    size_t bytes;
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        pthread_attr_getstack(&attributes, &stack, &bytes);
        pthread_attr_destroy(&attributes);
        TELL(REQUEST_STACK, stack, bytes, 0);
    }
    return start.run(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) real = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = __libc_malloc(sizeof *start);
    *start = (struct start){run, argument};
    return real(thread, attributes, started, start);
}

/* Where a module was loaded, by the file name of its path; the program itself is the first, without a name. */
struct wanted {
    const char *name;
    uintptr_t base;
    int found, seen;
};

static int is_it(struct dl_phdr_info *info, size_t bytes, void *given)
{
    (void)bytes;
    struct wanted *wanted = given;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = wanted->seen++ ? slash ? slash + 1 : info->dlpi_name : "-";
    wanted->found = !strcmp(name, wanted->name);
    wanted->base = info->dlpi_addr;
    return wanted->found;
}

__attribute__((constructor)) static void tell_statics(void)
{
    const char *path = getenv("OBJECT_COUNTS_STATICS");
    FILE *list = path ? fopen(path, "r") : 0;
    char module[256];
    unsigned long offset, bytes;
    for (unsigned long number = 0; list && fscanf(list, "%255s %lx %lx", module, &offset, &bytes) == 3; number++) {
        struct wanted wanted = {.name = module};
        dl_iterate_phdr(is_it, &wanted);
        if (wanted.found) TELL(REQUEST_STATIC, wanted.base + offset, bytes, number);
    }
    if (list) fclose(list);
}
