// Random gathers from three arrays of very different sizes, steered by one streamed index array.
// Latency-bound on A, partly on B; C lives in the cache. Per index: idx 1, A 2, B 1, C 4 accesses.
// Verified exactly: the arrays hold a function of the position that can be had without them.
#include "truth.hpp"

using namespace tierloom;

ALLOCATED(idx)
ALLOCATED(A)
ALLOCATED(B)
ALLOCATED(C)

// Small integers, so that sums of doubles are exact in any order.
static double content(std::size_t i) { return static_cast<double>(i % 13); }

KERNEL void fill_index(std::uint32_t* idx, std::uint64_t seed, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        idx[i] = static_cast<std::uint32_t>(mix(seed + i));
}
KERNEL void fill_content(double* x, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        x[i] = content(i);
}

struct Masks {
    std::size_t a, b, c;
};

KERNEL double gather(const std::uint32_t* idx, const double* A, const double* B, const double* C,
                     Masks mask, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const std::size_t h = idx[i];
        const std::size_t g = h * 2654435761u;
        sum += A[h & mask.a] + A[(g >> 4) & mask.a] + B[(h * 40503u >> 3) & mask.b];
        sum += C[h & mask.c] + C[(h >> 7) & mask.c] + C[(h >> 11) & mask.c] + C[(h >> 15) & mask.c];
    }
    return sum;
}

// The same sum from the index alone.
KERNEL double expect(const std::uint32_t* idx, Masks mask, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const std::size_t h = idx[i];
        const std::size_t g = h * 2654435761u;
        sum += content(h & mask.a) + content((g >> 4) & mask.a);
        sum += content((h * 40503u >> 3) & mask.b);
        for (const int shift : {0, 7, 11, 15})
            sum += content((h >> shift) & mask.c);
    }
    return sum;
}

int main(int argc, char** argv) {
    const Options options = parse(
        argc, argv,
        {"random gathers from arrays of three sizes",
         "log2 of the elements of A; idx, B, C have 1/2, 1/4 of them and 32768", 25, 12, 28, 6});
    Ledger ledger("gather", options);
    const std::size_t na = std::size_t{1} << options.size, nb = na / 4, ni = na / 2;
    const std::size_t nc = na < 32768 ? na : 32768;
    const Masks mask = {na - 1, nb - 1, nc - 1};
    const auto idx = ledger.heap<std::uint32_t>("idx", alloc_idx, ni);
    const auto A = ledger.heap<double>("A", alloc_A, na);
    const auto B = ledger.heap<double>("B", alloc_B, nb);
    const auto C = ledger.heap<double>("C", alloc_C, nc);
    in_blocks(ni, [&](auto begin, auto end, auto) {
        fill_index(idx.data(), options.seed << 32, begin, end);
    });
    idx.writes(ni);
    for (const Array<double>& x : {A, B, C}) {
        in_blocks(x.length(),
                  [&](auto begin, auto end, auto) { fill_content(x.data(), begin, end); });
        x.writes(x.length());
    }

    ledger.enter(MAIN);
    double sum = 0, rounds_done = 0;
    for (Rounds rounds(options); rounds.next(); ++rounds_done) {
        sum += sum_blocks<double>(ni, [&](auto begin, auto end, auto) {
            return gather(idx.data(), A.data(), B.data(), C.data(), mask, begin, end);
        });
        idx.reads(ni), A.reads(2 * ni), B.reads(ni), C.reads(4 * ni);
    }

    ledger.enter(CHECK);
    const double expected = rounds_done * sum_blocks<double>(ni, [&](auto begin, auto end, auto) {
                                return expect(idx.data(), mask, begin, end);
                            });
    idx.reads(ni);
    return ledger.finish(sum, sum == expected);
}
