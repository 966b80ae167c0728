// Hash table with chains: keys come and go, so chains change under way and nodes are used again.
#include "counted.h"

ALLOCATED(buckets)
ALLOCATED(nodes)

constexpr size_t BUCKETS = 1 << 17, NODES = 1 << 18, OPERATIONS = 1 << 20;

struct Node {
    COUNT(uint64_t) key;
    COUNT(uint64_t) value;
    COUNT(uint32_t) next; // 0 ends a chain
};

struct Table {
    COUNT(uint32_t) *buckets;
    Node *nodes;
    uint32_t free;
};

KERNEL void clear(Table *table) {
    for (size_t i = 0; i < BUCKETS; ++i)
        table->buckets[i] = 0;
    for (uint32_t i = 1; i < NODES; ++i)
        table->nodes[i].next = (i + 1) % NODES;
    table->free = 1;
}

static size_t bucket(uint64_t key) { return key * 0x9e3779b97f4a7c15u >> 47; }

KERNEL uint32_t find(const Table *table, uint64_t key) {
    const Node *const nodes = table->nodes;
    uint32_t at = table->buckets[bucket(key)];
    while (at && nodes[at].key != key)
        at = nodes[at].next;
    return at;
}

KERNEL void insert(Table *table, uint64_t key) {
    const uint32_t made = table->free;
    if (!made)
        return;
    COUNT(uint32_t) *const head = table->buckets + bucket(key);
    Node *const node = table->nodes + made;
    table->free = node->next;
    node->key = key;
    node->value = 1;
    node->next = *head;
    *head = made;
}

KERNEL void remove_first(Table *table, uint64_t key) {
    COUNT(uint32_t) *const head = table->buckets + bucket(key);
    const uint32_t first = *head;
    if (!first)
        return;
    Node *const node = table->nodes + first;
    *head = node->next;
    node->next = table->free;
    table->free = first;
}

int main(int argc, char **argv) {
    Table table{HEAP(buckets, uint32_t, BUCKETS), static_cast<Node *>(alloc_nodes(NODES * sizeof(Node))), 0};
    uint64_t state = 1, hits = 0;
    clear(&table);
    for (long round = rounds(argc, argv, 28); round > 0; --round)
        for (size_t i = 0; i < OPERATIONS; ++i) {
            const uint64_t random = next_random(&state), key = random % (2 * NODES);
            const uint32_t at = find(&table, key);
            if (at)
                table.nodes[at].value += 1, ++hits;
            else
                insert(&table, key);
            if (random >> 62 == 0)
                remove_first(&table, next_random(&state) % (2 * NODES));
        }
    return finish("hash_table", static_cast<double>(hits));
}
