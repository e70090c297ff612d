// Personalized PageRank on a KnowledgeGraph: Page, Brin, Motwani, Winograd, "The PageRank Citation
// Ranking" (1999); used by BookRAG (arXiv 2512.03413) for graph reasoning.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/knowledge_graph.hpp"
#include "bookrag/types.hpp"

namespace bookrag {

struct PageRankOptions {
    // Probability that the walk goes on along a relation; with 1 - damping it restarts at the
    // seeds. 0 <= damping < 1. (BookRAG: 0.5.)
    double damping = 0.5;
    // Bound on the L1 distance between the result before rounding to float32 and the exact
    // solution. 1e-12 <= tol <= 1.
    double tol = 1e-6;
};

// The stationary distribution of a walk that follows relations in proportion to their weight and
// restarts at the seeds; it sums to 1.
//
// Rule for entities without relations: a walk there restarts at the seeds at once. igraph
// (personalized_pagerank with reset) and networkx (dangling = personalization) do the same.
// Entities that no seed reaches score 0.
//
// seeds: entity ids, at least one; repeats add up. weights: empty (all seeds alike) or one a seed,
// finite, >= 0, with a sum > 0; only their ratios matter.
//
// Method: power iteration in float64. The iterate's residual r bounds its error by |r|_1 / (1 -
// damping), so the bound `tol` is kept, not guessed; log(tol) / log(damping) passes at most. Sums
// have no negative terms, so weights of any magnitude are safe. Deterministic.
// O(passes * (num_entities + relations)) time, O(num_entities) memory. Thread safe.
// Throws Error: bad option (also a damping so near 1 that more than 1e5 passes may be needed), no
// seed, an unknown seed, bad weights.
[[nodiscard]] std::vector<float> personalized_pagerank(const KnowledgeGraph& graph,
                                                       std::span<const EntityId> seeds,
                                                       std::span<const float> weights = {},
                                                       const PageRankOptions& options = {});

// The same walk confined to `entities` and the relations among them (BookRAG's G'). The result
// still has one score an entity of `graph`, 0 outside. Seeds outside `entities` are left out; Error
// (invalid_argument) if no seed with a weight > 0 remains.
[[nodiscard]] std::vector<float> personalized_pagerank_within(const KnowledgeGraph& graph,
                                                              std::span<const EntityId> entities,
                                                              std::span<const EntityId> seeds,
                                                              std::span<const float> weights = {},
                                                              const PageRankOptions& options = {});

}  // namespace bookrag
