/* Memory of which every page counts, or whose kind is restricted. Usage: restricted_memory locked|data|executable
 * `locked`: all that it has and will have is locked; `data`: a limit that it uses up to the last 256 KiB;
 * `executable`: no memory may become executable any more. */
#include "case.h"
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static volatile unsigned sum;

static void work(void) {
    for (int i = 0; i < 200000000; i++) sum += (unsigned)i;
}

static long status_kib(const char *format) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (kib < 0 && fgets(line, sizeof line, file)) sscanf(line, format, &kib);
    fclose(file);
    return kib;
}

static void locked(void) {
    must(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
    long before = status_kib("VmLck: %ld");
    work();
    printf("grown %d\n", status_kib("VmLck: %ld") > before + 512);
}

static void data(void) {
    enum { ROOM = 8 * MIB, SPARED = 256 * KIB };
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = (rlim_t)status_kib("VmData: %ld") * KIB + ROOM;
    must(setrlimit(RLIMIT_DATA, &limit), "setrlimit");
    work();
    void *rest = mmap(NULL, ROOM - SPARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("refused %d\n", rest == MAP_FAILED);
}

int main(int count, char **words) {
    if (is(count, words, "locked")) return locked(), 0;
    if (is(count, words, "data")) return data(), 0;
    must(prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0), "prctl");
    work();
    printf("worked %d\n", sum != 0);
    return 0;
}
