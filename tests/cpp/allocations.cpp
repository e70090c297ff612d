#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

long testing::allocations() noexcept {
    return -1;
}

void testing::fail_allocation_after(long) noexcept {}

#else

static std::atomic<long> count{0};
static std::atomic<long> failing{-1};  // number of the call that fails

long testing::allocations() noexcept {
    return count.load();
}

void testing::fail_allocation_after(long calls) noexcept {
    failing = count + calls;
}

void* operator new(std::size_t size) {
    if (count++ == failing) throw std::bad_alloc();
    if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    if (count++ == failing) throw std::bad_alloc();
    const auto a = static_cast<std::size_t>(alignment);
    if (void* p = std::aligned_alloc(a, (size + a) / a * a)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
    std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
    std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
    std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}

#endif
