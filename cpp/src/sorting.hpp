// Sorting by 32-bit keys that carry a 32-bit value. Not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace bookrag::detail {

// Sorts words ascending by their upper half, keeping the order of equals: least significant digit
// first, 11 bits at a time, digits that are alike everywhere skipped. `scratch` is as long as
// `words`. O(n).
inline void sort_by_upper_half(std::span<std::uint64_t> words, std::span<std::uint64_t> scratch) {
    constexpr std::size_t kDigits = 3;
    constexpr std::size_t kValues = 2048;
    const auto digit = [](std::uint64_t word, std::size_t which) {
        return static_cast<std::size_t>(word >> (32 + 11 * which)) % kValues;
    };
    std::array<std::array<std::uint32_t, kValues>, kDigits> count{};
    for (const auto word : words) {
        for (std::size_t d = 0; d < kDigits; ++d) ++count[d][digit(word, d)];
    }
    auto from = words;
    auto to = scratch;
    for (std::size_t d = 0; d < kDigits; ++d) {
        auto& places = count[d];
        if (words.empty() || places[digit(words.front(), d)] == words.size()) continue;
        std::uint32_t before = 0;
        for (auto& place : places) {
            const auto here = place;
            place = before;
            before += here;
        }
        for (const auto word : from) to[places[digit(word, d)]++] = word;
        std::swap(from, to);
    }
    if (from.data() != words.data()) std::copy(from.begin(), from.end(), words.begin());
}

// Room for values that are written before they are read, without clearing it first.
template <typename T>
std::unique_ptr<T[]> room_for(std::size_t count) {
    return std::make_unique_for_overwrite<T[]>(count);
}

}  // namespace bookrag::detail
