/* A library to open: allocates from a function that lies at another place in each build (-DPAD=N). */
#include <stdlib.h>
#include <string.h>
#ifndef PAD
#define PAD 0
#endif
char plugin_table[200000];
int padding(int x) { return x + PAD; }
char *plugin_work(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, PAD + 1, bytes);
    plugin_table[150000]++;
    return block;
}
