// Checks of PageRank's arguments, and the restart distribution they describe. Not installed.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bookrag/pagerank.hpp"
#include "ppr_solver.hpp"

namespace bookrag::detail {

// Checks the options. Passes of a power iteration after which the error is within tol / 2 whatever
// the graph: the first iterate is at most `damping` away in L1, and every pass shrinks that by
// damping. A limit for sweeps, which need fewer.
std::int64_t max_passes(const PageRankOptions& options);

// Throws as personalized_pagerank() does for seeds and weights.
void check_seeds(std::int32_t num_entities, std::span<const EntityId> seeds,
                 std::span<const float> weights);

// Fills a restart distribution; reused memory. float64 holds sums of float32 values of any
// magnitude without overflow.
class RestartBuilder {
  public:
    void clear() { entries_.clear(); }
    void add(std::int32_t row, double weight) {
        entries_.push_back({row, static_cast<std::int32_t>(entries_.size()), weight});
    }
    // Adds up repeats in the order they came. Returns false if no weight is > 0.
    [[nodiscard]] bool finish(PprRestart& out);

  private:
    struct Entry {
        std::int32_t row;
        std::int32_t order;
        double weight;
    };
    std::vector<Entry> entries_;
};

}  // namespace bookrag::detail
