// Rows of hubs, for cutting graphs out. Not installed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag::detail {

// The relations of a graph that have a long row at both ends. Whoever cuts a small graph out need
// not read a hub's row, most of which leads outside: its relations with short rows stand in those,
// and the others stand here.
class LongRows {
  public:
    static constexpr std::int64_t kLong = 128;

    // O(num_entities + slots of the long rows).
    void build(const CsrView& rows, std::span<const float> weights) {
        const auto is_long = [&](std::int64_t e) {
            const auto i = static_cast<std::size_t>(e);
            return rows.offsets[i + 1] - rows.offsets[i] > kLong;
        };
        for (std::int64_t e = 0; e < rows.rows(); ++e) {
            if (!is_long(e)) continue;
            entities_.push_back(static_cast<EntityId>(e));
            const auto end =
                static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(e) + 1]);
            for (auto s = static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(e)]);
                 s < end; ++s) {
                if (is_long(rows.targets[s])) relations_.push_back({rows.targets[s], weights[s]});
            }
            offsets_.push_back(relations_.size());
        }
    }

    struct Relation {
        EntityId other;
        float weight;
    };
    // Of an entity with a long row, with others like it. O(log hubs).
    [[nodiscard]] std::span<const Relation> of(EntityId entity) const noexcept {
        const auto found = std::lower_bound(entities_.begin(), entities_.end(), entity);
        const auto i = static_cast<std::size_t>(found - entities_.begin());
        return std::span(relations_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
    }

  private:
    std::vector<EntityId> entities_;  // ascending
    std::vector<std::size_t> offsets_{0};
    std::vector<Relation> relations_;
};

}  // namespace bookrag::detail
