// A number for results, so that machines which cannot share a process can be compared: the tests
// hold it against a constant, on x86-64 by every instruction set and on 64-bit Arm. Whoever changes
// on purpose what an algorithm gives writes down the new number that the failing test prints.
#pragma once

#include <bit>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace testing {

class Digest {
  public:
    // Integers, floats or doubles, in order; their bits, so that -0 is not 0. How many counts, too.
    template <std::ranges::input_range Values>
    Digest& add(const Values& values) {
        std::uint64_t count = 0;
        for (const auto value : values) {
            mix(bits(value));
            ++count;
        }
        mix(count);
        return *this;
    }

    [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

  private:
    template <typename T>
    static std::uint64_t bits(T value) noexcept {
        if constexpr (std::is_same_v<T, float>) {
            return std::bit_cast<std::uint32_t>(value);
        } else if constexpr (std::is_same_v<T, double>) {
            return std::bit_cast<std::uint64_t>(value);
        } else {
            return static_cast<std::uint64_t>(value);
        }
    }
    // FNV-1a by words, with the high half folded into the low one.
    void mix(std::uint64_t word) noexcept {
        state_ = (state_ ^ word) * 0x100000001b3U;
        state_ ^= state_ >> 32;
    }

    std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace testing
