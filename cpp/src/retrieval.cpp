#include "bookrag/retrieval.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "check.hpp"
#include "ppr_restart.hpp"
#include "retrieval_book.hpp"

namespace bookrag {

namespace {

using detail::RetrievalScratch;

constexpr std::uint8_t kByEntity = 1;
constexpr std::uint8_t kBySection = 2;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

class Clock {
  public:
    // Microseconds since the last call.
    float lap() noexcept {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<float, std::micro> passed = now - start_;
        start_ = now;
        return passed.count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool all_finite(std::span<const float> values) noexcept {
    std::uint32_t wrong = 0;  // no branch: vectorised
    for (const float v : values) {
        wrong |= (std::bit_cast<std::uint32_t>(v) & 0x7F800000U) == 0x7F800000U ? 1U : 0U;
    }
    return wrong == 0;
}

void check_finite(std::span<const float> values, const char* name) {
    if (all_finite(values)) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isfinite(values[i])) continue;
        detail::invalid(detail::at(name, i) + " is " + detail::text(values[i]) +
                        ", but must be finite");
    }
    detail::invalid(std::string(name) + " changed while it was read");
}

void check_seeds(std::span<const EntityId> seeds, std::span<const float> weights,
                 std::int64_t entities) {
    detail::check_same_length(seeds.size(), "seeds", weights.size(), "seed_weights");
    detail::check_ids(seeds, entities, "seeds", "entities");
    check_finite(weights, "seed_weights");
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] < 0.0F) {
            detail::invalid(detail::at("seed_weights", i) + " is " + detail::text(weights[i]) +
                            ", but must not be negative");
        }
    }
}

void check_options(const GraphOptions& options) {
    (void)detail::max_passes(options.walk);
    if (!(options.percentile >= 0.0 && options.percentile <= 100.0)) {
        detail::invalid("percentile is " + detail::text(options.percentile) +
                        ", but must lie between 0 and 100");
    }
}

void check_not_negative(std::int32_t value, const char* name) {
    if (value < 0) {
        detail::invalid(std::string(name) + " is " + std::to_string(value) +
                        ", but must not be negative");
    }
}

void check_scores_room(std::size_t length, std::int64_t wanted, const char* things) {
    if (length != idx(wanted)) {
        detail::invalid("scores has room for " + std::to_string(length) + " values, but " +
                        detail::known(wanted, things));
    }
}

}  // namespace

Retriever::Retriever(const Tree& tree, const KnowledgeGraph& graph, const GTLink& link,
                     const NeighbourLists& neighbours, std::span<const float> relation_cosines,
                     std::span<const std::uint8_t> content, std::int32_t chapter_depth)
    : book_(std::make_unique<Book>(tree, graph, link, neighbours, relation_cosines, content,
                                   chapter_depth)) {}
Retriever::~Retriever() = default;
Retriever::Retriever(Retriever&&) noexcept = default;
Retriever& Retriever::operator=(Retriever&&) noexcept = default;

std::int32_t Retriever::num_nodes() const noexcept {
    return book_->tree->num_nodes();
}
std::int32_t Retriever::num_entities() const noexcept {
    return book_->graph->num_entities();
}
std::int32_t Retriever::num_chapters() const noexcept {
    return book_->num_chapters;
}

// ---------------------------------------------------------------- the operators

namespace {

// Checks the query and takes its numbers over: the caller's may change meanwhile, ours do not.
void take(RetrievalScratch& s, const RetrievalQuery& query) {
    std::copy(query.text_scores.begin(), query.text_scores.end(), s.text.begin());
    check_finite(s.text, "text_scores");
    std::copy(s.text.begin(), s.text.end(), s.base.begin());
    if (query.named.empty()) return;
    for (std::size_t i = 0; i < query.named.size(); ++i) {
        s.bonus[idx(query.named[i])] += query.bonus[i];
        s.is_named[idx(query.named[i])] = 1;
    }
    for (const auto v : query.named) s.base[idx(v)] = s.text[idx(v)] + s.bonus[idx(v)];
    check_finite(s.base, "text_scores + bonus");
}

// Releases what take() has marked by node.
void forget_named(RetrievalScratch& s, const RetrievalQuery& query) {
    for (const auto v : query.named) {
        s.bonus[idx(v)] = 0.0F;
        s.is_named[idx(v)] = 0;
    }
}

}  // namespace

