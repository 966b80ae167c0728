// Breadth-first searches, top down, on an undirected R-MAT graph (in the manner of Graph500).
// neighbors is read in bursts, parent at random once an edge; depth only at discovery. With more
// than one thread several may reach for a vertex; each try is one atomic update and is counted.
// Verified as in Graph500: the parents form a tree of edges, and no edge skips a level.
#include <atomic>

#include "rmat.hpp"

using namespace tierloom;

ALLOCATED(parent)
ALLOCATED(depth)
ALLOCATED(frontier)
ALLOCATED(next)

constexpr std::size_t EDGES_A_VERTEX = 6;
constexpr std::uint32_t NONE = ~std::uint32_t{0};

KERNEL void fill(std::uint32_t* x, std::uint32_t value, std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v)
        x[v] = value;
}

// What one block of the frontier did.
struct Progress {
    std::uint64_t scanned = 0, tried = 0, found = 0;
    Progress& operator+=(const Progress& other) {
        scanned += other.scanned;
        tried += other.tried;
        found += other.found;
        return *this;
    }
};

// Finds share one counter in batches, or it would be all that the threads do.
class Queue {
  public:
    Queue(std::uint32_t* next, std::atomic<std::size_t>& length) : next_(next), length_(length) {}
    ~Queue() { flush(); }
    void push(std::uint32_t v) {
        if (count_ == BATCH)
            flush();
        batch_[count_++] = v;
    }

  private:
    static constexpr std::size_t BATCH = 512;
    void flush() {
        const std::size_t at = length_.fetch_add(count_);
        for (std::size_t i = 0; i < count_; ++i)
            next_[at + i] = batch_[i];
        count_ = 0;
    }
    std::uint32_t* next_;
    std::atomic<std::size_t>& length_;
    std::size_t count_ = 0;
    std::uint32_t batch_[BATCH];
};

KERNEL Progress expand(const Graph& graph, const std::uint32_t* frontier, std::uint32_t level,
                       std::uint32_t* parent, std::uint32_t* depth, std::uint32_t* next,
                       std::atomic<std::size_t>& length, std::size_t begin, std::size_t end) {
    const std::uint32_t *const offsets = graph.offsets.data(), *const neighbors =
                                                                   graph.neighbors.data();
    Progress progress;
    Queue queue(next, length);
    for (std::size_t f = begin; f < end; ++f) {
        const std::uint32_t v = frontier[f];
        const std::size_t first = offsets[v], last = offsets[v + 1];
        progress.scanned += last - first;
        for (std::size_t e = first; e < last; ++e) {
            const std::uint32_t w = once(neighbors[e]);
            std::uint32_t expected = NONE;
            if (__atomic_load_n(&parent[w], __ATOMIC_RELAXED) != NONE)
                continue;
            ++progress.tried;
            if (__atomic_compare_exchange_n(&parent[w], &expected, v, false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
                ++progress.found;
                depth[w] = level;
                queue.push(w);
            }
        }
    }
    return progress;
}

// Breaches of the rules among some vertices; adds the depths of the reached ones to `sum`.
KERNEL std::uint64_t breaches(const Graph& graph, const std::uint32_t* parent,
                              const std::uint32_t* depth, std::uint32_t root, std::uint64_t& sum,
                              std::size_t begin, std::size_t end) {
    const std::uint32_t *const offsets = graph.offsets.data(), *const neighbors =
                                                                   graph.neighbors.data();
    std::uint64_t wrong = 0, depths = 0;
    std::size_t e = offsets[begin];
    for (std::size_t v = begin; v < end; ++v) {
        const std::uint32_t own = depth[v], above = parent[v];
        const std::size_t last = offsets[v + 1];
        bool edge_to_parent = v == root || above == NONE;
        for (; e < last; ++e) {
            const std::uint32_t w = once(neighbors[e]), other = depth[w];
            wrong += (own == NONE) != (other == NONE) || (own != NONE && own > other + 1);
            edge_to_parent |= w == above && other + 1 == own;
        }
        wrong += !edge_to_parent || (own == NONE) != (above == NONE);
        depths += own == NONE ? 0 : own;
    }
    sum = depths;
    return wrong;
}

int main(int argc, char** argv) {
    const Options options = parse(argc, argv,
                                  {"breadth-first searches on an R-MAT graph",
                                   "log2 of the vertices; 6 undirected edges each", 22, 8, 26, 3});
    const std::size_t n = std::size_t{1} << options.size, m = n * EDGES_A_VERTEX;
    Ledger ledger("bfs", options);
    const auto edges = make_edges(ledger, options.size, m, options.seed);
    const Graph graph = group(ledger, n, edges, true);
    std::free(edges.data());
    const auto word = [&](const char* name, void* (*site)(std::size_t)) {
        return ledger.heap<std::uint32_t>(name, site, n);
    };
    const auto parent = word("parent", alloc_parent), depth = word("depth", alloc_depth);
    auto frontier = word("frontier", alloc_frontier), next = word("next", alloc_next);

    // A vertex with neighbours, other for each draw.
    std::uint64_t draw = options.seed << 32;
    const auto draw_root = [&] {
        for (;;) {
            const std::uint32_t v = static_cast<std::uint32_t>(mix(draw++) & (n - 1));
            graph.offsets.reads(2);
            if (graph.offsets.data()[v] != graph.offsets.data()[v + 1])
                return v;
        }
    };
    const auto search = [&](std::uint32_t root) {
        for (const auto& x : {parent, depth}) {
            in_blocks(n, [&](auto begin, auto end, auto) { fill(x.data(), NONE, begin, end); });
            x.writes(n);
        }
        parent.data()[root] = root, depth.data()[root] = 0, frontier.data()[0] = root;
        parent.writes(1), depth.writes(1), frontier.writes(1);
        std::size_t width = 1, reached = 1;
        for (std::uint32_t level = 1; width > 0; ++level) {
            std::atomic<std::size_t> length{0};
            const Progress progress = sum_blocks<Progress>(width, [&](auto begin, auto end, auto) {
                return expand(graph, frontier.data(), level, parent.data(), depth.data(),
                              next.data(), length, begin, end);
            });
            frontier.reads(width), graph.offsets.reads(2 * width);
            graph.neighbors.reads(progress.scanned), parent.reads(progress.scanned);
            parent.updates(progress.tried), depth.writes(progress.found);
            next.writes(progress.found);
            width = length;
            reached += width;
            std::swap(frontier, next);
        }
        return reached;
    };

    ledger.enter(MAIN);
    std::uint64_t reached = 0;
    std::uint32_t root = 0;
    for (Rounds rounds(options); rounds.next();) {
        root = draw_root();
        reached += search(root);
    }

    ledger.enter(CHECK);
    std::array<std::uint64_t, BLOCKS> depths{};
    const std::uint64_t wrong = sum_blocks<std::uint64_t>(n, [&](auto begin, auto end, auto block) {
        return breaches(graph, parent.data(), depth.data(), root, depths[block], begin, end);
    });
    graph.offsets.reads(n + blocks_of(n)), graph.neighbors.reads(2 * m);
    depth.reads(n + 2 * m), parent.reads(n);
    std::uint64_t sum = reached;
    for (const std::uint64_t part : depths)
        sum += part;
    return ledger.finish(static_cast<double>(sum), wrong == 0 && reached > 0);
}
