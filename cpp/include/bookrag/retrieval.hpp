// Fused retrieval in one book: BookRAG (arXiv 2512.03413), section 5, from Select_by_Entity to
// Skyline_Ranker in one call. Its parts one by one: tree.hpp, gt_link.hpp, pagerank.hpp,
// skyline.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bookrag/gt_link.hpp"
#include "bookrag/knowledge_graph.hpp"
#include "bookrag/pagerank.hpp"
#include "bookrag/tree.hpp"
#include "bookrag/types.hpp"

namespace bookrag {

// Nearest entities of each entity: `width` ids a row, -1 where there are fewer (those last), and
// their cosines, descending. Borrowed.
struct NeighbourLists {
    std::span<const EntityId> ids;   // num_entities * width
    std::span<const float> cosines;  // num_entities * width; whatever stands beside -1 is ignored
    std::int64_t width;
};

// A walk on G', the graph of some entities and the relations among them, augmented: joined are also
// entities that are near, cosine >= the given percentile (linear interpolation, as NumPy's) of the
// cosines over G's relations within, and > 0; at most ceil(mean degree), at least 1, new ones an
// entity, nearest first; not where a relation exists; with the cosine as weight. A G' without
// relations stays as it is.
struct GraphOptions {
    PageRankOptions walk;
    double percentile = 85.0;  // 0 to 100
};

struct RetrievalOptions {
    GraphOptions graph;
    std::int32_t added_sections = 4;  // by Select_by_Section
    std::int32_t minimum = 10;        // of what Skyline_Ranker keeps, as far as there is any
    float graph_weight = 0.15F;       // of a node's score by the graph, the best one's being 1
    std::int64_t limit = -1;          // nodes in the result; negative: all
};

// What is asked. Borrowed.
struct RetrievalQuery {
    // Entities of the question, repeats add up, and their weights: as many, finite, >= 0. Those of
    // weight 0 select sections, but do not start the walk.
    std::span<const EntityId> seeds;
    std::span<const float> seed_weights;
    // Relevance of each node to the words of the question, finite. One a node.
    std::span<const float> text_scores;
    // Nodes that the question names outright ("Table 3", "page 7") and what that adds to their
    // relevance, finite; as many, repeats add up. They are selected wherever they are.
    std::span<const NodeId> named;
    std::span<const float> bonus;
};

// Content nodes in the order in which they are handed out: what the skyline keeps, the rest of the
// selection, the rest of the book; each by relevance, descending, ties by id.
struct Retrieval {
    std::vector<NodeId> nodes;
    std::vector<float> relevance;  // text + bonus + graph_weight * graph / its largest
    std::vector<float> graph;      // by the graph; empty unless linked
    bool linked = false;           // whether a seed lies in G'; else text alone ranks
    std::int32_t kept = 0;         // by Skyline_Ranker: the first of `nodes`
    std::int32_t selected = 0;     // content nodes of the selection: kept and the next ones
    std::int32_t by_entity = 0;    // nodes of any kind selected by Select_by_Entity
    std::int32_t by_section = 0;   // and by Select_by_Section
    std::int32_t entities = 0;     // of G'
    std::int64_t relations = 0;    // of G', before its augmentation
    std::int64_t new_relations = 0;
    struct Micros {  // of each stage
        float by_entity = 0, by_section = 0, augment = 0, pagerank = 0, project = 0, skyline = 0,
              order = 0;
    } micros;
};

// One book, opened for questions. Immutable; any number of threads may ask at once, and the answer
// does not depend on them. What a question needs beside the result is kept and used again, one set
// for every question that ever ran at the same time: a call allocates nothing once a question of
// its size has been asked and the result has room.
//
// The tree, the graph and the link are borrowed: they must outlive the retriever and stay in place.
class Retriever {
  public:
    // relation_cosines: of the two ends of each relation, finite. content: one a node, whether it
    // can be evidence. chapter_depth: where sections are selected (root 0, title 1, chapters 2).
    // O(nodes + links * log + relations * log + entities * width^2) time.
    // Throws Error: sizes that do not go together; an unknown neighbour, the entity itself or a
    // repeat; a cosine that is not finite or not in order; a negative depth.
    Retriever(const Tree& tree, const KnowledgeGraph& graph, const GTLink& link,
              const NeighbourLists& neighbours, std::span<const float> relation_cosines,
              std::span<const std::uint8_t> content, std::int32_t chapter_depth = 2);
    ~Retriever();
    Retriever(Retriever&&) noexcept;
    Retriever& operator=(Retriever&&) noexcept;

    // 1. Select_by_Entity: the chapters (subtrees at chapter_depth) that hold a node of a seed.
    // 2. Select_by_Section: the added_sections chapters of the best text scores > 0.
    // 3. Graph_Reasoning: personalized PageRank on the augmented G' of the selected nodes'
    //    entities, from the seeds inside; projected onto the nodes.
    // 4. Skyline_Ranker: the selected content nodes that no other beats on text + bonus and graph;
    //    if fewer than `minimum`, the best by each in turn fill up. Without a seed in G': those of
    //    the best text + bonus, filled up alike.
    //
    // `out` is overwritten; its memory is used again.
    // O(content nodes + links and relations of G' * sweeps of the walk).
    // Throws Error: an unknown id, unequal lengths, a value not finite, an option out of range.
    void retrieve(const RetrievalQuery& query, const RetrievalOptions& options,
                  Retrieval& out) const;

    // Stage 3 alone, on the entities of `nodes` (any order, repeats allowed): one score a node of
    // the tree into `scores`. Returns false, and leaves `scores` alone, if no seed with a weight >
    // 0 lies in G'.
    bool graph_reasoning(std::span<const NodeId> nodes, std::span<const EntityId> seeds,
                         std::span<const float> seed_weights, const GraphOptions& options,
                         std::span<float> scores) const;

    // The walk of stage 3 alone, on given entities: one score an entity of the graph into
    // `scores`, 0 outside. Returns as graph_reasoning() does.
    bool augmented_pagerank(std::span<const EntityId> entities, std::span<const EntityId> seeds,
                            std::span<const float> seed_weights, const GraphOptions& options,
                            std::span<float> scores) const;

    [[nodiscard]] std::int32_t num_nodes() const noexcept;
    [[nodiscard]] std::int32_t num_entities() const noexcept;
    [[nodiscard]] std::int32_t num_chapters() const noexcept;

  private:
    struct Book;
    std::unique_ptr<Book> book_;
};

}  // namespace bookrag
