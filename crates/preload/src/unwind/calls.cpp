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

}  // namespace

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
