// Ablation: what a program would cost if one of its objects were always in the cache.
//
// The object's pages are replaced in place by a window of a few pages that repeats over the whole
// range: the same instructions touch the same addresses through as many page-table entries, but all
// of its data fit the first-level cache. The CPU time that this saves, against the same pages
// replaced by a copy of the whole object, is what waiting for the object costs (its marginal stall
// time). Contents repeat, so results are wrong by intention; objects that hold indices steer what
// else is touched and are no use here.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tierloom {

// Half a first-level data cache of x86 servers since 2011; a whole number of pages.
constexpr std::size_t WINDOW_BYTES = 16 << 10;

// Maps the file over [start, start + bytes) in pieces of a window; each piece shows the file from the
// piece's own offset, or, `repeated`, from its beginning.
inline bool cover(int file, char* start, std::size_t bytes, bool repeated) {
    for (std::size_t at = 0; at < bytes; at += WINDOW_BYTES) {
        const std::size_t piece = bytes - at < WINDOW_BYTES ? bytes - at : WINDOW_BYTES;
        const off_t offset = repeated ? 0 : static_cast<off_t>(at);
        if (mmap(start + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                 file, offset) == MAP_FAILED)
            return false;
    }
    return true;
}

// Rebuilds the whole pages of an object in place; ends the program where the kernel refuses.
inline void rebuild(const char* program, void* data, std::size_t bytes, bool repeated) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t first = (address + page - 1) / page * page,
                         end = (address + bytes) / page * page;
    char* const start = static_cast<char*>(data) + (first - address);
    const std::size_t whole = end > first ? end - first : 0;
    const std::size_t kept = repeated && whole > WINDOW_BYTES ? WINDOW_BYTES : whole;
    const int file = memfd_create("ablated", 0);
    bool done = file >= 0;
    for (std::size_t at = 0; done && at < kept;) {
        const ssize_t written = write(file, start + at, kept - at);
        done = written > 0;
        at += done ? static_cast<std::size_t>(written) : 0;
    }
    if (!done || !cover(file, start, whole, repeated)) {
        std::fprintf(stderr,
                     "%s: cannot rebuild %zu bytes of memory: %s\nhint: a smaller --size, or a "
                     "larger /proc/sys/vm/max_map_count\n",
                     program, bytes, std::strerror(errno));
        std::exit(1);
    }
    close(file);
}

} // namespace tierloom
