/* Makes objects, touches them, and says on which node each of their pages is, page by page.
 *
 *   objects ACTION...
 *     heap:NAME:BYTES    a block of malloc             mmap:NAME:BYTES   an anonymous mapping
 *     huge:NAME:BYTES    a mapping of huge pages       file:NAME:PATH    a shared mapping of a file
 *     bss:NAME  data:NAME  static arrays of 8 MiB      lib:NAME:PATH     array `far_array` of a library, by dlopen
 *     spill:NAME:BYTES   a mapping of so many bytes more than node 0 has free; of what is free its zones
 *                        keep some 50 MB back from pages that may lie elsewhere, so 0 does
 *     grow:NAME:BYTES    realloc to this size          free:NAME
 *     until:NODE         go on when all pages of all objects are on this node
 *     wait:FILE          say `waiting`, go on when the file is there
 *     idle:SECONDS       do nothing                    spin:SECONDS      read all objects, in two threads
 *     show               one line for each object: NAME ADDRESS NODES
 *
 * NODES is run-length coded: `3x0,1x1,2x-` are three pages on node 0, one on node 1, two not there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, ARRAY = 8 << 20, MOST = 256, CHUNK = 4096 };

char bss_array[ARRAY];
char data_array[ARRAY] = {1};

struct object {
    char name[64];
    char *start;
    size_t bytes;
} objects[MOST];
int count;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(3);
}

static struct object *find(const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(objects[i].name, name)) return &objects[i];
    errno = ENOENT;
    fail(name);
    return NULL;
}

static void add(const char *name, char *start, size_t bytes, int write) {
    if (start == NULL || start == MAP_FAILED) fail(name);
    struct object *object = &objects[count++];
    snprintf(object->name, sizeof object->name, "%s", name);
    object->start = start;
    object->bytes = bytes;
    volatile char sum = 0;
    for (size_t at = 0; at < bytes; at += PAGE)
        if (write) start[at] = 1;
        else sum += start[at];
}

static void show(const struct object *object) {
    char *first = (char *)(((unsigned long)object->start + PAGE - 1) / PAGE * PAGE);
    long pages = (object->start + object->bytes - first) / PAGE, run = 0;
    int last = -9999, status[CHUNK];
    void *page[CHUNK];
    printf("%s %lx ", object->name, (unsigned long)first);
    for (long done = 0; done < pages; done += CHUNK) {
        long n = pages - done < CHUNK ? pages - done : CHUNK;
        for (long i = 0; i < n; i++) page[i] = first + (done + i) * PAGE;
        if (syscall(SYS_move_pages, 0, n, page, NULL, status, 0)) fail("move_pages");
        for (long i = 0; i < n; i++) {
            int node = status[i] < 0 ? -1 : status[i];
            if (node != last && run) {
                if (last < 0) printf("%ldx-,", run);
                else printf("%ldx%d,", run, last);
                run = 0;
            }
            last = node;
            run++;
        }
    }
    if (last < 0) printf("%ldx-\n", run);
    else printf("%ldx%d\n", run, last);
    fflush(stdout);
}

/* Whether every whole page of an object is there and on a node. */
static int is_on(const struct object *object, int node) {
    size_t before = -(size_t)object->start % PAGE;
    for (size_t at = before; at + PAGE <= object->bytes; at += PAGE) {
        void *page = object->start + at;
        int status = -1;
        if (syscall(SYS_move_pages, 0, 1L, &page, NULL, &status, 0)) fail("move_pages");
        if (status != node) return 0;
    }
    return 1;
}

static void wait_until_all_on(int node) {
    for (int i = 0; i < count; i++)
        while (!is_on(&objects[i], node)) usleep(20000);
}

static size_t free_on_node_0(void) {
    FILE *file = fopen("/sys/devices/system/node/node0/meminfo", "r");
    char line[256];
    size_t kib = 0;
    while (file && !kib && fgets(line, sizeof line, file)) sscanf(line, "Node 0 MemFree: %zu", &kib);
    if (!kib) fail("MemFree");
    fclose(file);
    return kib << 10;
}

