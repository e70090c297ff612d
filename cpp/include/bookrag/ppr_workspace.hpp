// Personalized PageRank on small graphs made on the fly, as for one question, in memory that is
// kept: what fused retrieval is built on. For whole books see pagerank.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "bookrag/knowledge_graph.hpp"
#include "bookrag/pagerank.hpp"
#include "bookrag/types.hpp"

namespace bookrag {

// Load a graph, then solve for as many restarts as wanted. Allocates nothing once it has seen the
// largest graph. Not thread safe: one a thread.
class PprWorkspace {
  public:
    PprWorkspace();
    ~PprWorkspace();
    PprWorkspace(PprWorkspace&&) noexcept;
    PprWorkspace& operator=(PprWorkspace&&) noexcept;

    // Row r has the neighbours targets[offsets[r] .. offsets[r + 1]), in any order, repeats adding
    // up. The caller sees to it, nothing is checked: offsets ascend from 0 to the length of targets
    // and weights; targets are rows; the graph is symmetric (u in row v with weight w wherever v is
    // in row u with w; a self-loop once); weights are finite and > 0. The spans must outlive the
    // last solve(). O(rows + slots).
    void load(std::span<const std::int32_t> offsets, std::span<const std::int32_t> targets,
              std::span<const float> weights);

    // The graph of `entities` (ascending, distinct, known: not checked) and the relations among
    // them; row i is entities[i]. O(slots of the entities); no term in the size of the graph after
    // the first call.
    void load_induced(const KnowledgeGraph& graph, std::span<const EntityId> entities);

    [[nodiscard]] std::int32_t rows() const noexcept;

    // personalized_pagerank() of pagerank.hpp on the loaded graph: seeds are rows, scores has one
    // value a row. The same checks and errors. O(sweeps * (rows + slots)).
    void solve(std::span<const std::int32_t> seeds, std::span<const float> weights,
               const PageRankOptions& options, std::span<float> scores);
    void solve(std::span<const std::int32_t> seeds, std::span<const float> weights,
               const PageRankOptions& options, std::span<double> scores);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bookrag
