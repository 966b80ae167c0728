// What the recorded programs share: elements whose every access is counted where COUNTED is defined.
//
// COUNT(T) is T itself in the build that is recorded, so its code is what it would be without this
// file. The counted build (always C++, also of a C program) makes it a T that books each read and
// write on the object in which it lies, by its address. Both builds do the same work and print the
// same value; the counted one prints it in a truth file, in the form of `--truth` of the workloads.
//
// An access is an element read or written by the source; a value kept in a local is read once.
// Programs keep in locals what a compiler would keep in registers, so that source and code agree.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// A loop over data: compiled for itself, so that its name is in the profile and no two calls are merged.
#define KERNEL __attribute__((noipa)) static
#define RESTRICT __restrict__

#ifdef COUNTED
#include "books.hpp"
#define COUNT(T) books::Counted<T>
#define OPENED(NAME, KIND, MEMORY, BYTES) books::open(NAME, KIND, MEMORY, BYTES)
#define EXTERN_C extern "C"
#else
#define COUNT(T) T
#define OPENED(NAME, KIND, MEMORY, BYTES) ((void)0)
#ifdef __cplusplus
#define EXTERN_C extern "C"
#else
#define EXTERN_C
#endif
#endif

// The allocation site of object NAME: a function alloc_NAME, by which the object is found in a profile.
// The empty asm keeps its frame: no tail call.
#define ALLOCATED(NAME)                                                                            \
    EXTERN_C __attribute__((noipa)) void *alloc_##NAME(size_t bytes) {                             \
        void *memory = malloc(bytes);                                                              \
        __asm__ volatile("" : "+r"(memory));                                                       \
        if (!memory)                                                                               \
            abort();                                                                               \
        OPENED(#NAME, "heap", memory, bytes);                                                      \
        return memory;                                                                             \
    }
// N elements of type T for object NAME.
#define HEAP(NAME, T, N) ((COUNT(T) *)alloc_##NAME((N) * sizeof(T)))

// SplitMix64: the same numbers in every run.
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Rounds of the main loop: the first argument, else what makes about two seconds.
static inline long rounds(int argc, char **argv, long usual) {
    return argc > 1 ? strtol(argv[1], NULL, 10) : usual;
}

// Prints what came out, and where it was counted, the counts.
static inline int finish(const char *program, double value) {
#ifdef COUNTED
    return books::print(program, value);
#else
    return printf("%s: %.9g\n", program, value) < 0;
#endif
}
