// Alternating-direction implicit solver (in the manner of NPB SP): five diffusing fields on a
// cube; each step forms rhs from u and forcing and solves tridiagonal systems along x, y and z.
// rhs is swept by everything, u and forcing by little; kappa is read along, lhs is a small scratch
// plane per thread that stays in the cache.
// Verified: the error is an eigenvector of the step, so its exact size after any step is known.
#include "truth.hpp"

using namespace tierloom;

constexpr std::size_t FIELDS = 5;
constexpr double STEP = 40; // time step × diffusivity / spacing²

ALLOCATED(u)
ALLOCATED(rhs)
ALLOCATED(forcing)
ALLOCATED(kappa)
ALLOCATED_BY(lhs, std::calloc(bytes, 1))

// Points 0 to n + 1 each way; those at the ends are the boundary, where everything is 0.
struct Cube {
    std::size_t n;
    std::size_t side() const { return n + 2; }
    std::size_t plane() const { return side() * side(); }
    std::size_t points() const { return side() * plane(); }
    std::uint64_t inside() const { return n * n * n; }
};

// Field m converges to sin(w x) sin(w y) sin(w z), w = (m + 1) π / (n + 1).
struct Waves {
    std::array<std::array<double, 514>, FIELDS> sine{};
    std::array<double, FIELDS> lambda{}; // eigenvalue of -L in one direction
    explicit Waves(std::size_t n) {
        for (std::size_t m = 0; m < FIELDS; ++m) {
            const double angle = M_PI * static_cast<double>(m + 1) / static_cast<double>(n + 1);
            lambda[m] = 2 - 2 * std::cos(angle);
            for (std::size_t i = 1; i <= n; ++i)
                sine[m][i] = std::sin(angle * static_cast<double>(i));
        }
    }
    double at(std::size_t m, std::size_t i, std::size_t j, std::size_t k) const {
        return sine[m][i] * sine[m][j] * sine[m][k];
    }
    // What a step leaves of the error of field m.
    double left(std::size_t m) const {
        const double implicit = std::pow(1 + STEP * lambda[m], 3);
        return 1 - 3 * STEP * lambda[m] / implicit;
    }
};

KERNEL void fill(Cube cube, double* __restrict__ u, double* __restrict__ rhs,
                 double* __restrict__ forcing, double* __restrict__ kappa, const Waves& waves,
                 std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 0; j < cube.side(); ++j)
            for (std::size_t i = 0; i < cube.side(); ++i) {
                const std::size_t c = k * cube.plane() + j * cube.side() + i;
                kappa[c] = STEP; // uniform: the exact answer is known
                for (std::size_t m = 0; m < FIELDS; ++m) {
                    u[c * FIELDS + m] = 0;
                    rhs[c * FIELDS + m] = 0;
                    forcing[c * FIELDS + m] = STEP * 3 * waves.lambda[m] * waves.at(m, i, j, k);
                }
            }
}

// rhs = forcing + kappa L u, L the seven-point Laplacian.
KERNEL void compute_rhs(Cube cube, const double* __restrict__ u, double* __restrict__ rhs,
                        const double* __restrict__ forcing, const double* __restrict__ kappa,
                        std::size_t begin, std::size_t end) {
    const std::size_t sx = FIELDS, sy = sx * cube.side(), sz = sx * cube.plane();
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j)
            for (std::size_t i = 1; i <= cube.n; ++i) {
                const std::size_t point = k * cube.plane() + j * cube.side() + i;
                const double diffusivity = kappa[point];
                for (std::size_t c = point * FIELDS; c < (point + 1) * FIELDS; ++c)
                    rhs[c] =
                        forcing[c] + diffusivity * (u[c - sx] + u[c + sx] + u[c - sy] + u[c + sy] +
                                                    u[c - sz] + u[c + sz] - 6 * u[c]);
            }
}

// How a direction walks the cube: plane by plane, rows in it, points in a row; `step` leads to the
// next point of a line, in the cube and in the scratch plane.
struct Sweep {
    std::size_t plane, row, point, step, scratch_step;
};

// Solves (1 - kappa L) d = rhs along the lines of a direction, in place (Thomas).
KERNEL void solve(Cube cube, Sweep s, double* __restrict__ rhs, const double* __restrict__ kappa,
                  double* __restrict__ lhs, std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
        for (std::size_t row = 1; row <= cube.n; ++row)
            for (std::size_t i = 1; i <= cube.n; ++i) {
                const std::size_t c = p * s.plane + row * s.row + i * s.point;
                double* const own = lhs + row * cube.side() + i;
                const double alpha = kappa[c];
                const double scale = 1 / (1 + 2 * alpha - alpha * (own - s.scratch_step)[0]);
                own[0] = alpha * scale;
                double *const here = rhs + c * FIELDS, *const before = here - s.step * FIELDS;
                for (std::size_t m = 0; m < FIELDS; ++m)
                    here[m] = (here[m] + alpha * before[m]) * scale;
            }
        for (std::size_t row = cube.n; row >= 1; --row)
            for (std::size_t i = cube.n; i >= 1; --i) {
                const std::size_t c = p * s.plane + row * s.row + i * s.point;
                const double factor = lhs[row * cube.side() + i];
                double *const here = rhs + c * FIELDS, *const after = here + s.step * FIELDS;
                for (std::size_t m = 0; m < FIELDS; ++m)
                    here[m] += factor * after[m];
            }
    }
}

