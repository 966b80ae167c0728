// What `tierloom expand calibrate` measures of a GPU: copies from and to pinned host memory, loads of one thread,
// reads by all of it, faults of managed memory, and whole kernels on memory of each kind.
// Prints one JSON document. Build: nvcc -O2 -std=c++17 gpu.cu -o gpu
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t error = (call);                                              \
        if (error != cudaSuccess) {                                              \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));       \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr size_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30, LINE = 64;
constexpr int ATTEMPTS = 5, WARPS_OF_BLOCK = 8, BLOCKS_OF_CORE = 4;

static cudaEvent_t begun, ended;
static cudaDeviceProp about;

// Times of one attempt are in ns; of several attempts the median counts.
template <class Body>
static double ns(Body body) {
    float ms = 0;
    CHECK(cudaEventRecord(begun));
    body();
    CHECK(cudaEventRecord(ended));
    CHECK(cudaEventSynchronize(ended));
    CHECK(cudaGetLastError());
    CHECK(cudaEventElapsedTime(&ms, begun, ended));
    return ms * 1e6;
}

template <class Attempt>
static double median(Attempt attempt, int attempts = ATTEMPTS) {
    std::vector<double> times;
    for (int i = 0; i < attempts; ++i) times.push_back(attempt());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// Memory of a kind, filled by the host, so that managed pages are in host memory.
enum class Kind { device, pinned, managed };

struct Memory {
    Kind kind;
    char *pointer = nullptr;

    Memory(Kind kind, size_t bytes, const void *from = nullptr) : kind(kind) {
        if (kind == Kind::managed) CHECK(cudaMallocManaged((void **)&pointer, bytes));
        if (kind == Kind::pinned) CHECK(cudaHostAlloc((void **)&pointer, bytes, cudaHostAllocMapped));
        if (kind == Kind::device) CHECK(cudaMalloc((void **)&pointer, bytes));
        if (kind == Kind::device && from) CHECK(cudaMemcpy(pointer, from, bytes, cudaMemcpyHostToDevice));
        if (kind == Kind::device && !from) CHECK(cudaMemset(pointer, 0, bytes));
        if (kind != Kind::device && from) memcpy(pointer, from, bytes);
        if (kind != Kind::device && !from) memset(pointer, 0, bytes);
        CHECK(cudaDeviceSynchronize());
    }
    Memory(const Memory &) = delete;
    ~Memory() { kind == Kind::pinned ? cudaFreeHost(pointer) : cudaFree(pointer); }
    template <class T>
    T *as() const { return (T *)pointer; }
};

// One thread follows a cycle of lines: every load waits for the one before.
__global__ void chase(const unsigned *next, unsigned steps, unsigned *last) {
    unsigned at = *last;
    for (unsigned step = 0; step < steps; ++step) at = *(volatile const unsigned *)&next[at];
    *last = at;
}

// A cycle through all lines in an order that nothing can guess.
static std::vector<unsigned> cycle(size_t lines) {
    std::vector<unsigned> order(lines), next(lines * (LINE / 4));
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t i = 0; i < lines; ++i) next[order[i] * (LINE / 4)] = order[(i + 1) % lines] * (LINE / 4);
    return next;
}

static double load_ns(Kind kind, const std::vector<unsigned> &next, unsigned warm_up, unsigned steps) {
    Memory memory(kind, next.size() * 4, next.data()), last(Kind::device, 4);
    chase<<<1, 1>>>(memory.as<unsigned>(), warm_up, last.as<unsigned>());
    return median([&] { return ns([&] { chase<<<1, 1>>>(memory.as<unsigned>(), steps, last.as<unsigned>()); }); }) / steps;
}

// Warps have contiguous parts, as in the simulated workloads; 128 bytes an access and warp.
__device__ static void part_of_warp(size_t words, size_t *first, size_t *end) {
    size_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    size_t rows = words / 32;
    *first = rows * warp / warps * 32 + threadIdx.x % 32;
    *end = rows * (warp + 1) / warps * 32;
}

