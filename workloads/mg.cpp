// Multigrid for the Poisson equation on a cube (in the manner of NPB MG): V-cycles over several
// grid levels, seven-point operator, zero on the boundary. u and r hold all levels, v the finest.
// Streams whole grids: u and r are swept several times a cycle, v only twice.
// Verified: v is made so that the exact discrete solution is known; u must come close to it.
#include <vector>

#include "truth.hpp"

using namespace tierloom;

ALLOCATED(u)
ALLOCATED(v)
ALLOCATED(r)

// The points (i, j, k), 0 to n each way, of one level; n intervals an edge, a power of two.
struct Level {
    std::size_t n, offset; // offset of the level in u and r, in points
    std::size_t side() const { return n + 1; }
    std::size_t plane() const { return side() * side(); }
    std::size_t points() const { return side() * plane(); }
    std::uint64_t inside() const { return (n - 1) * (n - 1) * (n - 1); }
};

// r = v - A u with A u = 6 u - its six neighbours. v may be r.
KERNEL void residual(Level level, const double* __restrict__ u, const double* v, double* r,
                     std::size_t begin, std::size_t end) {
    const std::size_t sy = level.side(), sz = level.plane();
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j < level.n; ++j)
            for (std::size_t c = k * sz + j * sy + 1, last = c + level.n - 1; c < last; ++c)
                r[c] = v[c] - 6 * u[c] +
                       (u[c - 1] + u[c + 1] + u[c - sy] + u[c + sy] + u[c - sz] + u[c + sz]);
}

// u += S r. S = α - βA is the Chebyshev smoother of degree two for A's upper eigenvalues, 2 to 12:
// 1 - αλ + βλ² = T2((7 - λ)/5) / T2(7/5), at most 0.342 there.
constexpr double ALPHA = 1.12 / 2.92, BETA = 0.08 / 2.92;
KERNEL void smooth(Level level, double* __restrict__ u, const double* __restrict__ r,
                   std::size_t begin, std::size_t end) {
    const std::size_t sy = level.side(), sz = level.plane();
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j < level.n; ++j)
            for (std::size_t c = k * sz + j * sy + 1, last = c + level.n - 1; c < last; ++c)
                u[c] += (ALPHA - 6 * BETA) * r[c] + BETA * (r[c - 1] + r[c + 1] + r[c - sy] +
                                                            r[c + sy] + r[c - sz] + r[c + sz]);
}

// Full weighting of the fine r, times 4 for the doubled spacing; x sums are carried along the row.
KERNEL void restrict_to(Level coarse, double* __restrict__ to, Level fine,
                        const double* __restrict__ from, std::size_t begin, std::size_t end) {
    const std::size_t sy = fine.side(), sz = fine.plane();
    const auto across = [=](const double* f) {
        return 0.25 * f[0] + 0.125 * ((f - sy)[0] + f[sy] + (f - sz)[0] + f[sz]) +
               0.0625 * ((f - sz - sy)[0] + (f - sz + sy)[0] + (f + sz - sy)[0] + f[sz + sy]);
    };
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j < coarse.n; ++j) {
            const double* f = from + 2 * k * sz + 2 * j * sy + 1;
            double* const row = to + k * coarse.plane() + j * coarse.side();
            double left = across(f);
            for (std::size_t i = 1; i < coarse.n; ++i, f += 2) {
                const double middle = across(f + 1), right = across(f + 2);
                row[i] = 2 * middle + left + right;
                left = right;
            }
        }
}

// Adds the trilinear interpolation of the coarse grid to the fine one. A fine row lies between four
// coarse rows, which coincide in pairs where it lies on one.
KERNEL void prolong(Level coarse, const double* from, Level fine, double* to, std::size_t begin,
                    std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j < fine.n; ++j) {
            const auto row = [&](std::size_t y, std::size_t z) {
                return from + z * coarse.plane() + y * coarse.side();
            };
            const double *const a = row(j / 2, k / 2), *const b = row((j + 1) / 2, k / 2),
                                *const c = row(j / 2, (k + 1) / 2),
                                *const d = row((j + 1) / 2, (k + 1) / 2);
            double* f = to + k * fine.plane() + j * fine.side();
            double left = 0.25 * (a[0] + b[0] + c[0] + d[0]);
            for (std::size_t i = 1; i <= coarse.n; ++i, f += 2) {
                const double right = 0.25 * (a[i] + b[i] + c[i] + d[i]);
                f[0] += left;
                f[1] += 0.5 * (left + right);
                left = right;
            }
        }
}

KERNEL void clear(double* x, std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c)
        x[c] = 0;
}

// One wave of the solution, sin(mπi/n) in each direction: an eigenvector of A.
struct Wave {
    double eigenvalue;
    std::vector<double> sine;
    Wave(std::size_t n, std::size_t m) : sine(n + 1) {
        const double angle = M_PI * static_cast<double>(m) / static_cast<double>(n);
        eigenvalue = 6 - 6 * std::cos(angle);
        for (std::size_t i = 1; i < n; ++i)
            sine[i] = std::sin(angle * static_cast<double>(i));
    }
    double at(std::size_t i, std::size_t j, std::size_t k) const {
        return sine[i] * sine[j] * sine[k];
    }
};

