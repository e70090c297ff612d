// A vector whose storage begins at a cache line, for arrays that kernels read 64 bytes at a time.
// Not installed.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace bookrag::detail {

inline constexpr std::size_t kCacheLine = 64;

// resize() leaves new values of trivial types as they are: kernels write before they read, and
// clearing megabytes twice is what a cold call mostly costs.
template <typename T>
struct LineAllocator {
    using value_type = T;
    LineAllocator() = default;
    template <typename U>
    LineAllocator(const LineAllocator<U>&) noexcept {}  // NOLINT: rebinding is a conversion

    [[nodiscard]] T* allocate(std::size_t count) {
        return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t{kCacheLine}));
    }
    void deallocate(T* place, std::size_t) noexcept {
        ::operator delete(place, std::align_val_t{kCacheLine});
    }
    template <typename U>
    void construct(U* place) noexcept {
        ::new (static_cast<void*>(place)) U;
    }
    template <typename U, typename... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(static_cast<Arguments&&>(arguments)...);
    }
    template <typename U>
    bool operator==(const LineAllocator<U>&) const noexcept {
        return true;
    }
};

template <typename T>
using LineVector = std::vector<T, LineAllocator<T>>;

}  // namespace bookrag::detail
