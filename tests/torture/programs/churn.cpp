// Churns blocks of all sizes through the allocator that it is linked with, over threads that free
// each other's; prints a checksum of the contents and whose allocator it was.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

extern "C" int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern "C" int mi_version() __attribute__((weak));
extern "C" const char *tc_version(int *, int *, const char **) __attribute__((weak));

static std::mutex lock;
static std::vector<std::unique_ptr<std::vector<unsigned char>>> shared;
static unsigned long long checksum;

static void churn(unsigned seed) {
    unsigned long long sum = 0;
    for (int round = 0; round < 4000; round++) {
        seed = seed * 1664525u + 1013904223u;
        size_t bytes = seed % 100 == 0 ? 500000 : seed % 10 == 0 ? 40000 + (seed >> 8) % 20000 : 16 + (seed >> 8) % 500;
        auto block = std::make_unique<std::vector<unsigned char>>(bytes, static_cast<unsigned char>(seed >> 16));
        sum += (*block)[bytes - 1];
        std::lock_guard<std::mutex> held(lock);
        shared.push_back(std::move(block));
        if (shared.size() > 300) {
            size_t victim = (seed >> 4) % shared.size();
            std::swap(shared[victim], shared.back());
            shared.pop_back();
        }
    }
    std::lock_guard<std::mutex> held(lock);
    checksum += sum;
}

struct alignas(4096) Page {
    char bytes[65536];
};

int main() {
    std::vector<std::thread> threads;
    for (unsigned i = 1; i <= 4; i++) threads.emplace_back(churn, i * 7919u);
    for (auto &thread : threads) thread.join();
    shared.clear();
    auto *page = new Page;
    auto *pages = new Page[3];
    page->bytes[65535] = pages[2].bytes[0] = 1;
    checksum += reinterpret_cast<size_t>(page) % 4096 + reinterpret_cast<size_t>(pages) % 4096;
    delete page;
    delete[] pages;
#ifndef ABORTS /* mimalloc, built as C, ends the program where others throw */
    try {
        std::vector<char> impossible(static_cast<size_t>(-1) / 4);
    } catch (const std::bad_alloc &) {
        std::puts("bad_alloc");
    }
#endif
    char *none = new (std::nothrow) char[static_cast<size_t>(-1) / 4];
    ::operator delete(::operator new(40000), static_cast<size_t>(40000));
    std::printf("%llu %s %s\n", checksum, none ? "memory" : "no memory",
                mallctl ? "jemalloc" : mi_version ? "mimalloc" : tc_version ? "tcmalloc" : "libc");
    return 0;
}
