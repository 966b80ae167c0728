// Symmetric successive over-relaxation of a nonlinear five-field system (in the manner of NPB LU).
// Each wave front of the sweep forms 5 × 5 Jacobian blocks a, b, c, d from u for its points and
// uses them at once: they take a few percent of the memory and most of the accesses. Verified: the
// forcing is made so that the solution is known; every round must come closer to it.
#include "truth.hpp"

using namespace tierloom;

constexpr std::size_t FIELDS = 5, BLOCK = FIELDS * FIELDS;
constexpr double BEND = 0.1; // strength of the nonlinear part

ALLOCATED(u)
ALLOCATED(rsd)
ALLOCATED(frct)
ALLOCATED(a)
ALLOCATED(b)
ALLOCATED(c)
ALLOCATED(d)

using Vector = std::array<double, FIELDS>;

// How the fields of a point act on each other: antisymmetric, so that it does not spoil dominance.
static double coupling(std::size_t row, std::size_t column) {
    return 0.2 * (static_cast<double>(row) - static_cast<double>(column));
}

// Points 0 to n + 1 each way; u is 0 at the ends. Strides count values, FIELDS a point.
struct Cube {
    std::size_t n;
    std::size_t sx() const { return FIELDS; }
    std::size_t sy() const { return FIELDS * (n + 2); }
    std::size_t sz() const { return sy() * (n + 2); }
    std::size_t values() const { return sz() * (n + 2); }
    std::uint64_t inside() const { return n * n * n; }
    std::size_t at(std::size_t i, std::size_t j, std::size_t k) const {
        return i * sx() + j * sy() + k * sz();
    }
};

// The solution, smooth and rough parts: any values will do.
static double exact(std::size_t m, std::size_t i, std::size_t j, std::size_t k) {
    return static_cast<double>((i * 3 + j * 5 + k * 7 + m * 11) % 16) / 16;
}

// A(u) at a point: 8 u + coupling u + BEND u² / 2 - the neighbours' u + BEND u² / 2.
static double own_part(double u) { return 8 * u + 0.5 * BEND * u * u; }
static double flux(double u) { return u + 0.5 * BEND * u * u; }

KERNEL void set_zero(Cube cube, double* u, std::size_t begin, std::size_t end) {
    for (std::size_t v = begin * cube.sz(); v < end * cube.sz(); ++v)
        u[v] = 0;
}
KERNEL void set_exact(Cube cube, double* u, std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j)
            for (std::size_t i = 1; i <= cube.n; ++i)
                for (std::size_t m = 0; m < FIELDS; ++m)
                    u[cube.at(i, j, k) + m] = exact(m, i, j, k);
}

// to = sign (A(u) - from); `from` may be `to`.
KERNEL void residual(Cube cube, const double* __restrict__ u, const double* from, double* to,
                     double sign, std::size_t begin, std::size_t end) {
    const std::size_t sx = cube.sx(), sy = cube.sy(), sz = cube.sz();
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j)
            for (std::size_t i = 1; i <= cube.n; ++i) {
                const std::size_t p = cube.at(i, j, k);
                Vector here;
                for (std::size_t m = 0; m < FIELDS; ++m)
                    here[m] = u[p + m];
                for (std::size_t m = 0; m < FIELDS; ++m) {
                    const std::size_t v = p + m;
                    double value = own_part(here[m]);
                    for (std::size_t other = 0; other < FIELDS; ++other)
                        value += coupling(m, other) * here[other];
                    value -= flux(u[v - sx]) + flux(u[v + sx]) + flux(u[v - sy]) + flux(u[v + sy]) +
                             flux(u[v - sz]) + flux(u[v + sz]);
                    to[v] = sign * (value - from[v]);
                }
            }
}

// The lines of points (j, k) with j + k = wave: none depends on another.
struct Wave {
    Cube cube;
    std::size_t wave;
    std::size_t first() const { return wave > cube.n ? wave - cube.n : 1; }
    std::size_t lines() const { return (wave > cube.n ? cube.n : wave - 1) + 1 - first(); }
    // First inner point of a line, in values.
    std::size_t start(std::size_t line) const {
        return cube.at(1, first() + line, wave - first() - line);
    }
};

// One line's blocks; consecutive points have consecutive blocks.
struct Jacobian {
    double *a, *b, *c, *d;
    Jacobian at(std::size_t point) const {
        return {a + point * BLOCK, b + point * BLOCK, c + point * BLOCK, d + point * BLOCK};
    }
};

