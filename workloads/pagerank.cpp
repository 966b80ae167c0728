// PageRank, pulling, on an R-MAT graph. neighbors is streamed once a round; contrib is gathered at
// random once an edge and has most of the misses in a few percent of the memory. The edge list
// takes most of the memory at first and is dead afterwards.
// Verified: the ranks stay a probability distribution.
#include "rmat.hpp"

using namespace tierloom;

ALLOCATED(out_degree)
ALLOCATED(ranks)
ALLOCATED(contrib)

constexpr std::size_t EDGES_A_VERTEX = 8;
constexpr double DAMPING = 0.85;

KERNEL void fill(double* x, double value, std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v)
        x[v] = value;
}
// What each vertex gives to each that it points to; returns the rank that points nowhere.
KERNEL double share_out(const double* __restrict__ ranks, const std::uint32_t* __restrict__ degree,
                        double* __restrict__ contrib, std::size_t begin, std::size_t end) {
    double dangling = 0;
    for (std::size_t v = begin; v < end; ++v) {
        const double rank = ranks[v];
        const std::uint32_t out = degree[v];
        dangling += out ? 0 : rank;
        contrib[v] = out ? rank / out : 0;
    }
    return dangling;
}
KERNEL void pull(const std::uint32_t* __restrict__ offsets,
                 const std::uint32_t* __restrict__ neighbors, const double* __restrict__ contrib,
                 double* __restrict__ ranks, double base, std::size_t begin, std::size_t end) {
    std::size_t e = offsets[begin];
    for (std::size_t v = begin; v < end; ++v) {
        const std::size_t last = offsets[v + 1];
        double sum = 0;
        for (; e < last; ++e)
            sum += contrib[neighbors[e]];
        ranks[v] = base + DAMPING * sum;
    }
}
KERNEL double total(const double* x, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t v = begin; v < end; ++v)
        sum += x[v];
    return sum;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv,
              {"PageRank on an R-MAT graph", "log2 of the vertices; 8 edges each", 22, 8, 26, 15});
    const std::size_t n = std::size_t{1} << options.size, m = n * EDGES_A_VERTEX;
    Ledger ledger("pagerank", options);
    const auto edges = make_edges(ledger, options.size, m, options.seed);
    const auto out_degree = ledger.heap<std::uint32_t>("out_degree", alloc_out_degree, n);
    zero(out_degree.data(), n);
    count_sources(edges.data(), m, out_degree.data());
    out_degree.writes(n), out_degree.updates(m), edges.reads<std::uint32_t>(m);
    const Graph graph = group(ledger, n, edges, false);
    std::free(edges.data());
    const auto ranks = ledger.heap<double>("ranks", alloc_ranks, n);
    const auto contrib = ledger.heap<double>("contrib", alloc_contrib, n);
    const double even = 1 / static_cast<double>(n);
    in_blocks(n, [&](auto begin, auto end, auto) { fill(ranks.data(), even, begin, end); });
    ranks.writes(n);

    ledger.enter(MAIN);
    for (Rounds rounds(options); rounds.next();) {
        const double dangling = sum_blocks<double>(n, [&](auto begin, auto end, auto) {
            return share_out(ranks.data(), out_degree.data(), contrib.data(), begin, end);
        });
        ranks.reads(n), out_degree.reads(n), contrib.writes(n);
        const double base = (1 - DAMPING + DAMPING * dangling) * even;
        in_blocks(n, [&](auto begin, auto end, auto) {
            pull(graph.offsets.data(), graph.neighbors.data(), contrib.data(), ranks.data(), base,
                 begin, end);
        });
        graph.offsets.reads(n + blocks_of(n)), graph.neighbors.reads(m), contrib.reads(m);
        ranks.writes(n);
    }

    ledger.enter(CHECK);
    const double sum = sum_blocks<double>(
        n, [&](auto begin, auto end, auto) { return total(ranks.data(), begin, end); });
    ranks.reads(n);
    return ledger.finish(sum, std::fabs(sum - 1) < 1e-9);
}
