// Lookups in an ordered index: a B+ tree of 16-way nodes over sorted keys, records elsewhere.
// The few inner nodes stay in the cache, leaves and records are read at random, one dependent step
// after the other. Half of the keys that are asked for exist.
// Verified: as many are found as should be, with the right records.
#include <vector>

#include "truth.hpp"

using namespace tierloom;

constexpr std::size_t WAYS = 16, WORDS = 8; // of a node; of a record

// Inner nodes: the least key below each child, and the child. Leaves: keys, and their records.
struct Node {
    std::uint64_t keys[WAYS];
    std::uint32_t below[WAYS];
};
struct Record {
    std::uint64_t words[WORDS];
};

// Through operator new, as containers do it.
ALLOCATED_BY(inner, ::operator new(bytes, std::nothrow))
ALLOCATED_BY(leaves, ::operator new(bytes, std::nothrow))
ALLOCATED_BY(records, ::operator new(bytes, std::nothrow))

constexpr std::uint64_t NO_KEY = ~std::uint64_t{0};

// The i-th key; ascending and even, so that odd ones are missing.
static std::uint64_t key_of(std::size_t i) { return i * 16 + 2 * (mix(i) % 8); }

// Where the record of the i-th key lies: records were written in another order than that of the
// keys. Cycle-walking restricts the bijection to [0, n).
static std::size_t record_of(const Scatter& scatter, std::size_t i, std::size_t n) {
    std::size_t place = scatter(i);
    while (place >= n)
        place = scatter(place);
    return place;
}

KERNEL void fill_records(Record* records, const Scatter& scatter, std::size_t n, std::size_t begin,
                         std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        Record& record = records[record_of(scatter, i, n)];
        for (std::size_t word = 0; word < WORDS; ++word)
            record.words[word] = key_of(i) + word;
    }
}
KERNEL void fill_leaves(Node* leaves, const Scatter& scatter, std::size_t n, std::size_t begin,
                        std::size_t end) {
    for (std::size_t leaf = begin; leaf < end; ++leaf)
        for (std::size_t slot = 0; slot < WAYS; ++slot) {
            const std::size_t i = leaf * WAYS + slot;
            leaves[leaf].keys[slot] = i < n ? key_of(i) : NO_KEY;
            leaves[leaf].below[slot] =
                i < n ? static_cast<std::uint32_t>(record_of(scatter, i, n)) : 0;
        }
}

// A level of inner nodes over `children` nodes, which hold `span` keys each.
struct Level {
    std::size_t first, nodes, children, span;
};

KERNEL void fill_level(Node* inner, Level level, std::size_t first_child) {
    for (std::size_t node = 0; node < level.nodes; ++node)
        for (std::size_t slot = 0; slot < WAYS; ++slot) {
            const std::size_t child = node * WAYS + slot;
            const bool exists = child < level.children;
            inner[level.first + node].keys[slot] = exists ? key_of(child * level.span) : NO_KEY;
            inner[level.first + node].below[slot] =
                exists ? static_cast<std::uint32_t>(first_child + child) : 0;
        }
}

// Levels from the lowest up, down to one root, in one array.
static std::vector<Level> plan_levels(std::size_t leaves) {
    std::vector<Level> levels;
    std::size_t first = 0, children = leaves, span = WAYS;
    do {
        const std::size_t nodes = (children + WAYS - 1) / WAYS;
        levels.push_back({first, nodes, children, span});
        first += nodes;
        children = nodes;
        span *= WAYS;
    } while (children > 1);
    return levels;
}

// The last slot with a key of at most `key`; there is one, for no request is below the least key.
// All keys are compared, which needs no branch.
static std::size_t rank(const Node& node, std::uint64_t key) {
    std::size_t count = 0;
    for (std::size_t slot = 0; slot < WAYS; ++slot)
        count += node.keys[slot] <= key;
    return count - 1;
}

// What a lookup draws: a position, and whether to ask for the key there or for the odd one above.
struct Request {
    std::uint64_t key;
    bool exists;
    Request(std::uint64_t seed, std::size_t n) {
        const std::uint64_t draw = mix(seed);
        exists = draw >> 63;
        key = key_of((draw & 0xffffffff) * n >> 32) + !exists;
    }
};

