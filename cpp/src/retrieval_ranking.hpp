// Skyline_Ranker and the final order of fused retrieval, in memory that is kept. Not installed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag::detail {

// Ranks nodes; keeps its memory. One a thread.
class Ranking {
  public:
    // Before anything else: ids are below `nodes`. Nothing is allocated later.
    void reserve(std::size_t nodes);

    // Parts `candidates` (ascending) into those kept, written to `kept`, and the others, to `rest`;
    // both ascending. Kept: those that no other beats or equals on both scores with one better;
    // if fewer than `minimum`, the best by each score in turn fill up, ties by lower id. Scores are
    // by node, finite. An empty `second` ranks by `first` alone. O(n), and for large skylines
    // O(n log n).
    void skyline(std::span<const NodeId> candidates, std::span<const float> first,
                 std::span<const float> second, std::size_t minimum, std::vector<NodeId>& kept,
                 std::vector<NodeId>& rest);

    // Appends `nodes` (ascending) to `out` by `score` (by node, finite), descending, ties by id; no
    // more than `at_most` of them. O(n).
    void append_by(std::span<const NodeId> nodes, std::span<const float> score, std::size_t at_most,
                   std::vector<NodeId>& out);

  private:
    void front(std::span<const NodeId> candidates, std::span<const float> first,
               std::span<const float> second);
    void fill_up(std::span<const NodeId> candidates, std::span<const float> first,
                 std::span<const float> second, std::size_t minimum);

    std::vector<std::uint64_t> keys_;
    std::vector<std::uint64_t> swap_;
    std::vector<std::uint64_t> best_[2];
    std::vector<NodeId> left_;
    std::vector<NodeId> chosen_;
    std::vector<std::uint8_t> is_chosen_;  // by node; all 0 between calls
};

}  // namespace bookrag::detail