KERNEL void add(Cube cube, double* __restrict__ u, const double* __restrict__ rhs,
                std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j) {
            const std::size_t c = (k * cube.plane() + j * cube.side() + 1) * FIELDS;
            for (std::size_t i = c; i < c + cube.n * FIELDS; ++i)
                u[i] += rhs[i];
        }
}

KERNEL double square_error(Cube cube, const double* u, const Waves& waves,
                           const std::array<double, FIELDS>& reached, std::size_t begin,
                           std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j)
            for (std::size_t i = 1; i <= cube.n; ++i)
                for (std::size_t m = 0; m < FIELDS; ++m) {
                    const std::size_t point = k * cube.plane() + j * cube.side() + i;
                    const double apart = u[point * FIELDS + m] - reached[m] * waves.at(m, i, j, k);
                    sum += apart * apart;
                }
    return sum;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv,
              {"alternating-direction implicit solver", "inner points an edge", 142, 8, 512, 20});
    const Cube cube{options.size};
    Ledger ledger("adi", options);
    const std::size_t values = cube.points() * FIELDS;
    const auto u = ledger.heap<double>("u", alloc_u, values);
    const auto rhs = ledger.heap<double>("rhs", alloc_rhs, values);
    const auto forcing = ledger.heap<double>("forcing", alloc_forcing, values);
    const auto kappa = ledger.heap<double>("kappa", alloc_kappa, cube.points());
    const auto lhs = ledger.heap<double>("lhs", alloc_lhs,
                                         cube.plane() * static_cast<std::size_t>(options.threads));
    const Waves waves(cube.n);
    in_blocks(cube.side(), [&](auto begin, auto end, auto) {
        fill(cube, u.data(), rhs.data(), forcing.data(), kappa.data(), waves, begin, end);
    });
    u.writes(values), rhs.writes(values), forcing.writes(values), kappa.writes(cube.points());

    const auto inner_planes = [&](auto&& body) {
        in_blocks(cube.n, [&](auto begin, auto end, auto) { body(begin + 1, end + 1); });
    };
    const std::size_t sy = cube.side(), sz = cube.plane();
    const std::array<Sweep, 3> sweeps = {
        {{sz, sy, 1, 1, 1}, {sz, sy, 1, sy, sy}, {sy, sz, 1, sz, sy}}};
    const std::uint64_t inside = cube.inside();

    ledger.enter(MAIN);
    std::array<double, FIELDS> missing;
    missing.fill(1);
    for (Rounds rounds(options); rounds.next();) {
        inner_planes([&](auto begin, auto end) {
            compute_rhs(cube, u.data(), rhs.data(), forcing.data(), kappa.data(), begin, end);
        });
        u.reads(7 * FIELDS * inside), forcing.reads(FIELDS * inside), kappa.reads(inside);
        rhs.writes(FIELDS * inside);
        for (const Sweep& sweep : sweeps) {
            inner_planes([&](auto begin, auto end) {
                const auto thread = static_cast<std::size_t>(omp_get_thread_num());
                double* const own = lhs.data() + cube.plane() * thread;
                solve(cube, sweep, rhs.data(), kappa.data(), own, begin, end);
            });
            rhs.reads(4 * FIELDS * inside), rhs.writes(2 * FIELDS * inside);
            kappa.reads(inside), lhs.reads(2 * inside), lhs.writes(inside);
        }
        inner_planes([&](auto begin, auto end) { add(cube, u.data(), rhs.data(), begin, end); });
        u.updates(FIELDS * inside), rhs.reads(FIELDS * inside);
        for (std::size_t m = 0; m < FIELDS; ++m)
            missing[m] *= waves.left(m);
    }

    ledger.enter(CHECK);
    std::array<double, FIELDS> reached;
    for (std::size_t m = 0; m < FIELDS; ++m)
        reached[m] = 1 - missing[m];
    const double square = sum_blocks<double>(cube.n, [&](auto begin, auto end, auto) {
        return square_error(cube, u.data(), waves, reached, begin + 1, end + 1);
    });
    u.reads(FIELDS * inside);
    const double error = std::sqrt(square / static_cast<double>(inside * FIELDS));
    return ledger.finish(missing[0], error < 1e-12);
}
