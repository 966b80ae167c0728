// What sanitizers look for. Usage: sanitized none|overflow|reuse|leak|undefined|race
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static int shared;
static char *volatile kept;

// Several, and the stack overwritten: no copy of all the pointers may be left anywhere.
static void leak() {
    for (int i = 0; i < 10; i++) kept = static_cast<char *>(memset(malloc(100000), 1, 100000));
    kept = nullptr;
}

static void overwrite_the_stack() {
    volatile char space[16384];
    for (volatile char &byte : space) byte = 0;
}

static int reuse() {
    kept = static_cast<char *>(malloc(100000));
    free(kept);
    return kept[10];
}

static int overflow() {
    kept = static_cast<char *>(malloc(100000));
    return kept[100000 + atoi("3")];
}

static void race() {
    std::thread one([] { for (int i = 0; i < 100000; i++) shared++; });
    for (int i = 0; i < 100000; i++) shared++;
    one.join();
}

int main(int count, char **words) {
    const char *fault = count > 1 ? words[1] : "none";
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back([i] { std::vector<char> block(100000 + i); });
    for (std::thread &thread : threads) thread.join();
    puts("began");
    fflush(stdout);
    volatile int most = 2147483647;
    if (!strcmp(fault, "overflow")) return overflow();
    if (!strcmp(fault, "reuse")) return reuse();
    if (!strcmp(fault, "leak")) leak(), overwrite_the_stack();
    if (!strcmp(fault, "race")) race();
    if (!strcmp(fault, "undefined")) printf("%d\n", most + count > 0);
    puts("ended");
    return 0;
}
