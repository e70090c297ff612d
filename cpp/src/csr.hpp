// Counting-sort helpers for compressed sparse rows. Not installed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bookrag::detail {

// counts[r + 1] = size of row r  ->  offsets.
inline void counts_to_offsets(std::span<std::int64_t> counts) noexcept {
    for (std::size_t r = 1; r < counts.size(); ++r) counts[r] += counts[r - 1];
}

// Where the next value of each row goes, while filling.
inline std::vector<std::int64_t> row_cursors(std::span<const std::int64_t> offsets) {
    return {offsets.begin(), offsets.end() - 1};
}

}  // namespace bookrag::detail
