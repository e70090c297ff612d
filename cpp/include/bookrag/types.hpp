// Ids, limits and views shared by every structure and algorithm of the core.
#pragma once

#include <cstdint>
#include <span>

namespace bookrag {

// Ids are dense, 0-based and 32-bit: half the memory traffic of 64-bit ids where it counts.
using EntityId = std::int32_t;
using NodeId = std::int32_t;
using RelationId = std::int32_t;

// "No such node", as in the parent of a root.
inline constexpr NodeId kNoNode = -1;

// Limits, checked before any memory is taken. They keep a wrong or hostile count from asking for
// more memory than a machine has; offsets into adjacency are 64-bit, so sums never overflow.
inline constexpr std::int64_t kMaxEntities = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxNodes = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxRelations = std::int64_t{1} << 30;

// Compressed sparse rows, borrowed: row r holds targets[offsets[r] .. offsets[r + 1]).
// The view is valid as long as the structure that returned it. Copying it copies two spans.
struct CsrView {
    std::span<const std::int64_t> offsets;  // rows + 1 values, ascending, offsets[0] == 0
    std::span<const std::int32_t> targets;  // offsets.back() values

    [[nodiscard]] std::int64_t rows() const noexcept {
        return static_cast<std::int64_t>(offsets.size()) - 1;
    }
    // O(1). Precondition: 0 <= r < rows().
    [[nodiscard]] std::span<const std::int32_t> row(std::int64_t r) const noexcept {
        const auto i = static_cast<std::size_t>(r);
        return targets.subspan(static_cast<std::size_t>(offsets[i]),
                               static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
    }
};

}  // namespace bookrag
