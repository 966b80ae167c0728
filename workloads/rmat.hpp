// Random graphs with the skewed degrees of social networks (R-MAT, Chakrabarti 2004, with the
// parameters of Graph500), in compressed sparse rows. Built like most graph programs do it: a long
// edge list, which dies as soon as the rows are made of it.
#pragma once

#include "truth.hpp"

ALLOCATED(edges)
ALLOCATED(offsets)
ALLOCATED(neighbors)

namespace tierloom {

struct Edge {
    std::uint32_t source, target;
};

// Edges [begin, end): each descends `scale` times into a quarter of the adjacency matrix, taken
// with chances .57, .19, .19, .05; vertices are then renamed, so that degrees do not follow names.
KERNEL void generate(Edge* edges, std::size_t scale, std::uint64_t seed, std::size_t begin,
                     std::size_t end) {
    constexpr std::uint64_t right = 37356, below = 49807, both = 62259; // of 65536
    const Scatter name(scale);
    for (std::size_t e = begin; e < end; ++e) {
        Random random(seed + e);
        std::uint64_t bits = 0;
        std::size_t from = 0, to = 0;
        for (std::size_t level = 0; level < scale; ++level, bits >>= 16) {
            bits = level % 4 ? bits : random.next();
            const std::uint64_t roll = bits & 0xffff;
            from = 2 * from + (roll >= below);
            to = 2 * to + ((roll >= right && roll < below) || roll >= both);
        }
        edges[e].source = static_cast<std::uint32_t>(name(from));
        edges[e].target = static_cast<std::uint32_t>(name(to));
    }
}

inline Array<Edge> make_edges(Ledger& ledger, std::size_t scale, std::size_t count,
                              std::uint64_t seed) {
    const auto edges = ledger.heap<Edge>("edges", alloc_edges, count);
    in_blocks(count, [&](auto begin, auto end, auto) {
        generate(edges.data(), scale, seed << 36, begin, end);
    });
    edges.writes<std::uint32_t>(2 * count);
    return edges;
}

KERNEL void zero(std::uint32_t* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        x[i] = 0;
}
KERNEL void count_targets(const Edge* edges, std::size_t n, std::uint32_t* counts) {
    for (std::size_t e = 0; e < n; ++e)
        ++counts[edges[e].target];
}
KERNEL void count_sources(const Edge* edges, std::size_t n, std::uint32_t* counts) {
    for (std::size_t e = 0; e < n; ++e)
        ++counts[edges[e].source];
}
KERNEL void sum_up(std::uint32_t* x, std::size_t n) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += x[i];
        x[i] = sum;
    }
}
KERNEL void place_sources(const Edge* edges, std::size_t n, std::uint32_t* next,
                          std::uint32_t* neighbors) {
    for (std::size_t e = 0; e < n; ++e) {
        const std::uint32_t row = edges[e].target, at = next[row];
        next[row] = at + 1;
        neighbors[at] = edges[e].source;
    }
}
KERNEL void place_targets(const Edge* edges, std::size_t n, std::uint32_t* next,
                          std::uint32_t* neighbors) {
    for (std::size_t e = 0; e < n; ++e) {
        const std::uint32_t row = edges[e].source, at = next[row];
        next[row] = at + 1;
        neighbors[at] = edges[e].target;
    }
}

// Row v: neighbors[offsets[v]] to neighbors[offsets[v + 1]].
struct Graph {
    std::size_t vertices;
    Array<std::uint32_t> offsets, neighbors;
};

// The vertices with an edge to v in row v; those with one from v as well where `both_ways`.
// A counting sort: counts two places ahead of their row, so that after the placing, which moves
// each start to its end, every row starts where it should.
inline Graph group(Ledger& ledger, std::size_t vertices, const Array<Edge>& edges, bool both_ways) {
    const std::size_t n = edges.length(), ways = both_ways ? 2 : 1;
    const auto offsets = ledger.heap<std::uint32_t>("offsets", alloc_offsets, vertices + 2);
    const auto neighbors = ledger.heap<std::uint32_t>("neighbors", alloc_neighbors, ways * n);
    zero(offsets.data(), vertices + 2);
    count_targets(edges.data(), n, offsets.data() + 2);
    if (both_ways)
        count_sources(edges.data(), n, offsets.data() + 2);
    sum_up(offsets.data(), vertices + 2);
    place_sources(edges.data(), n, offsets.data() + 1, neighbors.data());
    if (both_ways)
        place_targets(edges.data(), n, offsets.data() + 1, neighbors.data());
    offsets.writes(vertices + 2), offsets.updates(vertices + 2 + ways * 2 * n);
    edges.reads<std::uint32_t>(ways * 3 * n), neighbors.writes(ways * n);
    return {vertices, offsets, neighbors};
}

} // namespace tierloom
