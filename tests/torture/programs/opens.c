/* Opens libraries by RUNPATH, closes them, opens others in their place, and keeps what they allocated. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *kept[40];
    long sum = 0;
    for (int round = 0; round < 40; round++) {
        const char *name = round % 2 ? "libplugin_b.so" : "libplugin_a.so";
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library) return printf("%s\n", dlerror()), 1;
        char *(*work)(size_t) = (char *(*)(size_t))dlsym(library, "plugin_work");
        kept[round] = work(50000 + round);
        sum += kept[round][50000];
        if (dlclose(library)) return 2;
    }
    for (int round = 0; round < 40; round++) sum += kept[round][0], free(kept[round]);
    printf("%ld %s\n", sum, dlopen("libnone.so", RTLD_NOW) ? "opened" : "no libnone");
    return 0;
}
