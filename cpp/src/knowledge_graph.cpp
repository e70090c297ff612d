#include "bookrag/knowledge_graph.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "check.hpp"
#include "csr.hpp"
#include "long_rows.hpp"
#include "ppr_layout.hpp"

namespace bookrag {

namespace {

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

void check_weights(std::span<const float> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!std::isfinite(weights[i]) || weights[i] <= 0.0F) {
            detail::invalid(detail::at("weights", i) + " is " + detail::text(double{weights[i]}) +
                            ", but a relation's weight must be finite and > 0");
        }
    }
}

}  // namespace

// What is made on first use, once, whatever the number of threads. A mutex and a flag rather than
// std::call_once, which throws in a program that links no threads.
struct KnowledgeGraph::Lazy {
    template <typename T>
    class Once {
      public:
        template <typename Build>
        const T& get(const Build& build) {
            if (!ready_.load(std::memory_order_acquire)) {
                const std::lock_guard lock(building_);
                if (!ready_.load(std::memory_order_relaxed)) {
                    T made;
                    build(made);
                    value_ = std::move(made);
                    ready_.store(true, std::memory_order_release);
                }
            }
            return value_;
        }

      private:
        std::mutex building_;
        std::atomic<bool> ready_{false};
        T value_;
    };
    Once<detail::PprLayout> layout;
    Once<detail::LongRows> long_rows;
};

KnowledgeGraph::KnowledgeGraph() : lazy_(std::make_shared<Lazy>()) {}

const detail::PprLayout& KnowledgeGraph::walk_layout() const {
    return lazy_->layout.get([this](detail::PprLayout& layout) {
        const auto rows = offsets_.size() - 1;
        const std::span<const std::int64_t> offsets = offsets_;
        layout.build(offsets.first(rows), offsets.last(rows), targets_, weights_);
    });
}

const detail::LongRows& KnowledgeGraph::long_rows() const {
    return lazy_->long_rows.get(
        [this](detail::LongRows& rows) { rows.build(adjacency(), weights_); });
}

KnowledgeGraph::KnowledgeGraph(std::int64_t num_entities, std::span<const EntityId> sources,
                               std::span<const EntityId> targets, std::span<const float> weights)
    : KnowledgeGraph() {
    detail::check_count(num_entities, kMaxEntities, "num_entities");
    detail::check_count(static_cast<std::int64_t>(sources.size()), kMaxRelations,
                        "number of relations");
    detail::check_same_length(sources.size(), "sources", targets.size(), "targets");
    detail::check_same_length(sources.size(), "sources", weights.size(), "weights");
    detail::check_ids(sources, num_entities, "sources", "entities");
    detail::check_ids(targets, num_entities, "targets", "entities");
    check_weights(weights);
    num_relations_ = static_cast<std::int64_t>(sources.size());

    offsets_.assign(idx(num_entities) + 1, 0);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        ++offsets_[idx(sources[i]) + 1];
        if (targets[i] != sources[i]) ++offsets_[idx(targets[i]) + 1];
    }
    detail::counts_to_offsets(offsets_);
    const auto slots = idx(offsets_.back());

    // First pass: rows filled in relation order.
    struct Slot {
        EntityId neighbour;
        RelationId relation;
    };
    std::vector<Slot> by_relation(slots);
    auto next = detail::row_cursors(offsets_);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto relation = static_cast<RelationId>(i);
        by_relation[idx(next[idx(sources[i])]++)] = {targets[i], relation};
        if (targets[i] != sources[i]) {
            by_relation[idx(next[idx(targets[i])]++)] = {sources[i], relation};
        }
    }

    // Second pass: the adjacency is symmetric, so handing each slot of row u over to its
    // neighbour's row, u ascending, fills every row in order of neighbour, then of relation: a
    // radix sort.
    targets_.resize(slots);
    weights_.resize(slots);
    relations_.resize(slots);
    next = detail::row_cursors(offsets_);
    for (std::int64_t u = 0; u < num_entities; ++u) {
        for (auto s = offsets_[idx(u)]; s < offsets_[idx(u) + 1]; ++s) {
            const Slot slot = by_relation[idx(s)];
            const auto to = idx(next[idx(slot.neighbour)]++);
            targets_[to] = static_cast<EntityId>(u);
            weights_[to] = weights[idx(slot.relation)];
            relations_[to] = slot.relation;
        }
    }
    sum_rows();
}

void KnowledgeGraph::sum_rows() {
    strength_.resize(offsets_.size() - 1);
    for (std::size_t e = 0; e < strength_.size(); ++e) {
        strength_[e] = std::accumulate(weights_.begin() + offsets_[e],
                                       weights_.begin() + offsets_[e + 1], 0.0);
    }
}

KnowledgeGraph::Neighbours KnowledgeGraph::neighbours(EntityId entity) const {
    detail::check_id(entity, num_entities(), "entity", "entities");
    const auto begin = idx(offsets_[idx(entity)]);
    const auto size = idx(offsets_[idx(entity) + 1]) - begin;
    return {std::span(targets_).subspan(begin, size), std::span(weights_).subspan(begin, size),
            std::span(relations_).subspan(begin, size)};
}

std::vector<std::int32_t> KnowledgeGraph::degrees() const {
    std::vector<std::int32_t> out(offsets_.size() - 1);
    for (std::size_t e = 0; e < out.size(); ++e) {
        out[e] = static_cast<std::int32_t>(offsets_[e + 1] - offsets_[e]);
    }
    return out;
}

InducedGraph KnowledgeGraph::induced(std::span<const EntityId> entities) const {
    detail::check_ids(entities, num_entities(), "entities", "entities");
    std::vector<EntityId> kept(entities.begin(), entities.end());
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());

    std::vector<EntityId> renamed(idx(num_entities()), EntityId{-1});
    for (std::size_t i = 0; i < kept.size(); ++i) renamed[idx(kept[i])] = static_cast<EntityId>(i);

    KnowledgeGraph graph;
    graph.offsets_.reserve(kept.size() + 1);
    std::int64_t loops = 0;
    for (const EntityId e : kept) {
        for (auto s = idx(offsets_[idx(e)]); s < idx(offsets_[idx(e) + 1]); ++s) {
            const EntityId neighbour = renamed[idx(targets_[s])];
            if (neighbour < 0) continue;
            graph.targets_.push_back(neighbour);
            graph.weights_.push_back(weights_[s]);
            graph.relations_.push_back(relations_[s]);
            loops += targets_[s] == e;
        }
        graph.offsets_.push_back(static_cast<std::int64_t>(graph.targets_.size()));
    }
    // A loop fills one slot, any other relation two.
    graph.num_relations_ = (static_cast<std::int64_t>(graph.targets_.size()) + loops) / 2;
    graph.sum_rows();
    return {std::move(graph), std::move(kept)};
}

}  // namespace bookrag
