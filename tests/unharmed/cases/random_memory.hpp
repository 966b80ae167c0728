// What the random program asks for: blocks of 32 KiB to 2 MiB in every way there is. Each is a case; its contents go
// into the checksum, addresses never do.
#pragma once
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    uint64_t next() {  // xorshift*: Vigna 2014
        state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1du;
    }
    size_t below(size_t end) { return (next() >> 11) % end; }
    size_t between(size_t low, size_t high) { return low + below(high - low); }

private:
    uint64_t state_;
};

enum class Source { malloc, calloc, realloc, aligned, operator_new, mapping, count };

struct Block {
    char *at = nullptr;
    size_t bytes = 0;
    Source source = Source::malloc;
};

// Blocks that are alive, of one thread.
class Memory {
public:
    uint64_t sum = 0;
    long cases = 0;

    void note(uint64_t value) { sum = (sum ^ value) * 0x100000001b3u; }

    void ask(Random &random) {
        Block &slot = blocks_[random.below(blocks_.size())];
        give_back(slot);
        slot = made(static_cast<Source>(random.below(static_cast<size_t>(Source::count))),
                    random.between(32 << 10, 2 << 20));
        mark(slot, static_cast<char>(random.next()));
        cases++;
    }

    void give_back_all() {
        for (Block &block : blocks_) give_back(block);
    }

private:
    std::array<Block, 8> blocks_;

    static Block made(Source source, size_t bytes) {
        void *at = nullptr;
        switch (source) {
        case Source::calloc: at = calloc(bytes / 16, 16), bytes = bytes / 16 * 16; break;
        case Source::realloc: at = realloc(malloc(bytes / 2), bytes); break;
        case Source::aligned: at = aligned_alloc(64, bytes); break;
        case Source::operator_new: at = ::operator new(bytes); break;
        case Source::mapping:
            at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            break;
        default: at = malloc(bytes);
        }
        return {static_cast<char *>(at), bytes, source};
    }

    static void mark(Block &block, char value) {
        block.at[0] = block.at[block.bytes / 2] = block.at[block.bytes - 1] = value;
    }

    void give_back(Block &block) {
        if (!block.at) return;
        note(block.bytes + static_cast<unsigned char>(block.at[0]) + static_cast<unsigned char>(block.at[block.bytes - 1]));
        if (block.source == Source::mapping) munmap(block.at, block.bytes);
        else if (block.source == Source::operator_new) ::operator delete(block.at);
        else free(block.at);
        block = {};
    }
};
