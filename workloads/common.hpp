// What every workload shares: options, a seeded random source, work cut into blocks, rounds.
//
// Promises: the same seed and size give the same result, bit for bit, with any number of threads,
// because work and sums are always cut into the same BLOCKS pieces and added up in their order.
// Nothing here touches a workload's data; that is left to its kernels, which truth.hpp counts.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#else
// Without OpenMP, as in the program that a wheel brings, there is one thread.
inline int omp_get_max_threads() { return 1; }
inline void omp_set_num_threads(int) {}
#endif

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// A loop over data. Compiled on its own and for itself, so that its name is in the call stack, no
// two calls are merged, and each access written in it is performed once by the machine code.
#ifdef __clang__
#define KERNEL [[gnu::noinline]] static
#else
#define KERNEL [[gnu::noipa]] static
#endif

namespace tierloom {

// A value read from memory, of which the compiler forgets where it came from: where registers run
// out it is kept on the stack instead of being read a second time.
inline double once(double value) {
    asm("" : "+x"(value));
    return value;
}
inline std::uint32_t once(std::uint32_t value) {
    asm("" : "+r"(value));
    return value;
}

// What a workload is when nothing is asked for.
struct Defaults {
    const char* about;      // one sentence
    const char* size_means; // what --size counts
    std::size_t size;
    std::size_t least_size;
    std::size_t most_size;
    std::size_t iterations;
    bool has_static = false; // its arrays are static unless --heap
};

// What was asked for on the command line.
struct Options {
    std::size_t size = 0;
    std::size_t iterations = 0;
    double seconds = 0; // above 0: rounds until this much time is over
    int threads = 1;
    std::uint64_t seed = 1;
    std::string truth; // file for the access counts, "-" for stdout
    bool heap = false; // heap instead of static arrays
    std::string ablate;  // object whose pages repeat in the rounds, see ablate.hpp
    std::string rebuild; // object whose pages are replaced by a copy, for comparison
};

[[noreturn]] inline void refuse(const char* program, const std::string& what) {
    std::fprintf(stderr, "%s: %s\nhint: %s --help lists the options\n", program, what.c_str(),
                 program);
    std::exit(2);
}

inline void print_help(const char* program, const Defaults& defaults) {
    std::printf("%s: %s\n"
                "  --size N         %s (default %zu, %zu to %zu)\n"
                "  --iterations N   rounds of the main loop (default %zu)\n"
                "  --seconds S      rounds until S seconds are over, instead of --iterations\n"
                "  --threads N      OpenMP threads (default: OMP_NUM_THREADS, else 1)\n"
                "  --seed N         seed of the data (default 1)\n"
                "  --truth FILE|-   write the exact access counts per object as JSON\n"
                "  --ablate OBJECT  let a few pages repeat all over the object during the rounds\n"
                "  --rebuild OBJECT replace its pages by a copy, for comparison with --ablate\n",
                program, defaults.about, defaults.size_means, defaults.size, defaults.least_size,
                defaults.most_size, defaults.iterations);
    if (defaults.has_static)
        std::puts("  --heap           arrays on the heap instead of static ones");
}

// A number, all of `text`, between `least` and `most`; refused otherwise.
inline double number(const char* program, const std::string& option, const char* text, double least,
                     double most) {
    char* end = nullptr;
    const double value = text ? std::strtod(text, &end) : 0;
    if (!text || end == text || *end || !(value >= least && value <= most)) {
        char range[80];
        std::snprintf(range, sizeof range, " needs a number from %.10g to %.10g", least, most);
        refuse(program, option + range);
    }
    return value;
}

// Applies an option that takes a value.
inline void apply(Options& options, const Defaults& defaults, const char* program,
                  const std::string& option, const char* value) {
    const auto within = [&](double least, double most) {
        return number(program, option, value, least, most);
    };
    if (option == "--size")
        options.size = static_cast<std::size_t>(within(static_cast<double>(defaults.least_size),
                                                       static_cast<double>(defaults.most_size)));
    else if (option == "--iterations")
        options.iterations = static_cast<std::size_t>(within(1, 1e9));
    else if (option == "--seconds")
        options.seconds = within(1e-3, 1e6);
    else if (option == "--threads")
        options.threads = static_cast<int>(within(1, 1024));
    else if (option == "--seed")
        options.seed = static_cast<std::uint64_t>(within(0, 9e15));
    else if (option == "--truth" && value)
        options.truth = value;
    else if (option == "--ablate" && value)
        options.ablate = value;
    else if (option == "--rebuild" && value)
        options.rebuild = value;
    else
        refuse(program, "cannot use '" + option + "'");
}

// The options of the command line; ends the program on --help and on any that cannot be used.
inline Options parse(int argc, char** argv, const Defaults& defaults) {
    Options options;
    options.size = defaults.size;
    options.iterations = defaults.iterations;
    options.threads = std::getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : 1;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--help") {
            print_help(argv[0], defaults);
            std::exit(0);
        }
        if (option == "--heap" && defaults.has_static)
            options.heap = true;
        else
            apply(options, defaults, argv[0], option, i + 1 < argc ? argv[++i] : nullptr);
    }
    omp_set_num_threads(options.threads);
    return options;
}

