// The knowledge graph G of a BookIndex (BookRAG, arXiv 2512.03413, section 4): an undirected,
// weighted multigraph of entities, as compressed sparse rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag {

struct InducedGraph;
namespace detail {
class LongRows;
class PprLayout;
}  // namespace detail

// Immutable after construction; all reads are safe from any number of threads. Returned spans live
// as long as the graph.
//
// Every relation stays: parallel relations keep a slot each (their weights add up in a random
// walk), and each slot knows the relation it came from. A relation between two entities fills one
// slot in either row; a self-loop fills one slot in its row and counts its weight once (as in
// networkx and in an adjacency matrix; igraph counts it twice). Slots of a row are ordered by
// neighbour, then by relation.
class KnowledgeGraph {
  public:
    // Relation i joins sources[i] and targets[i] with weights[i]; three arrays of equal length.
    // Weights are finite and > 0, in any unit: only their ratios matter.
    // O(num_entities + relations) time and memory.
    // Throws Error: unequal lengths, an unknown entity, a weight that is NaN, infinite or <= 0
    // (each with its position), counts beyond kMaxEntities or kMaxRelations.
    KnowledgeGraph(std::int64_t num_entities, std::span<const EntityId> sources,
                   std::span<const EntityId> targets, std::span<const float> weights);

    [[nodiscard]] std::int32_t num_entities() const noexcept {
        return static_cast<std::int32_t>(offsets_.size() - 1);
    }
    [[nodiscard]] std::int64_t num_relations() const noexcept { return num_relations_; }

    // Row e: neighbours of e. weights() and relation_ids() run parallel to targets.
    [[nodiscard]] CsrView adjacency() const noexcept { return {offsets_, targets_}; }
    [[nodiscard]] std::span<const float> weights() const noexcept { return weights_; }
    [[nodiscard]] std::span<const RelationId> relation_ids() const noexcept { return relations_; }
    // Sum of the weights of each row, float64 so that huge and tiny weights do not spoil it.
    [[nodiscard]] std::span<const double> weighted_degrees() const noexcept { return strength_; }

    struct Neighbours {
        std::span<const EntityId> entities;
        std::span<const float> weights;
        std::span<const RelationId> relations;
    };
    // O(1). Throws out_of_range.
    [[nodiscard]] Neighbours neighbours(EntityId entity) const;

    // Slots of each row: a self-loop counts once. O(num_entities).
    [[nodiscard]] std::vector<std::int32_t> degrees() const;

    // The graph of `entities` (any order, repeats allowed) and the relations among them. Entity i
    // of the result is the i-th smallest of them; relation ids stay those of this graph.
    // O(num_entities + slots of the entities). Throws out_of_range naming the position.
    [[nodiscard]] InducedGraph induced(std::span<const EntityId> entities) const;

    // For PageRank: the walk matrix, laid out on first use, once, whatever the number of threads.
    [[nodiscard]] const detail::PprLayout& walk_layout() const;
    // For cutting graphs out: relations among hubs, likewise.
    [[nodiscard]] const detail::LongRows& long_rows() const;

  private:
    struct Lazy;
    KnowledgeGraph();
    void sum_rows();

    std::int64_t num_relations_ = 0;
    std::vector<std::int64_t> offsets_{0};
    std::vector<EntityId> targets_;
    std::vector<float> weights_;
    std::vector<RelationId> relations_;
    std::vector<double> strength_;
    std::shared_ptr<Lazy> lazy_;  // of copies too: they are equal and never change
};

struct InducedGraph {
    KnowledgeGraph graph;
    // Entity of the original graph, by entity of the new one; ascending.
    std::vector<EntityId> entities;
};

}  // namespace bookrag