__global__ void sum(const float *a, size_t words, float *out) {
    size_t first, end;
    float total = 0;
    part_of_warp(words, &first, &end);
#pragma unroll 4
    for (size_t i = first; i < end; i += 32) total += a[i];
    if (total == 1e30f) *out = total;
}

__global__ void add(const float *a, const float *b, float *c, size_t words) {
    size_t first, end;
    part_of_warp(words, &first, &end);
#pragma unroll 4
    for (size_t i = first; i < end; i += 32) c[i] = a[i] + b[i];
}

__global__ void saxpy(float factor, const float *x, float *y, size_t words) {
    size_t first, end;
    part_of_warp(words, &first, &end);
#pragma unroll 4
    for (size_t i = first; i < end; i += 32) y[i] += factor * x[i];
}

// Every warp reads the lines that a list of indices names, one line after another in each.
__global__ void gather(const unsigned *lines, size_t count, const float *a, float *out) {
    size_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    float total = 0;
    for (size_t i = count * warp / warps; i < count * (warp + 1) / warps; ++i)
        total += a[(size_t)lines[i] * (LINE / 4) + threadIdx.x % (LINE / 4)];
    if (total == 1e30f) *out = total;
}

// One thread touches a word every so many bytes, one after another: what is there is 0, and says where to go on.
__global__ void touch(const char *data, size_t stride, size_t count, unsigned *out) {
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) at += stride + *(volatile const unsigned *)(data + at);
    *out = (unsigned)at;
}

// Every warp touches one word, all at once.
__global__ void touch_all(const char *data, size_t stride, size_t count, unsigned *out) {
    size_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (warp < count && threadIdx.x % 32 == 0 && *(volatile const unsigned *)(data + warp * stride) == 1) *out = 1;
}

static int blocks() { return about.multiProcessorCount * BLOCKS_OF_CORE; }

static void copies(const char *name, cudaMemcpyKind way, char *to, const char *from, size_t most) {
    printf(", \"%s\": [", name);
    for (size_t size = 64; size <= most; size *= size < 128 ? 2 : 4) {
        int count = size < MIB ? 200 : size < 256 * MIB ? 20 : 3;
        CHECK(cudaMemcpy(to, from, size, way));
        double each = ns([&] { for (int i = 0; i < count; ++i) CHECK(cudaMemcpyAsync(to, from, size, way)); }) / count;
        printf("%s[%zu, %.1f]", size == 64 ? "" : ", ", size, each);
    }
    printf("]");
}

static double one_after_another_ns(size_t stride, size_t count) {
    Memory out(Kind::device, 4);
    return median([&] {
        Memory data(Kind::managed, stride * count + 4);
        return ns([&] { touch<<<1, 1>>>(data.pointer, stride, count, out.as<unsigned>()); });
    });
}

static double all_at_once_ns(size_t stride, size_t count) {
    Memory out(Kind::device, 4);
    return median([&] {
        Memory data(Kind::managed, stride * count);
        return ns([&] { touch_all<<<(count + 7) / 8, 256>>>(data.pointer, stride, count, out.as<unsigned>()); });
    });
}

// A kernel on memory of each kind. Managed pages are there once only: each attempt has its own.
template <class Kernel>
static void kernel(const char *name, size_t bytes, bool more, Kernel launch) {
    printf("%s{\"workload\": \"%s\", \"bytes\": %zu", more ? ", " : "", name, bytes);
    const char *names[] = {"device_ns", "pinned_ns", "managed_ns"};
    for (Kind kind : {Kind::device, Kind::pinned, Kind::managed}) {
        double time;
        if (kind == Kind::managed) {
            time = median([&] { Memory data(kind, bytes); return ns([&] { launch(data.pointer); }); });
        } else {
            Memory data(kind, bytes);
            launch(data.pointer);
            time = median([&] { return ns([&] { launch(data.pointer); }); });
        }
        printf(", \"%s\": %.0f", names[(int)kind], time);
    }
    printf("}");
}