static void set_block(double* block, const double* u, double diagonal, double bend, double fields) {
    for (std::size_t row = 0; row < FIELDS; ++row) {
        const double slope = diagonal + bend * u[row];
        for (std::size_t column = 0; column < FIELDS; ++column)
            block[row * FIELDS + column] =
                fields * coupling(row, column) + (row == column ? slope : 0);
    }
}
// Blocks of dA/du: a, b, c towards the neighbours in z, y, x (side -1 or 1), d the point itself.
KERNEL void form(Wave wave, const double* __restrict__ u, Jacobian jacobian, long side,
                 std::size_t begin, std::size_t end) {
    const Cube cube = wave.cube;
    const long sx = side * static_cast<long>(cube.sx()), sy = side * static_cast<long>(cube.sy()),
               sz = side * static_cast<long>(cube.sz());
    for (std::size_t line = begin; line < end; ++line) {
        const double* here = u + wave.start(line);
        for (std::size_t i = 0; i < cube.n; ++i, here += cube.sx()) {
            const Jacobian j = jacobian.at(line * cube.n + i);
            set_block(j.a, here + sz, -1, -BEND, 0);
            set_block(j.b, here + sy, -1, -BEND, 0);
            set_block(j.c, here + sx, -1, -BEND, 0);
            set_block(j.d, here, 8, BEND, 1);
        }
    }
}

static void subtract_product(Vector& sum, const double* block, const double* x) {
    Vector kept;
    for (std::size_t m = 0; m < FIELDS; ++m)
        kept[m] = once(x[m]);
    for (std::size_t row = 0; row < FIELDS; ++row)
        for (std::size_t column = 0; column < FIELDS; ++column)
            sum[row] -= block[row * FIELDS + column] * kept[column];
}
// x = block⁻¹ x by elimination without pivots: the diagonal dominates.
static void divide(Vector& x, const double* block) {
    double m[FIELDS][FIELDS];
    for (std::size_t i = 0; i < BLOCK; ++i)
        m[i / FIELDS][i % FIELDS] = block[i];
    for (std::size_t pivot = 0; pivot < FIELDS; ++pivot)
        for (std::size_t row = pivot + 1; row < FIELDS; ++row) {
            const double factor = m[row][pivot] / m[pivot][pivot];
            for (std::size_t column = pivot; column < FIELDS; ++column)
                m[row][column] -= factor * m[pivot][column];
            x[row] -= factor * x[pivot];
        }
    for (std::size_t row = FIELDS; row-- > 0;) {
        for (std::size_t column = row + 1; column < FIELDS; ++column)
            x[row] -= m[row][column] * x[column];
        x[row] /= m[row][row];
    }
}
// The neighbours' part of a point: -(a x_z + b x_y + c x_x), from `start`.
static Vector gather(Vector start, const Jacobian& j, const double* z, const double* y,
                     const double* x) {
    subtract_product(start, j.a, z);
    subtract_product(start, j.b, y);
    subtract_product(start, j.c, x);
    return start;
}

// rsd = (D + L)⁻¹ rsd, along the lines of one wave.
KERNEL void lower(Wave wave, double* rsd, Jacobian jacobian, std::size_t begin, std::size_t end) {
    const Cube cube = wave.cube;
    for (std::size_t line = begin; line < end; ++line) {
        double* here = rsd + wave.start(line);
        for (std::size_t i = 0; i < cube.n; ++i, here += cube.sx()) {
            const Jacobian j = jacobian.at(line * cube.n + i);
            Vector own;
            for (std::size_t m = 0; m < FIELDS; ++m)
                own[m] = once(here[m]);
            own = gather(own, j, here - cube.sz(), here - cube.sy(), here - cube.sx());
            divide(own, j.d);
            for (std::size_t m = 0; m < FIELDS; ++m)
                here[m] = own[m];
        }
    }
}
// rsd = (D + U)⁻¹ D rsd.
KERNEL void upper(Wave wave, double* rsd, Jacobian jacobian, std::size_t begin, std::size_t end) {
    const Cube cube = wave.cube;
    for (std::size_t line = begin; line < end; ++line) {
        double* here = rsd + wave.start(line) + (cube.n - 1) * cube.sx();
        for (std::size_t i = cube.n; i-- > 0; here -= cube.sx()) {
            const Jacobian j = jacobian.at(line * cube.n + i);
            Vector change = gather({}, j, here + cube.sz(), here + cube.sy(), here + cube.sx());
            divide(change, j.d);
            for (std::size_t m = 0; m < FIELDS; ++m)
                here[m] += change[m];
        }
    }
}

