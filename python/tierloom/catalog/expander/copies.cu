// Host-to-device copies and loads of pinned host memory, for `tierloom expand calibrate`.
// Prints one JSON document. Build: nvcc -O2 copies.cu -o copies
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t error = (call);                                              \
        if (error != cudaSuccess) {                                              \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));       \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

// One thread follows pointers, so that every load waits for the one before.
__global__ void chase(const unsigned *next, unsigned steps, unsigned *last) {
    unsigned at = 0;
    for (unsigned step = 0; step < steps; ++step) at = *(volatile const unsigned *)&next[at];
    *last = at;
}

static float elapsed_ms(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    return ms;
}

static double chase_ns(const unsigned *next, unsigned steps, unsigned *last, cudaEvent_t from, cudaEvent_t to) {
    chase<<<1, 1>>>(next, steps / 10, last);
    CHECK(cudaEventRecord(from));
    chase<<<1, 1>>>(next, steps, last);
    CHECK(cudaEventRecord(to));
    return elapsed_ms(from, to) * 1e6 / steps;
}

// A cycle through lines of 64 bytes in an order that no prefetcher knows.
static void fill(unsigned *next, unsigned lines) {
    unsigned at = 0, state = 1;
    unsigned *order = (unsigned *)malloc(lines * sizeof(unsigned));
    for (unsigned i = 0; i < lines; ++i) order[i] = i;
    for (unsigned i = lines - 1; i > 0; --i) {
        state = state * 1664525u + 1013904223u;
        unsigned other = (unsigned)(((unsigned long long)state * (i + 1)) >> 32), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (unsigned i = 0; i < lines; ++i) at = order[i], next[at * 16] = order[(i + 1) % lines] * 16;
    free(order);
}

int main() {
    const size_t most = (size_t)4 << 30;
    const unsigned lines = 1u << 21, steps = 20000;
    size_t free_bytes = 0, total = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    size_t bytes = most;
    while (bytes > free_bytes / 2) bytes /= 2;
    char *host, *device;
    CHECK(cudaHostAlloc((void **)&host, bytes, cudaHostAllocMapped));
    CHECK(cudaMalloc((void **)&device, bytes));
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    cudaDeviceProp about;
    CHECK(cudaGetDeviceProperties(&about, 0));
    printf("{\"gpu\": \"%s\", \"copies\": [", about.name);
    for (size_t size = 64; size <= bytes; size *= size < 128 ? 2 : 4) {
        int count = size < ((size_t)1 << 20) ? 200 : size < ((size_t)1 << 28) ? 20 : 3;
        CHECK(cudaMemcpy(device, host, size, cudaMemcpyHostToDevice));
        CHECK(cudaEventRecord(from));
        for (int i = 0; i < count; ++i) CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice));
        CHECK(cudaEventRecord(to));
        printf("%s[%zu, %.1f]", size == 64 ? "" : ", ", size, elapsed_ms(from, to) * 1e6 / count);
    }
    unsigned *mapped, *last;
    CHECK(cudaMalloc((void **)&last, sizeof(unsigned)));
    CHECK(cudaHostGetDevicePointer((void **)&mapped, host, 0));
    fill((unsigned *)host, lines);
    double host_ns = chase_ns(mapped, steps, last, from, to);
    CHECK(cudaMemcpy(device, host, (size_t)lines * 64, cudaMemcpyHostToDevice));
    double device_ns = chase_ns((unsigned *)device, steps, last, from, to);
    printf("], \"host_load_ns\": %.1f, \"device_load_ns\": %.1f}\n", host_ns, device_ns);
    return 0;
}
