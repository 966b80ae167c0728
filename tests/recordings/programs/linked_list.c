// A linked list in random order, walked from end to end; each node counts in a table. No register runs on.
#include "counted.h"

ALLOCATED(nodes)
ALLOCATED(table)

enum { NODES = 1 << 20, SLOTS = 1 << 14 };

typedef struct Node {
    COUNT(struct Node *) next;
    COUNT(uint64_t) value;
} Node;

// The first node of the list.
KERNEL Node *shuffle(Node *nodes, uint64_t seed) {
    for (size_t i = 0; i < NODES; ++i) {
        nodes[i].next = nodes + i;
        nodes[i].value = next_random(&seed);
    }
    // Sattolo: one cycle through all nodes.
    for (size_t i = NODES - 1; i > 0; --i) {
        const size_t j = next_random(&seed) % i;
        Node *const other = nodes[j].next;
        nodes[j].next = nodes[i].next;
        nodes[i].next = other;
    }
    Node *const first = nodes[0].next;
    nodes[0].next = NULL;
    return first;
}

KERNEL void walk(const Node *node, COUNT(uint32_t) *RESTRICT table) {
    for (; node; node = node->next)
        table[node->value % SLOTS] += 1;
}

int main(int argc, char **argv) {
    Node *nodes = (Node *)alloc_nodes(NODES * sizeof(Node));
    COUNT(uint32_t) *table = HEAP(table, uint32_t, SLOTS);
    for (size_t i = 0; i < SLOTS; ++i)
        table[i] = 0;
    const Node *const first = shuffle(nodes, 1);
    for (long round = rounds(argc, argv, 10); round > 0; --round)
        walk(first, table);
    return finish("linked_list", table[0]);
}
