// Conjugate gradients on a sparse symmetric matrix in CSR form (in the manner of NPB CG).
// a and col are streamed once a round and have most of the bytes; p is gathered at random and,
// where it does not fit the last-level cache, has most of the misses in little memory.
// Verified: the residual that the recurrence carries equals b - Ax, and it has become small.
#include "truth.hpp"

using namespace tierloom;

constexpr std::size_t PARTNERS = 7; // off-diagonal entries of each row
// Above PARTNERS times the largest coupling, 1, so that the matrix is positive definite.
constexpr double DIAGONAL = 7.5;

ALLOCATED(rowptr)
ALLOCATED(col)
ALLOCATED(a)
ALLOCATED(x)
ALLOCATED(r)
ALLOCATED(p)
ALLOCATED(q)

// Row i is coupled with PARTNERS others by s⁻¹(s(i) xor m), with s a bijection that scatters and m
// one mask per partner: columns look random, yet j is a partner of i when i is one of j.
struct Pattern {
    Scatter scatter;
    std::array<std::size_t, PARTNERS> masks{};

    Pattern(std::size_t log_rows, std::uint64_t seed) : scatter(log_rows) {
        const std::size_t rows = std::size_t{1} << log_rows;
        for (std::size_t k = 0; k < PARTNERS; ++k) // all different in their low bits
            masks[k] = (mix(seed + k) & (rows - 1) & ~std::size_t{7}) | (k + 1);
    }
    std::size_t partner(std::size_t row, std::size_t k) const {
        return scatter.inverse(scatter(row) ^ masks[k]);
    }
};

KERNEL void fill_rows(std::uint32_t* rowptr, std::uint32_t* col, double* a, const Pattern& pattern,
                      std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
        std::size_t at = row * (PARTNERS + 1);
        rowptr[row] = static_cast<std::uint32_t>(at);
        col[at] = static_cast<std::uint32_t>(row);
        a[at] = DIAGONAL;
        for (std::size_t k = 0; k < PARTNERS; ++k) {
            ++at;
            const std::size_t column = pattern.partner(row, k);
            col[at] = static_cast<std::uint32_t>(column);
            a[at] = -static_cast<double>(mix(row + column)) * 0x1p-64;
        }
    }
}
// b varies from row to row: a constant one would be solved in a step.
static double right_side(std::size_t row) { return static_cast<double>(row % 5) - 1; }

KERNEL void fill_vectors(double* __restrict__ x, double* __restrict__ r, double* __restrict__ p,
                         std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        const double b = right_side(i);
        x[i] = 0;
        r[i] = b;
        p[i] = b;
    }
}

// q = A p for some rows; returns their part of p·q.
KERNEL double multiply(const std::uint32_t* __restrict__ rowptr,
                       const std::uint32_t* __restrict__ col, const double* __restrict__ a,
                       const double* __restrict__ p, double* __restrict__ q, std::size_t begin,
                       std::size_t end) {
    double dot = 0;
    std::size_t k = rowptr[begin];
    for (std::size_t row = begin; row < end; ++row) {
        const std::size_t last = rowptr[row + 1];
        double sum = 0;
        for (; k < last; ++k)
            sum += a[k] * p[col[k]];
        q[row] = sum;
        dot += sum * p[row];
    }
    return dot;
}
// x += αp, r -= αq; returns r·r.
KERNEL double step(double* __restrict__ x, double* __restrict__ r, const double* __restrict__ p,
                   const double* __restrict__ q, double alpha, std::size_t begin, std::size_t end) {
    double square = 0;
    for (std::size_t i = begin; i < end; ++i) {
        x[i] += alpha * p[i];
        const double left = r[i] - alpha * q[i];
        r[i] = left;
        square += left * left;
    }
    return square;
}
KERNEL void turn(double* __restrict__ p, const double* __restrict__ r, double beta,
                 std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        p[i] = r[i] + beta * p[i];
}
// |b - q|² + |b - q - r|²: how far q = Ax is from b, and r from saying so.
KERNEL double compare(const double* __restrict__ q, const double* __restrict__ r, double& apart,
                      std::size_t begin, std::size_t end) {
    double residual = 0, gap = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const double left = right_side(i) - q[i], difference = left - r[i];
        residual += left * left;
        gap += difference * difference;
    }
    apart = gap;
    return residual;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv, {"sparse conjugate gradients", "log2 of the rows", 22, 6, 26, 20});
    Ledger ledger("cg", options);
    const std::size_t n = std::size_t{1} << options.size, nonzeros = n * (PARTNERS + 1);
    const auto rowptr = ledger.heap<std::uint32_t>("rowptr", alloc_rowptr, n + 1);
    const auto col = ledger.heap<std::uint32_t>("col", alloc_col, nonzeros);
    const auto a = ledger.heap<double>("a", alloc_a, nonzeros);
    const auto x = ledger.heap<double>("x", alloc_x, n), r = ledger.heap<double>("r", alloc_r, n);
    const auto p = ledger.heap<double>("p", alloc_p, n), q = ledger.heap<double>("q", alloc_q, n);
    const Pattern pattern(options.size, options.seed);
    in_blocks(n, [&](auto begin, auto end, auto) {
        fill_rows(rowptr.data(), col.data(), a.data(), pattern, begin, end);
    });
    rowptr.data()[n] = static_cast<std::uint32_t>(nonzeros);
    rowptr.writes(n + 1), col.writes(nonzeros), a.writes(nonzeros);

    // x = 0, r = p = b.
    const auto clear = [&] {
        in_blocks(n, [&](auto begin, auto end, auto) {
            fill_vectors(x.data(), r.data(), p.data(), begin, end);
        });
        x.writes(n), r.writes(n), p.writes(n);
    };
    clear();

    // q = A v; returns v·q.
    const auto apply = [&](const Array<double>& v) {
        const double dot = sum_blocks<double>(n, [&](auto begin, auto end, auto) {
            return multiply(rowptr.data(), col.data(), a.data(), v.data(), q.data(), begin, end);
        });
        rowptr.reads(n + blocks_of(n)), col.reads(nonzeros), a.reads(nonzeros);
        v.reads(nonzeros + n), q.writes(n);
        return dot;
    };

    ledger.enter(MAIN);
    const double start = sum_blocks<double>(n, [](auto begin, auto end, auto) {
        double sum = 0;
        for (std::size_t i = begin; i < end; ++i)
            sum += right_side(i) * right_side(i);
        return sum;
    });
    double rr = start;
    for (Rounds rounds(options); rounds.next();) {
        if (rr < 1e-24 * start) { // solved; again from the start
            clear();
            rr = start;
        }
        const double alpha = rr / apply(p);
        const double next = sum_blocks<double>(n, [&](auto begin, auto end, auto) {
            return step(x.data(), r.data(), p.data(), q.data(), alpha, begin, end);
        });
        x.updates(n), r.updates(n), p.reads(n), q.reads(n);
        const double beta = next / rr;
        rr = next;
        in_blocks(n,
                  [&](auto begin, auto end, auto) { turn(p.data(), r.data(), beta, begin, end); });
        p.updates(n), r.reads(n);
    }

    ledger.enter(CHECK);
    apply(x);
    std::array<double, BLOCKS> apart{};
    const double residual = sum_blocks<double>(n, [&](auto begin, auto end, auto block) {
        return compare(q.data(), r.data(), apart[block], begin, end);
    });
    q.reads(n), r.reads(n);
    double gap = 0;
    for (const double part : apart)
        gap += part;
    const double relative = std::sqrt(residual / start);
    return ledger.finish(relative, std::sqrt(gap / start) < 1e-12 && relative < 0.9);
}
