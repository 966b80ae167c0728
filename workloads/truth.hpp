// The referee: exact access counts per object, which `--truth` writes as JSON.
//
// A count is an element access that the source performs in a kernel: `c[i] += x` is a read and a
// write; a value kept in a local is counted once. Vector instructions count as their elements.
// Workloads state the counts beside the loops that cause them; check_truth.py holds the statements
// against an instrumented run of the very same machine code.
//
// Promises: the counts cover every access of the whole run to the object, split into its sections;
// keeping them costs a few additions per kernel call and no access to any object.
#pragma once

#include <cmath>
#include <ctime>
#include <deque>
#include <new>

#include "ablate.hpp"
#include "common.hpp"

// The allocation site of object NAME: a function of its own, named alloc_NAME, so that the call
// stack of the allocation names the object. The empty asm keeps its frame: no tail call.
#define ALLOCATED_BY(NAME, EXPRESSION)                                                             \
    extern "C" [[gnu::noipa]] void* alloc_##NAME(std::size_t bytes) {                              \
        void* memory = EXPRESSION;                                                                 \
        asm volatile("" : "+r"(memory));                                                           \
        return memory;                                                                             \
    }
#define ALLOCATED(NAME) ALLOCATED_BY(NAME, std::malloc(bytes))

namespace tierloom {

struct Counts {
    std::uint64_t reads = 0, writes = 0, read_bytes = 0, write_bytes = 0;
    void add(const Counts& other) {
        reads += other.reads;
        writes += other.writes;
        read_bytes += other.read_bytes;
        write_bytes += other.write_bytes;
    }
};

enum Section { INIT, MAIN, CHECK, SECTIONS };
constexpr const char* SECTION_NAMES[SECTIONS] = {"init", "main", "check"};

struct Object {
    std::string name;
    const char* kind; // "heap" or "static"
    std::size_t bytes;
    void* data; // null if it lies in pieces
    std::array<Counts, SECTIONS> counts{};
};

// Memory of one object together with its line in the books. Copies share both.
template <class T> class Array {
  public:
    Array(T* data, std::size_t length, Object& object, const Section& section)
        : data_(data), length_(length), object_(&object), section_(&section) {}

    T* data() const { return data_; }
    std::size_t length() const { return length_; }

    // Books `elements` accesses of a U each.
    template <class U = T> void reads(std::uint64_t elements) const {
        object_->counts[*section_].add({elements, 0, elements * sizeof(U), 0});
    }
    template <class U = T> void writes(std::uint64_t elements) const {
        object_->counts[*section_].add({0, elements, 0, elements * sizeof(U)});
    }
    template <class U = T> void updates(std::uint64_t elements) const {
        reads<U>(elements);
        writes<U>(elements);
    }

  private:
    T* data_;
    std::size_t length_;
    Object* object_;
    const Section* section_;
};

// CPU time of all threads.
inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Ledger {
  public:
    Ledger(const char* program, const Options& options)
        : program_(program), options_(options), since_(seconds_now()), cpu_since_(cpu_seconds()) {}

    // A heap object of n elements from its allocation site.
    template <class T> Array<T> heap(const char* name, void* (*site)(std::size_t), std::size_t n) {
        T* const data = allocate<T>(name, site, n);
        return {data, n, open(name, "heap", n * sizeof(T), data), section_};
    }

    // A static array of `capacity` elements.
    template <class T> Array<T> fixed(const char* name, T* data, std::size_t capacity) {
        return {data, capacity, open(name, "static", capacity * sizeof(T), data),
                section_};
    }

    // The books of a heap object that its owner allocates piece by piece.
    template <class T> Array<T> scattered(const char* name, std::size_t bytes) {
        return {nullptr, bytes / sizeof(T), open(name, "heap", bytes, nullptr), section_};
    }

    // Memory for n elements; ends the program where there is not enough.
    template <class T>
    T* allocate(const char* name, void* (*site)(std::size_t), std::size_t n) const {
        void* data = site(n * sizeof(T));
        if (!data) {
            std::fprintf(stderr, "%s: no memory for %zu bytes of %s\nhint: a smaller --size\n",
                         program_, n * sizeof(T), name);
            std::exit(1);
        }
        return static_cast<T*>(data);
    }

    // From here on accesses belong to `section`.
    void enter(Section section) {
        elapsed_[section_] += seconds_now() - since_;
        cpu_[section_] += cpu_seconds() - cpu_since_;
        if (section == MAIN)
            rebuild_objects();
        since_ = seconds_now();
        cpu_since_ = cpu_seconds();
        section_ = section;
    }

    // Prints the verification value, writes the counts; the program's exit code.
    int finish(double verification, bool right) {
        enter(CHECK);
        if (!options_.ablate.empty())
            right = true; // what repeats cannot come out right
        std::fprintf(options_.truth == "-" ? stderr : stdout, "%s: verification %.9g %s\n",
                     program_, verification,
                     !options_.ablate.empty() ? "ablated" : right ? "ok" : "WRONG");
        if (!options_.truth.empty() && !write_truth(verification, right))
            return 1;
        return right ? 0 : 1;
    }

  private:
    Object& open(const char* name, const char* kind, std::size_t bytes, void* data) {
        objects_.push_back({name, kind, bytes, data, {}});
        return objects_.back();
    }

    // Does what --ablate and --rebuild ask for.
    void rebuild_objects() const {
        for (const std::string& wanted : {options_.ablate, options_.rebuild}) {
            const Object* found = nullptr;
            for (const Object& object : objects_)
                found = object.name == wanted && object.data ? &object : found;
            if (!wanted.empty() && !found)
                refuse(program_, "has no object '" + wanted + "' in one piece");
            if (found)
                rebuild(program_, found->data, found->bytes, wanted == options_.ablate);
        }
    }

    bool write_truth(double verification, bool right) const {
        FILE* out = options_.truth == "-" ? stdout : std::fopen(options_.truth.c_str(), "w");
        if (!out) {
            std::fprintf(stderr,
                         "%s: cannot write %s: %s\nhint: name a file in a folder that exists\n",
                         program_, options_.truth.c_str(), std::strerror(errno));
            return false;
        }
        std::fprintf(out, "{\"program\": \"%s\", \"threads\": %d, \"size\": %zu, \"seed\": %llu,\n",
                     program_, options_.threads, options_.size,
                     static_cast<unsigned long long>(options_.seed));
        std::fprintf(out, " \"init_s\": %.3f, \"main_s\": %.3f, \"check_s\": %.3f,\n",
                     elapsed_[INIT], elapsed_[MAIN], elapsed_[CHECK]);
        std::fprintf(out, " \"main_cpu_s\": %.6f,\n", cpu_[MAIN]);
        std::fprintf(out, " \"verification\": %.17g, \"verified\": %s,\n \"objects\": [",
                     std::isfinite(verification) ? verification : -1, right ? "true" : "false");
        const char* comma = "\n";
        for (const Object& object : objects_) {
            std::fputs(comma, out);
            write_object(out, object);
            comma = ",\n";
        }
        std::fputs("]}\n", out);
        return out == stdout ? std::fflush(out) == 0 : std::fclose(out) == 0;
    }

    static void write_object(FILE* out, const Object& object) {
        Counts whole;
        for (const Counts& counts : object.counts)
            whole.add(counts);
        std::fprintf(out,
                     "  {\"name\": \"%s\", \"kind\": \"%s\", \"%s\": \"%s%s\", \"bytes\": %zu, ",
                     object.name.c_str(), object.kind, *object.kind == 'h' ? "function" : "symbol",
                     *object.kind == 'h' ? "alloc_" : "", object.name.c_str(), object.bytes);
        write_counts(out, whole);
        for (int section = INIT; section < SECTIONS; ++section) {
            std::fprintf(out, ",\n   \"%s\": {", SECTION_NAMES[section]);
            write_counts(out, object.counts[static_cast<std::size_t>(section)]);
            std::fputc('}', out);
        }
        std::fputc('}', out);
    }

    static void write_counts(FILE* out, const Counts& counts) {
        const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
        std::fprintf(
            out, "\"reads\": %llu, \"writes\": %llu, \"read_bytes\": %llu, \"write_bytes\": %llu",
            n(counts.reads), n(counts.writes), n(counts.read_bytes), n(counts.write_bytes));
    }

    const char* program_;
    const Options& options_;
    std::deque<Object> objects_; // stays put when it grows
    Section section_ = INIT;
    double since_;
    double cpu_since_;
    std::array<double, SECTIONS> elapsed_{}, cpu_{};
};

} // namespace tierloom