/* Page tables come only from node 0 where the other is a CXL device's. Made one by one when it is full,
 * each would have the kernel reclaim files' pages there, the code of running programs first. */
static char *with_page_tables(char *start, size_t bytes) {
    if (start != MAP_FAILED && (madvise(start, bytes, MADV_NOHUGEPAGE) || madvise(start, bytes, MADV_POPULATE_READ)))
        fail("madvise");
    return start;
}

static void spin(double seconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    volatile char sum = 0;
    do {
        for (int i = 0; i < count; i++)
            for (size_t at = 0; at < objects[i].bytes; at += PAGE) sum += objects[i].start[at];
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) * 1e-9 < seconds);
}

static void *spin_too(void *seconds) {
    spin(*(double *)seconds);
    return NULL;
}

/* Two threads: with one, the kernel takes no hint faults on pages of that thread's own node. */
static void spin_both(double seconds) {
    pthread_t other;
    if (pthread_create(&other, NULL, spin_too, &seconds)) fail("pthread_create");
    spin(seconds);
    pthread_join(other, NULL);
}

static void map_file(const char *name, const char *path) {
    int file = open(path, O_RDWR);
    struct stat status;
    if (file < 0 || fstat(file, &status)) fail(path);
    char *start = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    add(name, start, status.st_size, 0);
}

static void load(const char *name, const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    char *array = library ? dlsym(library, "far_array") : NULL;
    if (!array) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    /* Allocations as any program makes: the runtime sees the new library at one of them. */
    for (int i = 0; i < 40; i++) {
        usleep(100000);
        void *volatile block = malloc(64 << 10);
        free(block);
    }
    add(name, array, ARRAY, 1);
}

static void act(char *action) {
    char *verb = strtok(action, ":"), *name = strtok(NULL, ":"), *rest = strtok(NULL, "");
    size_t bytes = rest ? strtoull(rest, NULL, 0) : 0;
    int may = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!strcmp(verb, "heap")) add(name, malloc(bytes), bytes, 1);
    else if (!strcmp(verb, "mmap")) add(name, mmap(NULL, bytes, may, flags, -1, 0), bytes, 1);
    else if (!strcmp(verb, "spill")) {
        bytes = (free_on_node_0() + bytes) / PAGE * PAGE;
        add(name, with_page_tables(mmap(NULL, bytes, may, flags, -1, 0), bytes), bytes, 1);
    } else if (!strcmp(verb, "huge")) add(name, mmap(NULL, bytes, may, flags | MAP_HUGETLB, -1, 0), bytes, 1);
    else if (!strcmp(verb, "bss")) add(name, bss_array, ARRAY, 1);
    else if (!strcmp(verb, "data")) add(name, data_array, ARRAY, 1);
    else if (!strcmp(verb, "file")) map_file(name, rest);
    else if (!strcmp(verb, "lib")) load(name, rest);
    else if (!strcmp(verb, "grow")) {
        struct object *object = find(name);
        char *grown = realloc(object->start, bytes);
        object->name[0] = 0;
        add(name, grown, bytes, 1);
    } else if (!strcmp(verb, "free")) {
        struct object *object = find(name);
        free(object->start);
        *object = objects[--count];
    } else if (!strcmp(verb, "wait")) {
        puts("waiting");
        fflush(stdout);
        while (access(name, F_OK)) usleep(20000);
    } else if (!strcmp(verb, "idle")) sleep(atoi(name));
    else if (!strcmp(verb, "until")) wait_until_all_on(atoi(name));
    else if (!strcmp(verb, "spin")) spin_both(atof(name));
    else if (!strcmp(verb, "show"))
        for (int i = 0; i < count; i++) {
            if (objects[i].name[0]) show(&objects[i]);
        }
    else {
        fprintf(stderr, "unknown: %s\n", verb);
        exit(2);
    }
}

int main(int words, char **word) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    for (int i = 1; i < words; i++) act(word[i]);
    return 0;
}
