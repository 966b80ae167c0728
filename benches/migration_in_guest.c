/* What the kernel's page migration does to a program of two threads: counters over time, as JSON lines.
 *
 *     tierloom lab run --topology two-tier -- ./migration_in_guest cold-first hot
 *
 * Node 0 is DRAM, node 1 a slower node without processors. Each experiment maps memory, touches it once with NUMA
 * balancing off, so that nothing is protected before its clock starts, and then lets two threads touch pages at
 * random. Who watches is another process, because the kernel's scanner works in whichever thread of a process runs.
 * `costs` times the kernel's own functions by its function graph tracer, so that a simulation can be given what events
 * cost in this very guest. For root in a guest of its own: it changes sysctls and leaves them changed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define MIB_PAGES 256UL
#define TRACING "/sys/kernel/tracing"

struct part { char *base; size_t pages; };
struct experiment {
    const char *name;
    int mode;              /* numa_balancing */
    size_t mib[2];         /* regions, in the order of first touch */
    size_t hot_mib;        /* last part of the last region, by threads 0 and 1 */
    int whole_one_in;      /* one touch in so many goes to all pages instead; 0 for none */
    int second_on_first;   /* thread 1 touches all of the first region instead */
    double seconds;
    int traced;
};

static const struct experiment EXPERIMENTS[] = {
    {"costs", 2, {800, 300}, 60, 0, 0, 12, 1},
    {"cold-first", 2, {800, 300}, 60, 0, 0, 40, 0},
    {"hot", 2, {800, 300}, 60, 0, 1, 40, 0},
    {"pressed", 2, {0, 1100}, 110, 16, 0, 30, 0},
    {"pressed-1", 1, {0, 1100}, 110, 16, 0, 25, 0},
    {"cold-first-1", 1, {800, 300}, 60, 0, 0, 30, 0},
    {"resident-1", 1, {0, 400}, 400, 0, 0, 10, 0},
};
static const char *const COUNTERS[] = {
    "numa_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated", "pgpromote_success",
    "pgpromote_candidate", "pgdemote_kswapd", "pgdemote_direct", "pgmigrate_fail", "pgscan_kswapd", "pgsteal_kswapd",
    "pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file", "pgactivate", "pgdeactivate", "kswapd_low_wmark_hit_quickly",
    "kswapd_high_wmark_hit_quickly", "pageoutrun", "slabs_scanned"};
enum { COUNT = sizeof COUNTERS / sizeof *COUNTERS };
static const char *const TIMED = "task_numa_work do_numa_page migrate_misplaced_folio shrink_folio_list";


static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int set(const char *path, const char *value) {
    int file = open(path, O_WRONLY | O_TRUNC);
    int failed = file < 0 || write(file, value, strlen(value)) < 0;
    if (file >= 0) close(file);
    if (failed) fprintf(stderr, "%s: `%s` is not taken\n", path, value);
    return failed;
}

static void counters(long *out) {
    FILE *file = fopen("/proc/vmstat", "r");
    char name[64];
    long value;
    memset(out, 0, COUNT * sizeof *out);
    while (fscanf(file, "%63s %ld", name, &value) == 2)
        for (int i = 0; i < COUNT; i++)
            if (!strcmp(name, COUNTERS[i])) out[i] = value;
    fclose(file);
}

/* Pages of node 0: free as the watermarks see them, on the processors' lists, and page cache. */
static void zones(long out[3]) {
    FILE *file = fopen("/proc/zoneinfo", "r");
    char line[256];
    int node = -1;
    long value;
    out[0] = out[1] = out[2] = 0;
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "Node %d,", &node);
        if (node) continue;
        if (sscanf(line, "  pages free %ld", &value) == 1) out[0] += value;
        if (sscanf(line, " count: %ld", &value) == 1) out[1] += value;
        if (sscanf(line, " nr_inactive_file %ld", &value) == 1 || sscanf(line, " nr_active_file %ld", &value) == 1)
            out[2] += value;
    }
    fclose(file);
}

/* Share of a part of a process that is on node 0, of 1000 pages. */
static double near(pid_t process, struct part part) {
    int here = 0, seen = 0;
    size_t step = part.pages / 1000 | 1;
    for (size_t page = 0; page < part.pages; page += step, seen++) {
        void *address = part.base + page * PAGE;
        int node = -1;
        syscall(SYS_move_pages, process, 1UL, &address, NULL, &node, 0);
        here += node == 0;
    }
    return seen ? (double)here / seen : 0.0;
}

struct worker { struct part most, all; int all_one_in; uint64_t seed; volatile long touches; };
struct shared { struct worker workers[2]; struct part parts[3]; };

static void *touch(void *given) {
    struct worker *w = given;
    uint64_t x = w->seed;
    while (w->touches >= 0) {
        for (int i = 0; i < 64; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            struct part part = w->all_one_in && !(x & (w->all_one_in - 1)) ? w->all : w->most;
            part.base[(x >> 8) % part.pages * PAGE]++;
        }
        w->touches += 64;
    }
    return NULL;
}

