// Binary search tree: keys are inserted in random order, then looked up; the way down depends on the data.
#include "counted.h"

ALLOCATED(nodes)
ALLOCATED(queries)

constexpr size_t NODES = 200'000, QUERIES = 1'000'000;

struct Node {
    COUNT(uint32_t) key;
    COUNT(uint32_t) child[2]; // 0: none
};

KERNEL void build(Node *nodes, uint64_t seed) {
    for (uint32_t i = 1; i < NODES; ++i) {
        const auto key = static_cast<uint32_t>(next_random(&seed));
        nodes[i].key = key;
        nodes[i].child[0] = 0;
        nodes[i].child[1] = 0;
        for (uint32_t at = 1; i > 1;) {
            const bool right = key > nodes[at].key;
            const uint32_t below = nodes[at].child[right];
            if (!below) {
                nodes[at].child[right] = i;
                break;
            }
            at = below;
        }
    }
}

KERNEL size_t look_up(const Node *RESTRICT nodes, const COUNT(uint32_t) *RESTRICT queries) {
    size_t found = 0;
    for (size_t i = 0; i < QUERIES; ++i) {
        const uint32_t key = queries[i];
        for (uint32_t at = 1; at;) {
            const uint32_t here = nodes[at].key;
            if (here == key) {
                ++found;
                break;
            }
            at = nodes[at].child[key > here];
        }
    }
    return found;
}

int main(int argc, char **argv) {
    auto *nodes = static_cast<Node *>(alloc_nodes(NODES * sizeof(Node)));
    COUNT(uint32_t) *queries = HEAP(queries, uint32_t, QUERIES);
    build(nodes, 1);
    // Half of what is asked for is there: the same numbers as in build, and others.
    uint64_t state = 1;
    for (size_t i = 0; i < QUERIES; ++i) {
        if (i % (2 * NODES) == 0)
            state = 1;
        queries[i] = static_cast<uint32_t>(next_random(&state));
    }
    size_t found = 0;
    for (long round = rounds(argc, argv, 8); round > 0; --round)
        found += look_up(nodes, queries);
    return finish("search_tree", static_cast<double>(found));
}
