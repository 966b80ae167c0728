// STREAM (McCalpin): copy, scale, add, triad over three long arrays, static as in the original.
// Bandwidth-bound; a is accessed 3, b 3 and c 4 times per element and round. `--heap` puts the
// arrays on the heap. Verified against the values that the recurrence gives for one element.
#include "truth.hpp"

using namespace tierloom;

constexpr std::size_t CAPACITY = 24'000'000;  // doubles an array: 192 MB
double a[CAPACITY], b[CAPACITY], c[CAPACITY]; // not C++ statics: those are called _ZL1a
ALLOCATED(a)
ALLOCATED(b)
ALLOCATED(c)

KERNEL void fill(double* __restrict__ x, double value, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        x[i] = value;
}
KERNEL void copy(const double* __restrict__ x, double* __restrict__ z, std::size_t begin,
                 std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        z[i] = x[i];
}
KERNEL void scale(const double* __restrict__ z, double* __restrict__ y, double s, std::size_t begin,
                  std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        y[i] = s * z[i];
}
KERNEL void add(const double* __restrict__ x, const double* __restrict__ y, double* __restrict__ z,
                std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        z[i] = x[i] + y[i];
}
KERNEL void triad(const double* __restrict__ y, const double* __restrict__ z,
                  double* __restrict__ x, double s, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        x[i] = y[i] + s * z[i];
}
KERNEL double distance(const double* x, double expected, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
        sum += std::fabs(x[i] - expected);
    return sum;
}

// Mean distance of x from the value that each of its elements should have, relative.
static double error(const Array<double>& x, double expected, std::size_t n) {
    const double sum = sum_blocks<double>(n, [&](std::size_t begin, std::size_t end, std::size_t) {
        return distance(x.data(), expected, begin, end);
    });
    x.reads(n);
    return sum / static_cast<double>(n) / std::fabs(expected);
}

int main(int argc, char** argv) {
    const Options options = parse(
        argc, argv,
        {"copy, scale, add, triad", "elements an array", 20'000'000, 1000, CAPACITY, 40, true});
    Ledger ledger("stream", options);
    const std::size_t n = options.size;
    const auto array = [&](const char* name, double* fixed, void* (*site)(std::size_t)) {
        return options.heap ? ledger.heap<double>(name, site, n)
                            : ledger.fixed(name, fixed, CAPACITY);
    };
    const Array<double> x = array("a", a, alloc_a), y = array("b", b, alloc_b),
                        z = array("c", c, alloc_c);
    double *const xs = x.data(), *const ys = y.data(), *const zs = z.data();
    double va = 1, vb = 2, vc = 0;
    in_blocks(n, [&](std::size_t begin, std::size_t end, std::size_t) {
        fill(xs, va, begin, end);
        fill(ys, vb, begin, end);
        fill(zs, vc, begin, end);
    });
    x.writes(n), y.writes(n), z.writes(n);

    ledger.enter(MAIN);
    constexpr double s = 0.4; // keeps the values bounded: one round maps a to 1.16 a
    for (Rounds rounds(options); rounds.next();) {
        in_blocks(n, [&](auto begin, auto end, auto) { copy(xs, zs, begin, end); });
        in_blocks(n, [&](auto begin, auto end, auto) { scale(zs, ys, s, begin, end); });
        in_blocks(n, [&](auto begin, auto end, auto) { add(xs, ys, zs, begin, end); });
        in_blocks(n, [&](auto begin, auto end, auto) { triad(ys, zs, xs, s, begin, end); });
        x.reads(2 * n), x.writes(n);
        y.reads(2 * n), y.writes(n);
        z.reads(2 * n), z.writes(2 * n);
        vc = va, vb = s * vc, vc = va + vb, va = vb + s * vc;
    }

    ledger.enter(CHECK);
    const double worst = std::fmax(error(x, va, n), std::fmax(error(y, vb, n), error(z, vc, n)));
    return ledger.finish(worst, worst < 1e-13);
}