void Retriever::Book::select_by_entity(RetrievalScratch& s, std::span<const EntityId> seeds) const {
    std::fill(s.chosen.begin(), s.chosen.end(), std::uint8_t{0});
    for (const auto e : seeds) {
        for (const auto c : chapters_of.row(e)) s.chosen[idx(c)] |= kByEntity;
    }
}

void Retriever::Book::select_by_section(RetrievalScratch& s, std::int32_t at_most) const {
    std::fill(s.best_text.begin(), s.best_text.end(), 0.0F);
    for (std::size_t i = 0; i < content.size(); ++i) {
        const auto c = idx(content_chapter[i]);
        const float t = s.text[idx(content[i])];
        if (t > s.best_text[c]) {  // of equals the first
            s.best_text[c] = t;
            s.best_node[c] = content[i];
        }
    }
    s.chapters.clear();
    for (std::int32_t c = 0; c < num_chapters; ++c) {
        if (s.best_text[idx(c)] > 0.0F) s.chapters.push_back(c);
    }
    const auto added = std::min(idx(at_most), s.chapters.size());
    std::partial_sort(s.chapters.begin(), s.chapters.begin() + static_cast<std::ptrdiff_t>(added),
                      s.chapters.end(), [&](std::int32_t a, std::int32_t b) {
                          const float x = s.best_text[idx(a)];
                          const float y = s.best_text[idx(b)];
                          return x != y ? x > y : s.best_node[idx(a)] < s.best_node[idx(b)];
                      });
    for (std::size_t i = 0; i < added; ++i) s.chosen[idx(s.chapters[i])] |= kBySection;
}

// The content nodes selected and the others.
void Retriever::Book::part(RetrievalScratch& s, Retrieval& out) const {
    out.by_entity = out.by_section = 0;
    for (std::int32_t c = 0; c < num_chapters; ++c) {
        const auto how = s.chosen[idx(c)];
        if ((how & kByEntity) != 0) out.by_entity += chapter_size[idx(c)];
        if ((how & kBySection) != 0) out.by_section += chapter_size[idx(c)];
    }
    s.candidates.resize(content.size());
    s.others.resize(content.size());
    std::size_t in = 0;
    std::size_t outside = 0;
    for (std::size_t i = 0; i < content.size(); ++i) {
        const bool selected =
            (s.chosen[idx(content_chapter[i])] | s.is_named[idx(content[i])]) != 0;
        s.candidates[in] = content[i];
        s.others[outside] = content[i];
        in += selected ? 1 : 0;
        outside += selected ? 0 : 1;
    }
    s.candidates.resize(in);
    s.others.resize(outside);
}

// The entities of the selected nodes, as members.
void Retriever::Book::gather(RetrievalScratch& s, std::span<const NodeId> named) const {
    for (std::int32_t c = 0; c < num_chapters; ++c) {
        if (s.chosen[idx(c)] == 0) continue;
        for (const auto e : entities_of.row(c)) s.members.insert(e);
    }
    for (const auto v : named) {
        for (const auto e : link->node_to_entities().row(v)) s.members.insert(e);
    }
}

