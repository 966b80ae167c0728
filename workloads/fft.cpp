// Three-dimensional fast Fourier transform (in the manner of NPB FT): a spectrum u0 decays by
// twiddle each round and is transformed back into u1. Streams u0, twiddle and u1; the passes in y
// and z walk u1 with large strides, a few neighbouring lines at a time through a small buffer.
// Verified by two identities: Parseval's, and one point of u1 summed directly from the spectrum.
#include <vector>

#include "truth.hpp"

using namespace tierloom;

struct Complex {
    double re, im;
};
static Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
static Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
static Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

ALLOCATED_BY(u0, std::aligned_alloc(64, bytes))
ALLOCATED_BY(u1, std::aligned_alloc(64, bytes))
ALLOCATED_BY(twiddle, std::aligned_alloc(64, bytes))

constexpr std::size_t MOST = 512; // points of a line
constexpr std::size_t WIDE = 4;   // lines at a time: complex numbers in a cache line
constexpr double DECAY = 1e-6;    // FT's alpha

// exp(±2πi k/n), k below n.
static std::vector<Complex> roots_of_unity(std::size_t n, int sign) {
    std::vector<Complex> roots(n);
    for (std::size_t k = 0; k < n; ++k) {
        const double angle = sign * 2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
        roots[k] = {std::cos(angle), std::sin(angle)};
    }
    return roots;
}

// In-place radix-2 transform of one line in the buffer (Cooley and Tukey).
static void transform_line(Complex* line, const std::vector<Complex>& roots) {
    const std::size_t n = roots.size();
    for (std::size_t i = 1, j = 0; i < n; ++i) { // bit reversal
        std::size_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j)
            std::swap(line[i], line[j]);
    }
    for (std::size_t half = 1; half < n; half *= 2)
        for (std::size_t start = 0; start < n; start += 2 * half)
            for (std::size_t k = 0; k < half; ++k) {
                const Complex even = line[start + k];
                const Complex odd = line[start + k + half] * roots[k * (n / (2 * half))];
                line[start + k] = even + odd;
                line[start + k + half] = even - odd;
            }
}

// Where the lines of one direction lie: groups of WIDE lines, `apart` from each other, whose
// points are `stride` apart; `inner` groups in a row, then the next row.
struct Direction {
    std::size_t length, stride, apart, groups, inner, inner_step, outer_step;
};

KERNEL void transform(Complex* u, Direction d, const std::vector<Complex>& roots, std::size_t begin,
                      std::size_t end) {
    Complex buffer[WIDE][MOST];
    for (std::size_t group = begin; group < end; ++group) {
        Complex* const first = u + group / d.inner * d.outer_step + group % d.inner * d.inner_step;
        for (std::size_t i = 0; i < d.length; ++i)
            for (std::size_t line = 0; line < WIDE; ++line)
                buffer[line][i] = first[line * d.apart + i * d.stride];
        for (Complex* line : buffer)
            transform_line(line, roots);
        for (std::size_t i = 0; i < d.length; ++i)
            for (std::size_t line = 0; line < WIDE; ++line)
                first[line * d.apart + i * d.stride] = buffer[line][i];
    }
}

KERNEL void fill(Complex* u, std::uint64_t seed, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        Random random(seed + i);
        u[i].re = random.uniform();
        u[i].im = random.uniform();
    }
}

// The grid: nx = ny = n, nz = n / 2 points.
struct Grid {
    std::size_t n;
    std::size_t points() const { return n * n * (n / 2); }
    std::array<Direction, 3> directions() const {
        const std::size_t across = n / WIDE;
        return {{{n, 1, n, n * n / 2 / WIDE, 1, 0, WIDE * n},
                 {n, n, 1, n / 2 * across, across, WIDE, n * n},
                 {n / 2, n * n, 1, n * across, across, WIDE, n}}};
    }
};

// exp(-4 DECAY π² |k|²) with the frequencies k folded to both sides of 0.
KERNEL void fill_twiddle(Grid grid, double* twiddle, std::size_t begin, std::size_t end) {
    const auto folded = [](std::size_t i, std::size_t n) {
        const double k = static_cast<double>(i < n / 2 ? i : n - i);
        return k * k;
    };
    const std::size_t n = grid.n;
    for (std::size_t row = begin; row < end; ++row)
        for (std::size_t i = 0; i < n; ++i) {
            const double square = folded(i, n) + folded(row % n, n) + folded(row / n, n / 2);
            twiddle[row * n + i] = std::exp(-4 * DECAY * M_PI * M_PI * square);
        }
}

