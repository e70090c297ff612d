// Laying a book out for questions: chapters, relations by cosine, neighbours.
#include "retrieval_book.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "check.hpp"
#include "csr.hpp"

namespace bookrag {

namespace {

using detail::RetrievalScratch;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

void check_length(std::size_t length, const char* name, std::int64_t wanted, const char* why) {
    if (length != idx(wanted)) {
        detail::invalid(std::string(name) + " has " + std::to_string(length) + " values, but " +
                        why + " " + std::to_string(wanted));
    }
}

}  // namespace

namespace detail {

std::unique_ptr<RetrievalScratch> ScratchPool::take() {
    const std::scoped_lock hold(guard_);
    if (idle_.empty()) return nullptr;
    auto last = std::move(idle_.back());
    idle_.pop_back();
    return last;
}

void ScratchPool::give(std::unique_ptr<RetrievalScratch> scratch) {
    const std::scoped_lock hold(guard_);
    idle_.push_back(std::move(scratch));
}

}  // namespace detail

Retriever::Book::Book(const Tree& tree_, const KnowledgeGraph& graph_, const GTLink& link_,
                      const NeighbourLists& neighbours, std::span<const float> relation_cosines,
                      std::span<const std::uint8_t> content_, std::int32_t chapter_depth)
    : tree(&tree_), graph(&graph_), link(&link_) {
    const std::int64_t nodes = tree->num_nodes();
    const std::int64_t entities_count = graph->num_entities();
    if (link->num_nodes() != nodes || link->num_entities() != entities_count) {
        detail::invalid("link ties " + std::to_string(link->num_entities()) + " entities to " +
                        std::to_string(link->num_nodes()) + " nodes, but graph has " +
                        std::to_string(entities_count) + " and tree " + std::to_string(nodes));
    }
    check_length(content_.size(), "content", nodes, "the nodes are");
    check_length(relation_cosines.size(), "relation_cosines", graph->num_relations(),
                 "the relations are");
    if (neighbours.width < 0) detail::invalid("the width of the neighbour lists is negative");
    check_length(neighbours.ids.size(), "neighbours", entities_count * neighbours.width,
                 "entities times width are");
    check_length(neighbours.cosines.size(), "neighbour_cosines", std::ssize(neighbours.ids),
                 "neighbours are");
    if (chapter_depth < 0) {
        detail::invalid("chapter_depth is " + std::to_string(chapter_depth) +
                        ", but must not be negative");
    }
    find_chapters(chapter_depth);
    for (NodeId v = 0; v < nodes; ++v) {
        if (content_[idx(v)] == 0) continue;
        content.push_back(v);
        content_chapter.push_back(chapter_of[idx(v)]);
    }
    lay_out_relations(relation_cosines);
    lay_out_neighbours(neighbours);
}

void Retriever::Book::find_chapters(std::int32_t depth) {
    std::vector<std::int32_t> number(idx(tree->num_nodes()), -1);
    for (const auto v : tree->document_order()) {
        if (tree->depths()[idx(v)] != depth) continue;
        number[idx(v)] = num_chapters++;
        chapter_size.push_back(tree->subtree_sizes()[idx(v)]);
    }
    chapter_size.push_back(0);
    chapter_of.assign(idx(tree->num_nodes()), num_chapters);
    for (const auto v : tree->document_order()) {
        if (number[idx(v)] < 0) continue;
        for (const auto below : tree->subtree(v)) chapter_of[idx(below)] = number[idx(v)];
    }
    // (entity, chapter), each once, by entity and by chapter. Mentions in no chapter select
    // nothing.
    std::vector<std::int32_t> own;
    std::vector<std::int64_t> counts(idx(num_chapters) + 1, 0);
    for (EntityId e = 0; e < graph->num_entities(); ++e) {
        own.clear();
        for (const auto v : link->entity_to_nodes().row(e)) {
            if (chapter_of[idx(v)] < num_chapters) own.push_back(chapter_of[idx(v)]);
        }
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        for (const auto c : own) ++counts[idx(c) + 1];
        chapters_of.values.insert(chapters_of.values.end(), own.begin(), own.end());
        chapters_of.offsets.push_back(std::ssize(chapters_of.values));
    }
    detail::counts_to_offsets(counts);
    entities_of.offsets = counts;
    entities_of.values.resize(chapters_of.values.size());
    auto next = detail::row_cursors(entities_of.offsets);
    for (EntityId e = 0; e < graph->num_entities(); ++e) {
        for (const auto c : chapters_of.row(e)) entities_of.values[idx(next[idx(c)]++)] = e;
    }
}

void Retriever::Book::lay_out_relations(std::span<const float> cosines) {
    for (std::size_t r = 0; r < cosines.size(); ++r) {
        if (!std::isfinite(cosines[r])) {
            detail::invalid(detail::at("relation_cosines", r) + " is " + detail::text(cosines[r]) +
                            ", but must be finite");
        }
    }
    std::vector<RelationId> order(cosines.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](RelationId a, RelationId b) {
        const float x = cosines[idx(a)];
        const float y = cosines[idx(b)];
        return x != y ? x < y : a < b;
    });
    std::vector<std::int32_t> rank(order.size());
    cosine_at.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        rank[idx(order[i])] = static_cast<std::int32_t>(i);
        cosine_at[i] = cosines[idx(order[i])];
    }
    const CsrView rows = graph->adjacency();
    relations_of.values.reserve(order.size());
    for (EntityId e = 0; e < graph->num_entities(); ++e) {
        for (auto slot = rows.offsets[idx(e)]; slot < rows.offsets[idx(e) + 1]; ++slot) {
            const auto other = rows.targets[idx(slot)];
            if (other < e) continue;
            relations_of.values.push_back({other, rank[idx(graph->relation_ids()[idx(slot)])]});
        }
        relations_of.offsets.push_back(std::ssize(relations_of.values));
    }
}