int main() {
    CHECK(cudaGetDeviceProperties(&about, 0));
    CHECK(cudaEventCreate(&begun));
    CHECK(cudaEventCreate(&ended));
    int clock_khz = 0, pageable = 0, concurrent = 0;
    CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
    CHECK(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, 0));
    CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    size_t free_bytes = 0, total = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    if (free_bytes < 4 * GIB) return fprintf(stderr, "less than 4 GiB of GPU memory are free\n"), 1;
    printf("{\"version\": 2, \"gpu\": \"%s\", \"cores\": %d, \"clock_ghz\": %.3f, \"cache_bytes\": %d, \"pageable\": %d",
           about.name, about.multiProcessorCount, clock_khz / 1e6, about.l2CacheSize, pageable);
    {
        size_t most = 2 * GIB;
        Memory host(Kind::pinned, most), device(Kind::device, most), out(Kind::device, 4);
        copies("copies", cudaMemcpyHostToDevice, device.pointer, host.pointer, most);
        copies("copies_out", cudaMemcpyDeviceToHost, host.pointer, device.pointer, most);
        size_t words = most / 4;
        auto read = [&] { sum<<<blocks(), WARPS_OF_BLOCK * 32>>>(device.as<float>(), words, out.as<float>()); };
        read();
        printf(", \"read_gb_s\": %.1f", most / median([&] { return ns(read); }));
    }
    {
        std::vector<unsigned> large = cycle(GIB / LINE), small = cycle(4 * MIB / LINE);
        printf(", \"host_load_ns\": %.1f", load_ns(Kind::pinned, large, 2000, 20000));
        printf(", \"device_load_ns\": %.1f", load_ns(Kind::device, large, 2000, 20000));
        printf(", \"cache_load_ns\": %.1f", load_ns(Kind::device, small, 2 * 4 * MIB / LINE, 20000));
    }
    if (concurrent) {
        printf(", \"faults\": [");
        size_t strides[] = {4 * KIB, 64 * KIB, 2 * MIB};
        for (size_t stride : strides) {
            size_t count = stride == 2 * MIB ? 512 : 128 * MIB / stride;
            printf("{\"touches\": \"one after another\", \"stride\": %zu, \"count\": %zu, \"ns\": %.0f}, ", stride, count,
                   one_after_another_ns(stride, count));
        }
        for (size_t count : {16, 64, 256, 1024})
            printf("%s{\"touches\": \"all at once\", \"stride\": %zu, \"count\": %zu, \"ns\": %.0f}",
                   count == 16 ? "" : ", ", 2 * MIB, count, all_at_once_ns(2 * MIB, count));
        printf("]");
        printf(", \"kernels\": [");
        Memory out(Kind::device, 4);
        size_t bytes = 192 * MIB;
        int threads = WARPS_OF_BLOCK * 32;
        kernel("sum", bytes, false, [&](char *data) {
            sum<<<blocks(), threads>>>((float *)data, bytes / 4, out.as<float>());
        });
        kernel("vadd", bytes, true, [&](char *data) {
            size_t words = bytes / 12;
            float *a = (float *)data;
            add<<<blocks(), threads>>>(a, a + words, a + 2 * words, words);
        });
        kernel("saxpy", bytes, true, [&](char *data) {
            size_t words = bytes / 8;
            saxpy<<<blocks(), threads>>>(2, (float *)data, (float *)data + words, words);
        });
        std::vector<unsigned> lines(bytes / LINE / 4);
        std::mt19937 random(2);
        for (unsigned &line : lines) line = random() % (bytes / LINE);
        Memory chosen(Kind::device, lines.size() * 4, lines.data());
        kernel("gather", bytes, true, [&](char *data) {
            gather<<<blocks(), threads>>>(chosen.as<unsigned>(), lines.size(), (float *)data, out.as<float>());
        });
        printf("]");
    }
    printf("}\n");
    return 0;
}