KERNEL void evolve(Complex* __restrict__ u0, Complex* __restrict__ u1,
                   const double* __restrict__ twiddle, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        const double factor = twiddle[i];
        const Complex value = {u0[i].re * factor, u0[i].im * factor};
        u0[i] = value;
        u1[i] = value;
    }
}

KERNEL double energy(const Complex* u, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const Complex value = u[i];
        sum += value.re * value.re + value.im * value.im;
    }
    return sum;
}

// The part of some rows of the spectrum in the value at point (px, py, pz), a plain sum.
KERNEL double direct_part(Grid grid, const Complex* u0, const std::vector<Complex>& long_roots,
                          const std::vector<Complex>& short_roots,
                          const std::array<std::size_t, 3>& point, std::size_t begin,
                          std::size_t end) {
    const std::size_t n = grid.n;
    double sum = 0;
    for (std::size_t row = begin; row < end; ++row) {
        const Complex turn =
            long_roots[row % n * point[1] % n] * short_roots[row / n * point[2] % (n / 2)];
        for (std::size_t i = 0; i < n; ++i) {
            const Complex value = u0[row * n + i];
            sum += (value * (turn * long_roots[i * point[0] % n])).re;
        }
    }
    return sum;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv,
              {"three-dimensional fast Fourier transforms",
               "points in x and y, a power of two; half of it in z", 256, 16, MOST, 12});
    const Grid grid{options.size};
    if (grid.n & (grid.n - 1))
        refuse(argv[0], "--size needs a power of two");
    Ledger ledger("fft", options);
    const std::size_t points = grid.points(), rows = points / grid.n;
    const auto u0 = ledger.heap<Complex>("u0", alloc_u0, points);
    const auto u1 = ledger.heap<Complex>("u1", alloc_u1, points);
    const auto twiddle = ledger.heap<double>("twiddle", alloc_twiddle, points);

    const auto transform_all = [&](const Array<Complex>& u, int sign) {
        for (const Direction& d : grid.directions()) {
            const auto roots = roots_of_unity(d.length, sign);
            in_blocks(d.groups, [&](auto begin, auto end, auto) {
                transform(u.data(), d, roots, begin, end);
            });
            u.updates<double>(2 * points);
        }
    };

    in_blocks(points,
              [&](auto begin, auto end, auto) { fill(u0.data(), options.seed << 32, begin, end); });
    u0.writes<double>(2 * points);
    in_blocks(rows,
              [&](auto begin, auto end, auto) { fill_twiddle(grid, twiddle.data(), begin, end); });
    twiddle.writes(points);
    transform_all(u0, -1);

    ledger.enter(MAIN);
    for (Rounds rounds(options); rounds.next();) {
        in_blocks(points, [&](auto begin, auto end, auto) {
            evolve(u0.data(), u1.data(), twiddle.data(), begin, end);
        });
        u0.updates<double>(2 * points), twiddle.reads(points), u1.writes<double>(2 * points);
        transform_all(u1, +1);
    }

    ledger.enter(CHECK);
    const auto energy_of = [&](const Array<Complex>& u) {
        u.reads<double>(2 * points);
        return sum_blocks<double>(
            points, [&](auto begin, auto end, auto) { return energy(u.data(), begin, end); });
    };
    const double spectrum = energy_of(u0) * static_cast<double>(points), space = energy_of(u1);
    const std::array<std::size_t, 3> point = {grid.n / 3, grid.n / 5, grid.n / 7};
    const auto long_roots = roots_of_unity(grid.n, 1), short_roots = roots_of_unity(grid.n / 2, 1);
    const double direct = sum_blocks<double>(rows, [&](auto begin, auto end, auto) {
        return direct_part(grid, u0.data(), long_roots, short_roots, point, begin, end);
    });
    u0.reads<double>(2 * points);
    const double there = u1.data()[(point[2] * grid.n + point[1]) * grid.n + point[0]].re;
    u1.reads<double>(1);
    const double typical = std::sqrt(space / static_cast<double>(points));
    const bool right =
        std::fabs(space / spectrum - 1) < 1e-11 && std::fabs(direct - there) < 1e-9 * typical;
    return ledger.finish(typical / static_cast<double>(points), right);
}