KERNEL void fill(Level level, double* v, const Wave& slow, const Wave& fast, std::size_t begin,
                 std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 0; j <= level.n; ++j)
            for (std::size_t i = 0; i <= level.n; ++i)
                v[k * level.plane() + j * level.side() + i] =
                    slow.eigenvalue * slow.at(i, j, k) + fast.eigenvalue * fast.at(i, j, k);
}
KERNEL double square_error(Level level, const double* u, const Wave& slow, const Wave& fast,
                           std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k)
        for (std::size_t j = 1; j < level.n; ++j)
            for (std::size_t i = 1; i < level.n; ++i) {
                const double apart = u[k * level.plane() + j * level.side() + i] -
                                     slow.at(i, j, k) - fast.at(i, j, k);
                sum += apart * apart;
            }
    return sum;
}

// Calls body(begin, end) for the inner planes of a level.
template <class Body> void inner_planes(Level level, Body&& body) {
    in_blocks(level.n - 1, [&](auto begin, auto end, auto) { body(begin + 1, end + 1); });
}

class Multigrid {
  public:
    Multigrid(std::vector<Level> levels, Array<double> u, Array<double> v, Array<double> r)
        : levels_(std::move(levels)), u_(u), v_(v), r_(r) {}

    // r becomes the residual of u after the cycle.
    void cycle() const {
        const std::size_t top = levels_.size() - 1;
        for (std::size_t l = top; l > 0; --l)
            down(levels_[l], levels_[l - 1]);
        wipe(levels_[0]);
        relax(levels_[0]);
        for (std::size_t l = 1; l <= top; ++l) {
            if (l < top)
                wipe(levels_[l]);
            up(levels_[l - 1], levels_[l]);
            remain(levels_[l], l < top ? r_ : v_);
            relax(levels_[l]);
        }
        remain(levels_[top], v_);
    }
    // r = right - A u on a level; `right` is v on the finest, r itself elsewhere.
    void remain(Level level, const Array<double>& right) const {
        const bool finest = right.data() == v_.data(); // v has no other level
        const double* const v = right.data() + (finest ? 0 : level.offset);
        inner_planes(level, [&](auto begin, auto end) {
            residual(level, u_.data() + level.offset, v, r_.data() + level.offset, begin, end);
        });
        u_.reads(7 * level.inside()), right.reads(level.inside()), r_.writes(level.inside());
    }

  private:
    void relax(Level level) const {
        inner_planes(level, [&](auto begin, auto end) {
            smooth(level, u_.data() + level.offset, r_.data() + level.offset, begin, end);
        });
        r_.reads(7 * level.inside()), u_.updates(level.inside());
    }
    void down(Level fine, Level coarse) const {
        inner_planes(coarse, [&](auto begin, auto end) {
            restrict_to(coarse, r_.data() + coarse.offset, fine, r_.data() + fine.offset, begin,
                        end);
        });
        const std::uint64_t rows = (coarse.n - 1) * (coarse.n - 1);
        r_.reads(rows * (9 + 18 * (coarse.n - 1))), r_.writes(coarse.inside());
    }
    void up(Level coarse, Level fine) const {
        inner_planes(fine, [&](auto begin, auto end) {
            prolong(coarse, u_.data() + coarse.offset, fine, u_.data() + fine.offset, begin, end);
        });
        const std::uint64_t rows = (fine.n - 1) * (fine.n - 1);
        u_.reads(rows * 4 * coarse.side()), u_.updates(rows * fine.n);
    }
    void wipe(Level level) const {
        in_blocks(level.points(),
                  [&](auto begin, auto end, auto) { clear(u_.data() + level.offset, begin, end); });
        u_.writes(level.points());
    }

    std::vector<Level> levels_; // coarsest first
    Array<double> u_, v_, r_;
};

int main(int argc, char** argv) {
    const Options options = parse(argc, argv,
                                  {"three-dimensional multigrid V-cycles",
                                   "intervals an edge, a power of two", 256, 4, 512, 20});
    const std::size_t n = options.size;
    if (n & (n - 1))
        refuse(argv[0], "--size needs a power of two");
    std::vector<Level> levels;
    std::size_t points = 0;
    for (std::size_t edge = 2; edge <= n; edge *= 2) {
        levels.push_back({edge, points});
        points += levels.back().points();
    }
    const Level finest = levels.back();
    Ledger ledger("mg", options);
    const auto u = ledger.heap<double>("u", alloc_u, points);
    const auto v = ledger.heap<double>("v", alloc_v, finest.points());
    const auto r = ledger.heap<double>("r", alloc_r, points);
    const Wave slow(n, 1), fast(n, n * 3 / 4);
    in_blocks(points, [&](auto begin, auto end, auto) {
        clear(u.data(), begin, end);
        clear(r.data(), begin, end);
    });
    in_blocks(finest.side(),
              [&](auto begin, auto end, auto) { fill(finest, v.data(), slow, fast, begin, end); });
    u.writes(points), r.writes(points), v.writes(finest.points());

    ledger.enter(MAIN);
    const Multigrid multigrid(levels, u, v, r);
    multigrid.remain(finest, v);
    double bound = 1;
    for (Rounds rounds(options); rounds.next(); bound *= 0.6)
        multigrid.cycle();

    ledger.enter(CHECK);
    const double square = sum_blocks<double>(n - 1, [&](auto begin, auto end, auto) {
        return square_error(finest, u.data() + finest.offset, slow, fast, begin + 1, end + 1);
    });
    u.reads(finest.inside());
    const double exact = std::pow(static_cast<double>(n) / 2, 3) * 2; // squared, of both waves
    const double error = std::sqrt(square / exact);
    return ledger.finish(error, error < std::fmax(bound, 1e-11));
}
