// A key-value store: a hash table with linear probing, values of 100 bytes in slabs of a megabyte.
// 95 % gets, 5 % puts; keys by Zipf's law with exponent 0.99, popular ones anywhere (YCSB B,
// Cooper 2010). A few pages' worth of values are hot, but they are spread over all slabs.
// Verified: every value read is that of its key, and as many words were read as should be.
#include <vector>

#include "truth.hpp"

using namespace tierloom;

constexpr std::size_t WORDS = 25; // of a value: 100 bytes
constexpr std::size_t SLAB_BYTES = 1 << 20, VALUES_A_SLAB = SLAB_BYTES / (WORDS * 4);
constexpr double ZIPF = 0.99;

struct Slot {
    std::uint64_t key; // 0: free
    std::uint32_t value;
};

ALLOCATED_BY(table, std::calloc(bytes, 1))
ALLOCATED(values)

static std::uint64_t key_of(std::uint64_t item) { return mix(item) | 1; }
static std::uint32_t word_of(std::uint64_t key) { return static_cast<std::uint32_t>(key >> 20); }

// The slabs, and where in them a value lies. Words are accessed one by one and atomically, for
// another thread may put the same value; on x86 these are plain moves.
class Values {
  public:
    explicit Values(std::vector<std::uint32_t*> slabs) : slabs_(std::move(slabs)) {}
    void put(std::size_t value, std::uint32_t word) const {
        std::uint32_t* words = at(value);
        for (std::size_t i = 0; i < WORDS; ++i)
            __atomic_store_n(&words[i], word, __ATOMIC_RELAXED);
    }
    std::uint64_t get(std::size_t value) const {
        const std::uint32_t* words = at(value);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < WORDS; ++i)
            sum += __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        return sum;
    }

  private:
    std::uint32_t* at(std::size_t value) const {
        return slabs_[value / VALUES_A_SLAB] + value % VALUES_A_SLAB * WORDS;
    }
    std::vector<std::uint32_t*> slabs_;
};

// Zipf-distributed ranks by inversion (Gray 1994, as in YCSB).
class Zipf {
  public:
    explicit Zipf(std::size_t n) : n_(static_cast<double>(n)) {
        zeta_ = 0;
        for (std::size_t rank = 1; rank <= n; ++rank)
            zeta_ += std::pow(static_cast<double>(rank), -ZIPF);
        const double two = 1 + std::pow(0.5, ZIPF);
        eta_ = (1 - std::pow(2 / n_, 1 - ZIPF)) / (1 - two / zeta_);
    }
    // A rank below n for a uniform number.
    std::size_t rank(double uniform) const {
        const double scaled = uniform * zeta_;
        if (scaled < 1)
            return 0;
        if (scaled < 1 + std::pow(0.5, ZIPF))
            return 1;
        const double rank = n_ * std::pow(eta_ * uniform - eta_ + 1, 1 / (1 - ZIPF));
        return rank < n_ ? static_cast<std::size_t>(rank) : static_cast<std::size_t>(n_) - 1;
    }

  private:
    double n_, zeta_, eta_;
};

struct Tally {
    std::uint64_t probes = 0, gets = 0, puts = 0, wrong = 0, sum = 0;
    Tally& operator+=(const Tally& other) {
        probes += other.probes;
        gets += other.gets;
        puts += other.puts;
        wrong += other.wrong;
        sum += other.sum;
        return *this;
    }
};

KERNEL Tally insert(Slot* table, std::size_t mask, const Values& values, std::size_t n) {
    Tally tally;
    for (std::size_t item = 0; item < n; ++item) {
        const std::uint64_t key = key_of(item);
        std::size_t slot = mix(key) & mask;
        for (++tally.probes; table[slot].key != 0; ++tally.probes)
            slot = (slot + 1) & mask;
        table[slot].key = key;
        table[slot].value = static_cast<std::uint32_t>(item);
        values.put(item, word_of(key));
    }
    return tally;
}

KERNEL Tally serve(const Slot* table, std::size_t mask, const Values& values, const Zipf& zipf,
                   std::size_t n, std::uint64_t seed, std::size_t begin, std::size_t end) {
    Tally tally;
    for (std::size_t request = begin; request < end; ++request) {
        Random random(seed + request);
        const std::uint64_t key = key_of(mix(zipf.rank(random.uniform())) % n);
        const bool put = random.next() % 100 < 5;
        std::size_t slot = mix(key) & mask;
        for (++tally.probes; table[slot].key != key; ++tally.probes)
            slot = (slot + 1) & mask;
        const std::size_t value = table[slot].value;
        if (put) { // a refresh: the value is made anew from its source
            values.put(value, word_of(key));
            ++tally.puts;
            continue;
        }
        const std::uint64_t sum = values.get(value);
        tally.wrong += sum != WORDS * std::uint64_t{word_of(key)};
        tally.sum += sum;
        ++tally.gets;
    }
    return tally;
}

int main(int argc, char** argv) {
    const Options options =
        parse(argc, argv,
              {"key-value store under Zipf requests", "keys", 2'500'000, 1000, 40'000'000, 6});
    const std::size_t n = options.size, requests = n / 2;
    std::size_t slots = 1;
    while (slots < n + n / 2)
        slots *= 2;
    Ledger ledger("kvstore", options);
    const auto table = ledger.heap<Slot>("table", alloc_table, slots);
    const std::size_t slab_count = (n + VALUES_A_SLAB - 1) / VALUES_A_SLAB;
    // One object in slab_count allocations of one site.
    const auto books = ledger.scattered<std::uint32_t>("values", slab_count * SLAB_BYTES);
    std::vector<std::uint32_t*> slabs;
    for (std::size_t slab = 0; slab < slab_count; ++slab)
        slabs.push_back(ledger.allocate<std::uint32_t>("values", alloc_values, SLAB_BYTES / 4));
    const Values values(slabs);
    const Zipf zipf(n);
    const Tally inserted = insert(table.data(), slots - 1, values, n);
    table.reads<std::uint64_t>(inserted.probes), table.writes<std::uint64_t>(n);
    table.writes<std::uint32_t>(n), books.writes(n * WORDS);

    ledger.enter(MAIN);
    Tally tally;
    std::uint64_t rounds_done = 0;
    for (Rounds rounds(options); rounds.next(); ++rounds_done) {
        const std::uint64_t seed = (options.seed << 40) + rounds_done * requests;
        const Tally round = sum_blocks<Tally>(requests, [&](auto begin, auto end, auto) {
            return serve(table.data(), slots - 1, values, zipf, n, seed, begin, end);
        });
        tally += round;
        table.reads<std::uint64_t>(round.probes), table.reads<std::uint32_t>(requests);
        books.reads(round.gets * WORDS), books.writes(round.puts * WORDS);
    }

    ledger.enter(CHECK);
    const bool complete = tally.gets + tally.puts == rounds_done * requests;
    return ledger.finish(static_cast<double>(tally.sum), complete && tally.wrong == 0);
}
