// The counted build's side of counted.h: objects with their counts, and an element that books its accesses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace books {

struct Object {
    const char *name, *kind; // "heap" or "static"
    const char *first;
    std::size_t bytes;
    std::uint64_t reads, writes, read_bytes, write_bytes;
};

inline std::array<Object, 16> objects{};
inline std::size_t opened = 0;

inline void open(const char *name, const char *kind, const void *memory, std::size_t bytes) {
    objects.at(opened++) = {name, kind, static_cast<const char *>(memory), bytes, 0, 0, 0, 0};
}

// The object that an address lies in; null for the stack, which no object owns.
inline Object *owner(const void *element) {
    const char *address = static_cast<const char *>(element);
    for (std::size_t i = 0; i < opened; ++i)
        if (static_cast<std::size_t>(address - objects[i].first) < objects[i].bytes)
            return &objects[i];
    return nullptr;
}

inline void read(const void *element, std::size_t bytes) {
    if (Object *object = owner(element))
        ++object->reads, object->read_bytes += bytes;
}
inline void written(const void *element, std::size_t bytes) {
    if (Object *object = owner(element))
        ++object->writes, object->write_bytes += bytes;
}

template <class T> class Counted {
  public:
    Counted() = default;
    Counted(const Counted &other) : value_(other) {}
    operator T() const { return read(this, sizeof(T)), value_; }
    T operator->() const { return *this; }
    Counted &operator=(T value) { return written(this, sizeof(T)), value_ = value, *this; }
    Counted &operator=(const Counted &other) { return *this = static_cast<T>(other); }
    Counted &operator+=(T by) { return *this = static_cast<T>(static_cast<T>(*this) + by); }
    Counted &operator-=(T by) { return *this = static_cast<T>(static_cast<T>(*this) - by); }
    Counted &operator^=(T by) { return *this = static_cast<T>(static_cast<T>(*this) ^ by); }
    Counted &operator++() { return *this += 1; }

  private:
    T value_;
};

inline void print(const Object &object) {
    const char *before = *object.kind == 'h' ? "alloc_" : "";
    const char *key = *object.kind == 'h' ? "function" : "symbol";
    std::printf("  {\"name\": \"%s\", \"kind\": \"%s\", \"%s\": \"%s%s\", \"bytes\": %zu,\n", object.name,
                object.kind, key, before, object.name, object.bytes);
    const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("   \"reads\": %llu, \"writes\": %llu, \"read_bytes\": %llu, \"write_bytes\": %llu}",
                n(object.reads), n(object.writes), n(object.read_bytes), n(object.write_bytes));
}

inline int print(const char *program, double value) {
    std::printf("{\"program\": \"%s\", \"threads\": 1, \"verification\": %.9g,\n \"objects\": [", program, value);
    for (std::size_t i = 0; i < opened; ++i) {
        std::fputs(i ? ",\n" : "\n", stdout);
        print(objects[i]);
    }
    return std::fputs("\n]}\n", stdout) < 0;
}

} // namespace books
