/* The least that a preloaded library can do to an allocator: jump on to libc's. What remains between
 * this and us is what recording costs; what this costs, nobody who is preloaded can save. */
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void __libc_free(void *block);

void *malloc(size_t bytes) { return __libc_malloc(bytes); }

void free(void *block) { __libc_free(block); }