void Retriever::retrieve(const RetrievalQuery& query, const RetrievalOptions& options,
                         Retrieval& out) const {
    const Book& book = *book_;
    check_seeds(query.seeds, query.seed_weights, num_entities());
    if (std::ssize(query.text_scores) != num_nodes()) {
        detail::invalid("text_scores has " + std::to_string(query.text_scores.size()) +
                        " values, but " + detail::known(num_nodes(), "nodes"));
    }
    detail::check_same_length(query.named.size(), "named", query.bonus.size(), "bonus");
    detail::check_ids(query.named, num_nodes(), "named", "nodes");
    check_finite(query.bonus, "bonus");
    check_options(options.graph);
    check_not_negative(options.added_sections, "added_sections");
    check_not_negative(options.minimum, "minimum");
    if (!std::isfinite(options.graph_weight)) {
        detail::invalid("graph_weight is " + detail::text(options.graph_weight) +
                        ", but must be finite");
    }

    auto held = book.scratch();
    RetrievalScratch& s = *held;
    Clock clock;
    take(s, query);
    out.micros = {};
    book.select_by_entity(s, query.seeds);
    out.micros.by_entity = clock.lap();
    book.select_by_section(s, options.added_sections);
    book.part(s, out);
    out.micros.by_section = clock.lap();
    out.linked = false;
    out.entities = 0;
    out.relations = out.new_relations = 0;
    if (!query.seeds.empty()) {
        book.gather(s, query.named);
        book.collect(s);
        out.entities = static_cast<std::int32_t>(s.entities.size());
        out.linked = book.place_seeds(s, query.seeds, query.seed_weights);
    }
    if (out.linked) {
        book.augment(s, options.graph.percentile);
        out.relations = s.relations;
        out.new_relations = s.new_relations;
        out.micros.augment = clock.lap();
        book.solve(s, options.graph.walk);
        out.micros.pagerank = clock.lap();
        book.project(s, s.graph);
        float top = 0.0F;
        for (const float g : s.graph) top = std::max(top, g);
        for (std::size_t v = 0; v < s.base.size(); ++v) {
            const float share = top > 0.0F ? s.graph[v] / top : s.graph[v];
            s.relevance[v] = s.base[v] + options.graph_weight * share;
        }
        out.micros.project = clock.lap();
    }
    book.forget(s);

    const std::span<const float> graph =
        out.linked ? std::span<const float>(s.graph) : std::span<const float>();
    s.ranking.skyline(s.candidates, s.base, graph, idx(options.minimum), s.kept, s.rest);
    out.kept = static_cast<std::int32_t>(s.kept.size());
    out.selected = static_cast<std::int32_t>(s.candidates.size());
    out.micros.skyline = clock.lap();

    const std::size_t limit =
        options.limit < 0 ? book.content.size() : std::min(idx(options.limit), book.content.size());
    const auto& relevance = out.linked ? s.relevance : s.base;
    out.nodes.clear();
    out.nodes.reserve(limit);
    for (const auto* tier : {&s.kept, &s.rest, &s.others}) {
        s.ranking.append_by(*tier, relevance, limit - out.nodes.size(), out.nodes);
    }
    out.relevance.resize(out.nodes.size());
    out.graph.resize(graph.empty() ? 0 : out.nodes.size());
    for (std::size_t i = 0; i < out.nodes.size(); ++i) {
        out.relevance[i] = relevance[idx(out.nodes[i])];
        if (!graph.empty()) out.graph[i] = graph[idx(out.nodes[i])];
    }
    forget_named(s, query);
    book.pool.give(std::move(held));
    out.micros.order = clock.lap();
}

bool Retriever::graph_reasoning(std::span<const NodeId> nodes, std::span<const EntityId> seeds,
                                std::span<const float> seed_weights, const GraphOptions& options,
                                std::span<float> scores) const {
    check_seeds(seeds, seed_weights, num_entities());
    detail::check_ids(nodes, num_nodes(), "nodes", "nodes");
    check_options(options);
    check_scores_room(scores.size(), num_nodes(), "nodes");
    auto held = book_->scratch();
    RetrievalScratch& s = *held;
    for (const auto v : nodes) {
        for (const auto e : book_->link->node_to_entities().row(v)) s.members.insert(e);
    }
    book_->collect(s);
    const bool linked = book_->place_seeds(s, seeds, seed_weights);
    if (linked) {
        book_->augment(s, options.percentile);
        book_->solve(s, options.walk);
        book_->project(s, scores);
    }
    book_->forget(s);
    book_->pool.give(std::move(held));
    return linked;
}

bool Retriever::augmented_pagerank(std::span<const EntityId> entities,
                                   std::span<const EntityId> seeds,
                                   std::span<const float> seed_weights, const GraphOptions& options,
                                   std::span<float> scores) const {
    check_seeds(seeds, seed_weights, num_entities());
    detail::check_ids(entities, num_entities(), "entities", "entities");
    check_options(options);
    check_scores_room(scores.size(), num_entities(), "entities");
    auto held = book_->scratch();
    RetrievalScratch& s = *held;
    for (const auto e : entities) s.members.insert(e);
    book_->collect(s);
    const bool linked = book_->place_seeds(s, seeds, seed_weights);
    if (linked) {
        book_->augment(s, options.percentile);
        book_->solve(s, options.walk);
        std::fill(scores.begin(), scores.end(), 0.0F);
        for (std::size_t row = 0; row < s.entities.size(); ++row) {
            scores[idx(s.entities[row])] = s.walk_scores[row];
        }
    }
    book_->forget(s);
    book_->pool.give(std::move(held));
    return linked;
}

}  // namespace bookrag
