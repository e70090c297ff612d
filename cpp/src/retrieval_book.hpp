// What a Retriever knows of its book, laid out for questions. Not installed.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "bookrag/ppr_workspace.hpp"
#include "bookrag/retrieval.hpp"
#include "retrieval_ranking.hpp"

namespace bookrag::detail {

template <typename T>
struct Rows {  // compressed sparse rows, owned
    std::vector<std::int64_t> offsets{0};
    std::vector<T> values;

    [[nodiscard]] std::span<const T> row(std::int64_t r) const noexcept {
        const auto from = offsets[static_cast<std::size_t>(r)];
        const auto to = offsets[static_cast<std::size_t>(r) + 1];
        return std::span(values).subspan(static_cast<std::size_t>(from),
                                         static_cast<std::size_t>(to - from));
    }
};

// A set of small integers whose members come out ascending. Costs a bit each, and to empty it no
// more than to read it.
class BitSet {
  public:
    void resize(std::size_t size) { words_.assign(size / 64 + 1, 0); }
    void insert(std::int32_t i) noexcept {
        words_[static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64);
    }
    // If `condition` (0 or 1): no branch to predict.
    void insert_if(std::int32_t i, std::uint64_t condition) noexcept {
        words_[static_cast<std::size_t>(i) / 64] |= condition << (i % 64);
    }
    [[nodiscard]] std::span<std::uint64_t> words() noexcept { return words_; }

  private:
    std::vector<std::uint64_t> words_;
};

// Memory for one question at a time.
struct RetrievalScratch {
    PprWorkspace walk;
    Ranking ranking;

    // By chapter; the last stands for nodes in no chapter.
    std::vector<std::uint8_t> chosen;  // bit 0 by entity, bit 1 by section
    std::vector<float> best_text;
    std::vector<NodeId> best_node;
    std::vector<std::int32_t> chapters;

    // By node.
    std::vector<float> text;
    std::vector<float> base;  // text + bonus
    std::vector<float> relevance;
    std::vector<float> graph;
    std::vector<float> bonus;            // all 0 between calls
    std::vector<std::uint8_t> is_named;  // all 0 between calls
    std::vector<NodeId> candidates;
    std::vector<NodeId> others;
    std::vector<NodeId> kept;
    std::vector<NodeId> rest;

    // G'.
    BitSet members;                    // empty between calls
    BitSet ranks;                      // of relations within, by cosine; empty between calls
    std::vector<EntityId> entities;    // ascending; row i of the walk is entities[i]
    std::vector<std::int32_t> row_of;  // by entity, -1 outside; all -1 between calls
    std::int64_t relations = 0;
    std::int64_t new_relations = 0;
    struct Pair {
        std::int32_t row;
        std::int32_t other;
        float cosine;
    };
    std::vector<Pair> fresh;                // new relations, each once, by the row that found it
    std::vector<std::int32_t> first_fresh;  // rows + 1: where a row's begin
    std::vector<std::int32_t> looked_at;    // by row + 1: neighbours before it had enough
    std::vector<std::int32_t> back_count;   // by row + 1: those that others found
    std::vector<std::int32_t> back_rows;
    std::vector<float> back_cosines;
    std::vector<std::int32_t> offsets;
    std::vector<std::int32_t> targets;
    std::vector<float> weights;
    // What the walk has loaded, so that the next question on the same G' (of the same chapters, or
    // of the whole book) need not lay it out again.
    std::vector<EntityId> loaded;
    double loaded_percentile = -1.0;
    std::vector<std::int32_t> seed_rows;
    std::vector<float> seed_weights;
    std::vector<float> walk_scores;    // by row
    std::vector<float> entity_scores;  // by entity; all 0 between calls
};

// Lends scratch to calls: as many as ever ran at once, the last used first, since it is warm.
class ScratchPool {
  public:
    [[nodiscard]] std::unique_ptr<RetrievalScratch> take();  // null: make one
    void give(std::unique_ptr<RetrievalScratch> scratch);

  private:
    std::mutex guard_;
    std::vector<std::unique_ptr<RetrievalScratch>> idle_;
};

}  // namespace bookrag::detail

namespace bookrag {

struct Retriever::Book {
    Book(const Tree& tree, const KnowledgeGraph& graph, const GTLink& link,
         const NeighbourLists& neighbours, std::span<const float> relation_cosines,
         std::span<const std::uint8_t> content, std::int32_t chapter_depth);

    const Tree* tree;
    const KnowledgeGraph* graph;
    const GTLink* link;

    // Chapters are numbered in document order; `chapters` of a node in none is num_chapters.
    std::int32_t num_chapters = 0;
    std::vector<std::int32_t> chapter_of;    // by node
    std::vector<std::int32_t> chapter_size;  // nodes
    detail::Rows<std::int32_t> chapters_of;  // by entity, ascending, each once
    detail::Rows<EntityId> entities_of;      // by chapter, each once
    std::vector<NodeId> content;             // ascending
    std::vector<std::int32_t> content_chapter;

    // Relations by cosine, ascending: ranks. Each stands once, in the row of its lower end.
    struct Relation {
        EntityId other;
        std::int32_t rank;
    };
    detail::Rows<Relation> relations_of;  // by entity
    std::vector<float> cosine_at;         // by rank

    // Neighbours that may become new relations: not related, cosine > 0; descending.
    struct Neighbour {
        EntityId entity;
        float cosine;
        std::int32_t back;  // where it has this entity in its own row; kNoBack: nowhere
    };
    static constexpr std::int32_t kNoBack = std::numeric_limits<std::int32_t>::max();
    detail::Rows<Neighbour> near;  // by entity

    mutable detail::ScratchPool pool;

    // Scratch of the right sizes, which goes back to the pool, clean, when the call is over; after
    // an exception it is thrown away.
    [[nodiscard]] std::unique_ptr<detail::RetrievalScratch> scratch() const;

    // The selectors, in this order: chosen, then candidates and others, with counts into `out`,
    // then members. retrieval.cpp.
    void select_by_entity(detail::RetrievalScratch& s, std::span<const EntityId> seeds) const;
    void select_by_section(detail::RetrievalScratch& s, std::int32_t at_most) const;
    void part(detail::RetrievalScratch& s, Retrieval& out) const;
    void gather(detail::RetrievalScratch& s, std::span<const NodeId> named) const;

    // Graph_Reasoning in steps: members -> entities, row_of -> offsets, targets, weights ->
    // walk_scores -> graph. retrieval_graph.cpp.
    void collect(detail::RetrievalScratch& s) const;
    [[nodiscard]] bool place_seeds(detail::RetrievalScratch& s, std::span<const EntityId> seeds,
                                   std::span<const float> weights) const;
    void augment(detail::RetrievalScratch& s, double percentile) const;
    void solve(detail::RetrievalScratch& s, const PageRankOptions& options) const;
    void project(detail::RetrievalScratch& s, std::span<float> scores) const;
    void forget(detail::RetrievalScratch& s) const;

  private:
    void find_chapters(std::int32_t depth);
    void lay_out_relations(std::span<const float> cosines);
    void lay_out_neighbours(const NeighbourLists& lists);
    [[nodiscard]] double threshold(detail::RetrievalScratch& s, double percentile) const;
    void find_fresh(detail::RetrievalScratch& s, double least, std::int64_t at_most) const;
    void lay_out_walk(detail::RetrievalScratch& s) const;
};

}  // namespace bookrag
