// Calls of every kind, for the test beside this file: each function has another kind of frame.
#include <alloca.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Noisy {
    int &count;
    ~Noisy() { count++; }
};

int variable(int n) {
    auto *block = static_cast<volatile char *>(alloca(64 + 48 * n));
    block[0] = static_cast<char>(n);
    return n > 0 ? variable(n - 1) + block[0] : 1;
}

int aligned(int n) {
    alignas(64) volatile int block[32];
    block[n % 32] = n;
    return n > 0 ? aligned(n - 1) + block[n % 32] : variable(2);
}

int aligned_and_variable(int n) {
    alignas(64) volatile int block[16];
    auto *more = static_cast<volatile char *>(alloca(32 * (n + 1)));
    more[0] = 1;
    block[0] = aligned(1);
    return block[0] + more[0];
}

int thrower(int n) {
    int count = 0;
    Noisy noisy{count};
    if (n == 0) throw std::runtime_error("end of the stack");
    return thrower(n - 1) + noisy.count;
}

int caught(int n) {
    try {
        return thrower(n);
    } catch (const std::exception &error) {
        return static_cast<int>(std::strlen(error.what()));
    }
}

int compare(const void *a, const void *b) { return *static_cast<const int *>(a) - *static_cast<const int *>(b); }

// Calls of random kinds, one inside the other, and `look` innermost.
using Look = void (*)();
int tree(unsigned seed, int depth, Look look);

int sorted(unsigned seed, int depth, Look look) {
    static thread_local unsigned next;
    static thread_local int left;
    static thread_local Look innermost;
    next = seed, left = depth, innermost = look;
    int numbers[] = {2, 1};
    std::qsort(numbers, 2, sizeof *numbers, [](const void *a, const void *b) {
        return tree(next, left, innermost) * 0 + compare(a, b);
    });
    return numbers[0];
}

int padded(unsigned seed, int depth, Look look) {
    volatile char block[3000];
    block[seed % 3000] = 1;
    return tree(seed, depth, look) + block[seed % 3000];
}

int spread(unsigned seed, int depth, Look look) {
    auto *block = static_cast<volatile char *>(alloca(16 + seed % 5000));
    block[0] = 1;
    return tree(seed, depth, look) + block[0];
}

int lined_up(unsigned seed, int depth, Look look) {
    alignas(64) volatile int block[16];
    block[seed % 16] = 1;
    return tree(seed, depth, look) + block[seed % 16];
}

int guarded(unsigned seed, int depth, Look look) {
    try {
        if (tree(seed, depth, look) > 0) throw seed;
    } catch (unsigned caught) {
        look();
        return caught != seed;
    }
    return 1;
}

int tree(unsigned seed, int depth, Look look) {
    if (depth == 0) {
        look();
        return 1;
    }
    static int (*const kinds[])(unsigned, int, Look) = {sorted, padded, spread, lined_up, guarded};
    seed = seed * 1664525 + 1013904223;  // Numerical Recipes, 7.1
    return kinds[(seed >> 16) % 5](seed, depth - 1, look) > 0;
}

}  // namespace

extern "C" int any_calls(unsigned seed, int depth, Look look) { return tree(seed, depth, look); }

extern "C" int calls(int n) {
    int numbers[] = {5, 2, 8, 1, 9, 3};
    std::qsort(numbers, 6, sizeof *numbers, compare);
    std::map<std::string, int> words;
    for (int i = 0; i < n; i++) words[std::to_string(i * 7)] = i;
    std::vector<double> values{3.5, 1.5, 2.5};
    std::sort(values.begin(), values.end(), std::greater<>());
    std::function<int(int)> again = [&](int m) { return m > 0 ? again(m - 1) + variable(m) : caught(n); };
    return again(n) + aligned(2) + aligned_and_variable(n) + static_cast<int>(words.size()) + numbers[0];
}
