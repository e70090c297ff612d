// The GT-Link M of a BookIndex (BookRAG, arXiv 2512.03413, section 4): which tree nodes an entity
// was extracted from, many to many, kept in both directions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag {

// Immutable after construction; all reads are safe from any number of threads. Returned spans live
// as long as the link.
class GTLink {
  public:
    // Pair i ties entities[i] to nodes[i]; repeated pairs count once.
    // O(num_entities + num_nodes + pairs) time and memory.
    // Throws Error: unequal lengths, an unknown entity or node (with its position), counts beyond
    // kMaxEntities, kMaxNodes or kMaxRelations.
    GTLink(std::int64_t num_entities, std::int64_t num_nodes, std::span<const EntityId> entities,
           std::span<const NodeId> nodes);

    [[nodiscard]] std::int32_t num_entities() const noexcept {
        return static_cast<std::int32_t>(node_offsets_.size() - 1);
    }
    [[nodiscard]] std::int32_t num_nodes() const noexcept {
        return static_cast<std::int32_t>(entity_offsets_.size() - 1);
    }
    // Distinct pairs.
    [[nodiscard]] std::int64_t num_links() const noexcept {
        return static_cast<std::int64_t>(nodes_.size());
    }

    // Row e: nodes of entity e, ascending. Row n: entities of node n, ascending.
    [[nodiscard]] CsrView entity_to_nodes() const noexcept { return {node_offsets_, nodes_}; }
    [[nodiscard]] CsrView node_to_entities() const noexcept { return {entity_offsets_, entities_}; }

    // Ascending ids. O(1). Throws out_of_range.
    [[nodiscard]] std::span<const NodeId> nodes_of(EntityId entity) const;
    [[nodiscard]] std::span<const EntityId> entities_of(NodeId node) const;

    // Union over many (any order, repeats allowed): ids ascending, each once.
    // O(r log r) for r links touched. Throws out_of_range naming the position.
    [[nodiscard]] std::vector<NodeId> nodes_of_many(std::span<const EntityId> entities) const;
    [[nodiscard]] std::vector<EntityId> entities_of_many(std::span<const NodeId> nodes) const;

    // Node score = sum of the scores of the entities tied to it (BookRAG, graph reasoning), added
    // in ascending entity order in float64, rounded once. scores: one an entity, finite.
    //
    // O(num_nodes + num_links). Throws invalid_argument: wrong length, a value that is not finite.
    [[nodiscard]] std::vector<float> project(std::span<const float> scores) const;

  private:
    std::vector<std::int64_t> node_offsets_;
    std::vector<NodeId> nodes_;
    std::vector<std::int64_t> entity_offsets_;
    std::vector<EntityId> entities_;
};

}  // namespace bookrag