/* Calls and time of each traced function, from lines such as ` 1) + 10.012 us | do_numa_page();`. */
static void traced(const char *experiment) {
    FILE *file = fopen(TRACING "/trace", "r");
    char line[256], name[64];
    struct { char name[64]; long calls; double us; } sums[8] = {0};
    while (file && fgets(line, sizeof line, file)) {
        char *unit = strstr(line, " us "), *bar = strchr(line, '|'), *start = unit;
        if (!unit || !bar) continue;
        while (start > line && strchr("0123456789.", start[-1])) start--;
        char *word = strstr(bar, "/*");
        if (sscanf(word ? word + 2 : bar + 1, " %63[a-z0-9_]", name) != 1) continue;
        int i = 0;
        while (i < 7 && sums[i].calls && strcmp(sums[i].name, name)) i++;
        strcpy(sums[i].name, name);
        sums[i].calls++;
        sums[i].us += atof(start);
        if (!strcmp(name, "task_numa_work") && atof(start) > 1000.0)
            printf("{\"experiment\": \"%s\", \"scan_us\": %.0f}\n", experiment, atof(start));
    }
    if (file) fclose(file);
    for (int i = 0; i < 8 && sums[i].calls; i++)
        printf("{\"experiment\": \"%s\", \"function\": \"%s\", \"calls\": %ld, \"us\": %.0f}\n", experiment, sums[i].name,
               sums[i].calls, sums[i].us);
}

static void show(const struct experiment *e, double at, const long *from, const struct shared *shared, pid_t process) {
    static const char *const NAMES[] = {"near_first", "near_second", "near_hot"};
    long now[COUNT], zone[3];
    counters(now);
    zones(zone);
    printf("{\"experiment\": \"%s\", \"time_s\": %.2f, \"touches\": [%ld, %ld], \"free\": %ld, \"on_cpu_lists\": %ld, "
           "\"page_cache\": %ld",
           e->name, at, shared->workers[0].touches, shared->workers[1].touches, zone[0], zone[1], zone[2]);
    for (int i = 0; i < 3 && process; i++) printf(", \"%s\": %.4f", NAMES[i], near(process, shared->parts[i]));
    for (int i = 0; i < COUNT; i++) printf(", \"%s\": %ld", COUNTERS[i], now[i] - from[i]);
    printf("}\n");
    fflush(stdout);
}

static struct part region(size_t mib) {
    struct part part = {NULL, mib * MIB_PAGES};
    if (!mib) return part;
    /* What nobody may touch lies between, or the kernel would join neighbours into one mapping. */
    mmap(NULL, 2UL << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    part.base = mmap(NULL, part.pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return part;
}

/* The program: touches everything, says so, waits for a word, and lets its threads run until it is killed. */
static void program(const struct experiment *e, struct shared *shared, int ready, int go) {
    struct part first = region(e->mib[0]), second = region(e->mib[1]), hot = {NULL, e->hot_mib * MIB_PAGES};
    hot.base = second.base + (second.pages - hot.pages) * PAGE;
    for (size_t page = 0; page < first.pages; page++) first.base[page * PAGE] = 1;
    for (size_t page = 0; page < second.pages; page++) second.base[page * PAGE] = 1;
    shared->workers[0] = (struct worker){hot, second, e->whole_one_in, 88172645463325252ULL, 0};
    shared->workers[1] = (struct worker){e->second_on_first ? first : hot, second, e->whole_one_in, 1234567890123457ULL, 0};
    shared->parts[0] = first, shared->parts[1] = second, shared->parts[2] = hot;
    char word = 0;
    pthread_t threads[2];
    if (write(ready, &word, 1) != 1 || read(go, &word, 1) != 1) _exit(1);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, touch, &shared->workers[i]);
    pause();
}

static void run(const struct experiment *e) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char mode[2] = {(char)('0' + e->mode), 0}, word = 0;
    int ready[2], go[2];
    long from[COUNT];
    fflush(stdout);
    if (pipe(ready) || pipe(go)) return;
    pid_t child = fork();
    if (!child) program(e, shared, ready[1], go[0]);
    if (read(ready[0], &word, 1) != 1) return;
    if (e->traced) set(TRACING "/current_tracer", "function_graph");
    set("/proc/sys/kernel/numa_balancing", mode);
    counters(from);
    show(e, 0.0, from, shared, child);
    double began = seconds_now();
    if (write(go[1], &word, 1) != 1) return;
    while (seconds_now() - began < e->seconds) {
        usleep(1000000);
        show(e, seconds_now() - began, from, shared, 0);
    }
    show(e, seconds_now() - began, from, shared, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    set("/proc/sys/kernel/numa_balancing", "0");
    if (e->traced) traced(e->name), set(TRACING "/current_tracer", "nop");
    munmap(shared, sizeof *shared);
    usleep(500000);
}

int main(int count, char **names) {
    mount("tracefs", TRACING, "tracefs", 0, NULL);
    set("/proc/sys/kernel/numa_balancing", "0");
    set("/sys/kernel/mm/transparent_hugepage/enabled", "never");
    set("/sys/kernel/mm/lru_gen/enabled", "0");
    set("/sys/kernel/mm/numa/demotion_enabled", "1");
    set(TRACING "/buffer_size_kb", "8192");
    set(TRACING "/set_ftrace_filter", TIMED);
    set(TRACING "/options/funcgraph-tail", "1");
    for (int i = 1; i < count; i++)
        for (size_t e = 0; e < sizeof EXPERIMENTS / sizeof *EXPERIMENTS; e++)
            if (!strcmp(names[i], EXPERIMENTS[e].name)) run(&EXPERIMENTS[e]);
    return 0;
}
