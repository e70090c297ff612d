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
    // solution. 1e-12 <= tol <= 1; below about 1e-14 / (1 - damping), float64 gives no more than
    // that.
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
// Method: successive over-relaxation (Young, 1954) in float32 over rows laid out for vectors, sped
// up by putting right every other sweep what the scores lack of their known sum; then one pass in
// float64 whose residual r bounds the error by damping / (1 - damping) |r|_1: `tol` is kept, not
// guessed. Where float32 cannot keep it (tol below about 4e-7 / (1 - damping)), iterative
// refinement with exact weights in float64 takes over. For 1e-6 that takes 8 passes at damping 0.5,
// 13 to 19 at 0.85, where power iteration takes 17 and 40. The layout is made on a graph's first
// use, O(num_entities + relations), and kept.
//
// Deterministic: the same bits from any thread and any instruction set. O(sweeps * (num_entities +
// relations)) time; O(num_entities) memory, kept by the thread for its next call. Thread safe.
// Throws Error: bad option (also a damping so near 1 that more than 1e5 passes may be needed), no
// seed, an unknown seed, bad weights.
[[nodiscard]] std::vector<float> personalized_pagerank(const KnowledgeGraph& graph,
                                                       std::span<const EntityId> seeds,
                                                       std::span<const float> weights = {},
                                                       const PageRankOptions& options = {});

// Passes over the graph that this takes, the certifying ones included; for measurements.
[[nodiscard]] std::int64_t personalized_pagerank_passes(const KnowledgeGraph& graph,
                                                        std::span<const EntityId> seeds,
                                                        const PageRankOptions& options = {});

// In float64: tol also bounds the error of the values returned.
[[nodiscard]] std::vector<double> personalized_pagerank64(const KnowledgeGraph& graph,
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

[[nodiscard]] std::vector<double> personalized_pagerank_within64(
    const KnowledgeGraph& graph, std::span<const EntityId> entities,
    std::span<const EntityId> seeds, std::span<const float> weights = {},
    const PageRankOptions& options = {});

template <typename T>
struct EntityScores {
    std::vector<EntityId> entities;
    std::vector<T> scores;
};

// The same without the zeros: scores of `entities` alone, ascending and distinct, in time and
// memory that do not depend on the size of the graph (after a thread's first call).
[[nodiscard]] EntityScores<float> personalized_pagerank_induced(
    const KnowledgeGraph& graph, std::span<const EntityId> entities,
    std::span<const EntityId> seeds, std::span<const float> weights = {},
    const PageRankOptions& options = {});
[[nodiscard]] EntityScores<double> personalized_pagerank_induced64(
    const KnowledgeGraph& graph, std::span<const EntityId> entities,
    std::span<const EntityId> seeds, std::span<const float> weights = {},
    const PageRankOptions& options = {});

// The k entities with the highest scores (fewer if fewer score above 0), best first, ties by
// ascending id. Stops as soon as the error bound proves which they are and in what order, at the
// latest when it is within options.tol; scores carry that error. `within`: confined to these
// entities, as above; nullptr: the whole graph.
[[nodiscard]] EntityScores<float> personalized_pagerank_top(
    const KnowledgeGraph& graph, std::int64_t k, std::span<const EntityId> seeds,
    std::span<const float> weights = {}, const PageRankOptions& options = {},
    const std::span<const EntityId>* within = nullptr);

// Many walks at once: walk i has the seeds seeds[offsets[i] .. offsets[i + 1]), and likewise
// weights (empty: all alike). Returns walks * num_entities scores, walk by walk. Each walk's error
// is within tol; its last bits depend on the walks it shares passes with.
//
// 16 walks share a pass (values of an entity side by side, one cache line), which costs little more
// than two of one walk, as long as the caches hold 64 bytes an entity; beyond, and for fewer
// than three walks, one by one. O(num_entities) memory besides the result.
[[nodiscard]] std::vector<float> personalized_pagerank_batch(const KnowledgeGraph& graph,
                                                             std::span<const std::int64_t> offsets,
                                                             std::span<const EntityId> seeds,
                                                             std::span<const float> weights = {},
                                                             const PageRankOptions& options = {});

}  // namespace bookrag