KERNEL void add(Cube cube, double* __restrict__ u, const double* __restrict__ rsd,
                std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j)
            for (std::size_t v = cube.at(1, j, k), last = v + cube.n * FIELDS; v < last; ++v)
                u[v] += rsd[v];
}
KERNEL double square_error(Cube cube, const double* u, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j <= cube.n; ++j)
            for (std::size_t i = 1; i <= cube.n; ++i)
                for (std::size_t m = 0; m < FIELDS; ++m) {
                    const double apart = u[cube.at(i, j, k) + m] - exact(m, i, j, k);
                    sum += apart * apart;
                }
    return sum;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv,
              {"symmetric successive over-relaxation", "inner points an edge", 110, 8, 400, 5});
    const Cube cube{options.size};
    const std::uint64_t inside = cube.inside(), values = cube.values();
    Ledger ledger("ssor", options);
    const auto u = ledger.heap<double>("u", alloc_u, values);
    const auto rsd = ledger.heap<double>("rsd", alloc_rsd, values);
    const auto frct = ledger.heap<double>("frct", alloc_frct, values);
    const std::size_t entries = cube.n * cube.n * BLOCK; // the widest wave: n lines of n points
    const auto a = ledger.heap<double>("a", alloc_a, entries);
    const auto b = ledger.heap<double>("b", alloc_b, entries);
    const auto c = ledger.heap<double>("c", alloc_c, entries);
    const auto d = ledger.heap<double>("d", alloc_d, entries);
    const Jacobian jacobian{a.data(), b.data(), c.data(), d.data()};

    const auto all_planes = [&](auto&& body) {
        in_blocks(cube.n + 2, [&](auto begin, auto end, auto) { body(begin, end); });
    };
    const auto inner_planes = [&](auto&& body) {
        in_blocks(cube.n, [&](auto begin, auto end, auto) { body(begin + 1, end + 1); });
    };
    // to = sign (A(u) - to), or frct in its place.
    const auto remain = [&](const Array<double>& from, const Array<double>& to, double sign) {
        inner_planes([&](auto begin, auto end) {
            residual(cube, u.data(), from.data(), to.data(), sign, begin, end);
        });
        u.reads(7 * FIELDS * inside), from.reads(FIELDS * inside), to.writes(FIELDS * inside);
    };
    const auto book_sweep = [&] { // forming the blocks and using them, all waves
        u.reads(4 * FIELDS * inside);
        for (const auto& block : {a, b, c, d})
            block.updates(BLOCK * inside);
        rsd.reads(4 * FIELDS * inside), rsd.writes(FIELDS * inside);
    };

    const auto clear = [&](const Array<double>& x) {
        all_planes([&](auto begin, auto end) { set_zero(cube, x.data(), begin, end); });
        x.writes(values);
    };
    for (const auto& x : {u, rsd, frct})
        clear(x);
    inner_planes([&](auto begin, auto end) { set_exact(cube, u.data(), begin, end); });
    u.writes(FIELDS * inside);
    remain(frct, frct, 1); // frct was 0: becomes A of the solution
    clear(u);

    ledger.enter(MAIN);
    double bound = 1;
    for (Rounds rounds(options); rounds.next(); bound *= 0.5) {
        remain(frct, rsd, -1);
        for (std::size_t w = 2; w <= 2 * cube.n; ++w) {
            const Wave wave{cube, w};
            in_blocks(wave.lines(), [&](auto begin, auto end, auto) {
                form(wave, u.data(), jacobian, -1, begin, end);
                lower(wave, rsd.data(), jacobian, begin, end);
            });
        }
        book_sweep();
        for (std::size_t w = 2 * cube.n; w >= 2; --w) {
            const Wave wave{cube, w};
            in_blocks(wave.lines(), [&](auto begin, auto end, auto) {
                form(wave, u.data(), jacobian, 1, begin, end);
                upper(wave, rsd.data(), jacobian, begin, end);
            });
        }
        book_sweep();
        inner_planes([&](auto begin, auto end) { add(cube, u.data(), rsd.data(), begin, end); });
        u.updates(FIELDS * inside), rsd.reads(FIELDS * inside);
    }

    ledger.enter(CHECK);
    const double square = sum_blocks<double>(cube.n, [&](auto begin, auto end, auto) {
        return square_error(cube, u.data(), begin + 1, end + 1);
    });
    u.reads(FIELDS * inside);
    const double error = std::sqrt(square / static_cast<double>(inside * FIELDS));
    return ledger.finish(error, error < std::fmax(bound, 1e-13));
}