void Retriever::Book::lay_out_neighbours(const NeighbourLists& lists) {
    const auto width = idx(lists.width);
    const auto refuse = [](std::size_t e, std::size_t column, const std::string& why) {
        detail::invalid("neighbours[" + std::to_string(e) + ", " + std::to_string(column) + "] " +
                        why);
    };
    std::vector<EntityId> seen_by(idx(graph->num_entities()), -1);
    for (std::size_t e = 0; e < idx(graph->num_entities()); ++e) {
        const auto related = graph->adjacency().row(static_cast<std::int64_t>(e));
        float before = std::numeric_limits<float>::infinity();
        bool ended = false;
        for (std::size_t c = 0; c < width; ++c) {
            const EntityId id = lists.ids[e * width + c];
            const float cosine = lists.cosines[e * width + c];
            if (id == -1) {
                ended = true;
                continue;
            }
            if (ended) refuse(e, c, "follows a -1, but must stand before it");
            if (id < 0 || id >= graph->num_entities()) {
                detail::fail(ErrorCode::out_of_range,
                             "neighbours[" + std::to_string(e) + ", " + std::to_string(c) +
                                 "] is " + std::to_string(id) + ", but " +
                                 detail::known(graph->num_entities(), "entities"));
            }
            if (idx(id) == e) refuse(e, c, "is the entity itself");
            if (seen_by[idx(id)] == static_cast<EntityId>(e)) refuse(e, c, "repeats");
            seen_by[idx(id)] = static_cast<EntityId>(e);
            if (!std::isfinite(cosine) || cosine > before) {
                refuse(e, c,
                       "has the cosine " + detail::text(cosine) +
                           ", but cosines must be finite and descend");
            }
            before = cosine;
            // Rows of the adjacency are sorted by neighbour.
            if (cosine > 0.0F && !std::binary_search(related.begin(), related.end(), id)) {
                near.values.push_back({id, cosine, kNoBack});
            }
        }
        near.offsets.push_back(std::ssize(near.values));
    }
    for (EntityId e = 0; e < graph->num_entities(); ++e) {
        for (auto i = near.offsets[idx(e)]; i < near.offsets[idx(e) + 1]; ++i) {
            const auto theirs = near.row(near.values[idx(i)].entity);
            for (std::size_t j = 0; j < theirs.size(); ++j) {
                if (theirs[j].entity == e) near.values[idx(i)].back = static_cast<std::int32_t>(j);
            }
        }
    }
}

std::unique_ptr<RetrievalScratch> Retriever::Book::scratch() const {
    auto s = pool.take();
    if (s != nullptr) return s;
    s = std::make_unique<RetrievalScratch>();
    const auto nodes = idx(tree->num_nodes());
    const auto entities = idx(graph->num_entities());
    const auto chapters_count = idx(num_chapters) + 1;
    s->ranking.reserve(nodes);
    s->chosen.resize(chapters_count);
    s->best_text.resize(chapters_count);
    s->best_node.resize(chapters_count);
    s->chapters.reserve(chapters_count);
    for (auto* values : {&s->text, &s->base, &s->relevance, &s->graph, &s->bonus}) {
        values->resize(nodes);
    }
    s->is_named.resize(nodes);
    for (auto* values : {&s->candidates, &s->others, &s->kept, &s->rest}) values->reserve(nodes);
    s->members.resize(entities);
    s->ranks.resize(cosine_at.size());
    s->entities.reserve(entities);
    s->loaded.reserve(entities);
    s->row_of.resize(entities, -1);
    s->entity_scores.resize(entities);
    return s;
}

}  // namespace bookrag
