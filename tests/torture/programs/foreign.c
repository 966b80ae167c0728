/* Frees what it did not allocate itself: blocks of libc's functions, and of libc's own names. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <netdb.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

extern void *__libc_malloc(size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

int main(void) {
    long sum = 0;
    for (int round = 0; round < 200; round++) {
        char *text = NULL, *copy, *path = realpath("/usr/../usr/bin", NULL), *here = getcwd(NULL, 0);
        sum += asprintf(&text, "%0*d", 50000, round);
        copy = strdup(text);
        sum += (long)strlen(copy) + (long)strlen(path) + (here != NULL);
        free(copy), free(text), free(path), free(here);
        size_t size = 0;
        char *stream = NULL;
        FILE *memory = open_memstream(&stream, &size);
        for (int i = 0; i < 5000; i++) fprintf(memory, "%09d\n", i);
        fclose(memory);
        sum += (long)size;
        free(stream);
        wchar_t *wide = wcsdup(L"wide");
        sum += (long)wcslen(wide);
        free(wide);
        /* From one door out, through the other back in. */
        free(__libc_malloc(100)), free(__libc_malloc(100000)), free(__libc_memalign(4096, 70000));
        __libc_free(malloc(100)), __libc_free(malloc(100000)), __libc_free(aligned_alloc(4096, 65536));
    }
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/status", "r");
    sum += getline(&line, &room, file) > 0;
    fclose(file), free(line);
    regex_t pattern;
    sum += regcomp(&pattern, "(a|b)*c{3,9}", REG_EXTENDED);
    regfree(&pattern);
    struct dirent **names;
    int found = scandir("/proc/self/task", &names, NULL, alphasort);
    while (found > 0) free(names[--found]);
    free(names);
    printf("%ld\n", sum);
    return 0;
}