// One well-mixed 64-bit value per index: data that any thread can make (splitmix64, Steele 2014).
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// A stream of random numbers that lives in one register (xorshift64, Marsaglia 2003).
struct Random {
    std::uint64_t state;
    explicit Random(std::uint64_t seed) : state(mix(seed) | 1) {}
    std::uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

// A one-to-one map of [0, 2^bits) onto itself that scatters neighbours, and its inverse.
class Scatter {
  public:
    explicit Scatter(std::size_t bits)
        : mask_((std::size_t{1} << bits) - 1), half_((bits + 1) / 2) {}
    std::size_t operator()(std::size_t i) const {
        const std::size_t product = i * FACTOR & mask_;
        return product ^ (product >> half_);
    }
    std::size_t inverse(std::size_t s) const { return (s ^ (s >> half_)) * INVERSE & mask_; }

  private:
    static constexpr std::size_t FACTOR = 0x9e3779b97f4a7c15u, INVERSE = 0xf1de83e19937733du;
    static_assert(FACTOR * INVERSE == 1); // modulo 2^64, hence modulo any smaller power of two
    std::size_t mask_, half_;
};

constexpr std::size_t BLOCKS = 64;

// How many of the BLOCKS pieces of n things are not empty.
inline std::size_t blocks_of(std::size_t n) { return n < BLOCKS ? n : BLOCKS; }

// Calls body(begin, end, block) for each piece of [0, n), pieces spread over the threads in order.
template <class Body> void in_blocks(std::size_t n, Body&& body) {
#pragma omp parallel for schedule(static)
    for (std::size_t block = 0; block < BLOCKS; ++block) {
        const std::size_t begin = n * block / BLOCKS, end = n * (block + 1) / BLOCKS;
        if (begin < end)
            body(begin, end, block);
    }
}

// The sum of body(begin, end, block) over the pieces, added in their order.
template <class Value, class Body> Value sum_blocks(std::size_t n, Body&& body) {
    std::array<Value, BLOCKS> part{};
    in_blocks(n, [&](std::size_t begin, std::size_t end, std::size_t block) {
        part[block] = body(begin, end, block);
    });
    Value sum{};
    for (const Value& value : part)
        sum += value;
    return sum;
}

inline double seconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

// for (Rounds rounds(options); rounds.next();) …: as many rounds as the options ask for.
class Rounds {
  public:
    explicit Rounds(const Options& options) : options_(options), start_(seconds_now()) {}
    bool next() {
        const bool more = options_.seconds > 0
                              ? done_ == 0 || seconds_now() - start_ < options_.seconds
                              : done_ < options_.iterations;
        done_ += more;
        return more;
    }
    // Rounds begun so far.
    std::size_t done() const { return done_; }

  private:
    const Options& options_;
    double start_;
    std::size_t done_ = 0;
};

} // namespace tierloom
