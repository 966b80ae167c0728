// Three phases, one after the other: a sum over D (streaming), a walk over the linked list L
// (dependent misses), updates of random bins of H (independent read-modify-writes).
// Each stalls for another reason, so a profiler that counts and one that times must disagree.
// Verified exactly: every number is an integer with a closed form.
#include "truth.hpp"

using namespace tierloom;

// A cache line each.
struct Node {
    Node* next;
    std::uint64_t value;
    std::uint64_t unused[6];
};

ALLOCATED(D)
ALLOCATED(order)
ALLOCATED_BY(L, std::aligned_alloc(64, bytes))
ALLOCATED_BY(H, std::calloc(bytes, 1))

KERNEL void fill(double* D, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        D[i] = static_cast<double>(i % 7);
}
KERNEL double sum_up(const double* D, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
        sum += D[i];
    return sum;
}

// A random order of the nodes (Fisher and Yates).
KERNEL void shuffle(std::uint32_t* order, std::size_t n, std::uint64_t seed) {
    for (std::size_t i = 0; i < n; ++i)
        order[i] = static_cast<std::uint32_t>(i);
    Random random(seed);
    for (std::size_t i = n - 1; i > 0; --i) {
        std::uint32_t& other = order[random.next() % (i + 1)];
        const std::uint32_t kept = order[i];
        order[i] = other;
        other = kept;
    }
}
// One cycle through all nodes in that order; each node holds its place in it.
KERNEL void link(Node* L, const std::uint32_t* order, std::size_t n) {
    const std::uint32_t first = order[0];
    std::uint32_t here = first;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t next = i + 1 < n ? order[i + 1] : first;
        L[here].next = &L[next];
        L[here].value = i;
        here = next;
    }
}
KERNEL std::uint64_t chase(const Node* node, std::size_t steps) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < steps; ++i) {
        sum += node->value;
        node = node->next;
    }
    return sum;
}

KERNEL void update(std::uint32_t* H, std::size_t mask, std::uint64_t seed, std::size_t updates) {
    Random random(seed);
    for (std::size_t i = 0; i < updates; ++i)
        ++H[random.next() & mask];
}
KERNEL std::uint64_t total(const std::uint32_t* H, std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i)
        sum += H[i];
    return sum;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv,
              {"streaming sum, then pointer chase, then histogram",
               "log2 of the elements of D; L has 1/16, H 1/2 of them per thread", 25, 12, 28, 5});
    Ledger ledger("phases", options);
    const std::size_t nd = std::size_t{1} << options.size, nl = nd / 16, nh = nd / 2;
    const std::size_t threads = static_cast<std::size_t>(options.threads);
    const auto D = ledger.heap<double>("D", alloc_D, nd);
    const auto L = ledger.heap<Node>("L", alloc_L, nl);
    const auto H = ledger.heap<std::uint32_t>("H", alloc_H, nh * threads); // one copy a thread
    in_blocks(nd, [&](auto begin, auto end, auto) { fill(D.data(), begin, end); });
    D.writes(nd);
    const auto order = ledger.heap<std::uint32_t>("order", alloc_order, nl);
    shuffle(order.data(), nl, options.seed);
    order.writes(nl), order.updates(2 * (nl - 1));
    link(L.data(), order.data(), nl);
    order.reads(nl), L.writes<std::uint64_t>(2 * nl);
    // Where each block starts its part of the walk.
    std::array<const Node*, BLOCKS> start{};
    for (std::size_t block = 0; block < BLOCKS; ++block)
        start[block] = &L.data()[order.data()[nl * block / BLOCKS]];
    order.reads(BLOCKS);
    std::free(order.data());

    ledger.enter(MAIN);
    const std::size_t sweeps = 4, updates = nd / 4; // a round reads all of D this often
    double sum = 0;
    std::uint64_t walked = 0, rounds_done = 0;
    for (Rounds rounds(options); rounds.next(); ++rounds_done) {
        for (std::size_t sweep = 0; sweep < sweeps; ++sweep)
            sum += sum_blocks<double>(
                nd, [&](auto begin, auto end, auto) { return sum_up(D.data(), begin, end); });
        D.reads(sweeps * nd);
        walked += sum_blocks<std::uint64_t>(
            nl, [&](auto begin, auto end, auto block) { return chase(start[block], end - begin); });
        L.reads<std::uint64_t>(2 * nl);
        in_blocks(updates, [&](auto begin, auto end, auto) {
            std::uint32_t* own = H.data() + nh * static_cast<std::size_t>(omp_get_thread_num());
            update(own, nh - 1, options.seed + begin, end - begin);
        });
        H.updates(updates);
    }

    ledger.enter(CHECK);
    const std::uint64_t counted = sum_blocks<std::uint64_t>(
        nh * threads, [&](auto begin, auto end, auto) { return total(H.data(), begin, end); });
    H.reads(nh * threads);
    double once = 0;
    for (std::size_t i = 0; i < nd; ++i)
        once += static_cast<double>(i % 7);
    const bool right = sum == once * static_cast<double>(sweeps * rounds_done) &&
                       walked == rounds_done * (nl * (nl - 1) / 2) &&
                       counted == rounds_done * updates;
    return ledger.finish(sum + static_cast<double>(walked + counted), right);
}