struct Tally {
    std::uint64_t sum = 0, found = 0;
    Tally& operator+=(const Tally& other) {
        sum += other.sum;
        found += other.found;
        return *this;
    }
};

KERNEL Tally look_up(const Node* inner, std::size_t root, std::size_t height, const Node* leaves,
                     const Record* records, std::size_t n, std::uint64_t seed, std::size_t begin,
                     std::size_t end) {
    Tally tally;
    for (std::size_t l = begin; l < end; ++l) {
        const std::uint64_t key = Request(seed + l, n).key;
        std::size_t node = root, slot;
        for (std::size_t level = 0; level < height; ++level) {
            slot = rank(inner[node], key);
            node = inner[node].below[slot];
        }
        slot = rank(leaves[node], key);
        if (leaves[node].keys[slot] != key)
            continue;
        ++tally.found;
        const Record& record = records[leaves[node].below[slot]];
        for (std::size_t word = 0; word < WORDS; ++word)
            tally.sum += record.words[word];
    }
    return tally;
}

// The tally that the same requests should give.
static Tally expect(std::size_t n, std::uint64_t seed, std::size_t count) {
    return sum_blocks<Tally>(count, [&](std::size_t begin, std::size_t end, std::size_t) {
        Tally tally;
        for (std::size_t l = begin; l < end; ++l) {
            const Request request(seed + l, n);
            if (!request.exists)
                continue;
            ++tally.found;
            tally.sum += WORDS * request.key + WORDS * (WORDS - 1) / 2;
        }
        return tally;
    });
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv, {"B+ tree lookups", "keys", 4'000'000, 1000, 40'000'000, 6});
    const std::size_t n = options.size, leaf_count = (n + WAYS - 1) / WAYS, lookups = n / 4;
    const std::vector<Level> levels = plan_levels(leaf_count);
    const std::size_t root = levels.back().first, inner_count = root + 1;
    std::size_t bits = 0;
    while (std::size_t{1} << bits < n)
        ++bits;
    const Scatter scatter(bits);

    Ledger ledger("btree", options);
    const auto records = ledger.heap<Record>("records", alloc_records, n);
    const auto leaves = ledger.heap<Node>("leaves", alloc_leaves, leaf_count);
    const auto inner = ledger.heap<Node>("inner", alloc_inner, inner_count);
    in_blocks(n, [&](auto begin, auto end, auto) {
        fill_records(records.data(), scatter, n, begin, end);
    });
    in_blocks(leaf_count, [&](auto begin, auto end, auto) {
        fill_leaves(leaves.data(), scatter, n, begin, end);
    });
    std::size_t first_child = 0; // leaves are numbered from 0, inner nodes too
    for (const Level& level : levels) {
        fill_level(inner.data(), level, first_child);
        first_child = level.first;
    }
    records.writes<std::uint64_t>(n * WORDS);
    for (const Array<Node>& nodes : {leaves, inner}) {
        nodes.writes<std::uint64_t>(nodes.length() * WAYS);
        nodes.writes<std::uint32_t>(nodes.length() * WAYS);
    }

    ledger.enter(MAIN);
    Tally tally;
    std::uint64_t rounds_done = 0, seed = options.seed << 40;
    for (Rounds rounds(options); rounds.next(); ++rounds_done) {
        const Tally round = sum_blocks<Tally>(lookups, [&](auto begin, auto end, auto) {
            return look_up(inner.data(), root, levels.size(), leaves.data(), records.data(), n,
                           seed + rounds_done * lookups, begin, end);
        });
        tally += round;
        inner.reads<std::uint64_t>(lookups * levels.size() * WAYS);
        inner.reads<std::uint32_t>(lookups * levels.size());
        // The slot's key is read once more, to compare it.
        leaves.reads<std::uint64_t>(lookups * (WAYS + 1));
        leaves.reads<std::uint32_t>(round.found);
        records.reads<std::uint64_t>(round.found * WORDS);
    }

    ledger.enter(CHECK);
    const Tally expected = expect(n, seed, rounds_done * lookups);
    return ledger.finish(static_cast<double>(tally.found),
                         tally.found == expected.found && tally.sum == expected.sum);
}
