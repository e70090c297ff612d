#include "bookrag/retrieval.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "allocations.hpp"
#include "bookrag/dispatch.hpp"
#include "bookrag/skyline.hpp"
#include "digest.hpp"
#include "random.hpp"
#include "testing.hpp"

using namespace bookrag;
using Ids = std::vector<std::int32_t>;

namespace {

// Entities in clusters of meaning, nodes in chapters, everything seeded.
struct Made {
    std::int32_t nodes;
    std::int32_t entities;
    std::size_t width = 6;
    testing::Random random;
    Tree tree;
    KnowledgeGraph graph;
    GTLink link;
    Ids neighbours;
    std::vector<float> near;
    std::vector<float> cosines;
    std::vector<std::uint8_t> content;
    std::vector<float> text;
    Retriever retriever;

    Made(std::uint32_t seed, std::int32_t nodes_, std::int32_t entities_, std::size_t relations)
        : nodes(nodes_),
          entities(entities_),
          random(seed),
          tree(make_tree()),
          // Braces: compilers order the arguments between parentheses differently.
          graph{entities, random.ids(relations, entities), random.ids(relations, entities),
                random.units(relations, 0.1F)},
          link{entities, nodes, random.ids(2 * relations, entities),
               random.ids(2 * relations, nodes)},
          cosines(random.units(relations)),
          content(static_cast<std::size_t>(nodes)),
          text(random.units(static_cast<std::size_t>(nodes), -0.3F)),
          retriever(make_retriever()) {}

    // Root, title, chapters, and the rest anywhere below them.
    Tree make_tree() {
        const auto n = static_cast<std::size_t>(nodes);
        Ids parents(n, -1);
        for (std::int32_t v = 1; v < nodes; ++v) {
            parents[static_cast<std::size_t>(v)] = v < 2 ? 0 : v < 12 ? 1 : 2 + random.below(v - 2);
        }
        return Tree(parents, std::vector<std::uint8_t>(n), Ids(n, 1), Ids(n, 1));
    }
    Retriever make_retriever() {
        for (std::int32_t e = 0; e < entities; ++e) {
            for (std::size_t c = 0; c < width; ++c) {
                neighbours.push_back((e + 1 + static_cast<std::int32_t>(c) * 7) % entities);
                near.push_back(0.99F - static_cast<float>(c) * 0.02F - 0.1F * random.unit());
            }
            std::sort(near.end() - static_cast<std::ptrdiff_t>(width), near.end(),
                      std::greater<>());
        }
        for (auto& c : content) c = random.unit() < 0.8F ? 1 : 0;
        return {tree, graph, link, lists(), cosines, content};
    }
    [[nodiscard]] NeighbourLists lists() const {
        return {neighbours, near, static_cast<std::int64_t>(width)};
    }
};

struct Ask {
    Ids seeds;
    std::vector<float> weights;
    Ids named;
    std::vector<float> bonus;

    [[nodiscard]] RetrievalQuery of(const std::vector<float>& text) const {
        return {seeds, weights, text, named, bonus};
    }
};

Ask ask(int which, std::int32_t entities) {
    const std::int32_t seed = (which * 37) % entities;
    return {{seed, (seed + 11) % entities, seed}, {1.0F, 0.9F, 0.5F}, {which % 7 + 3}, {0.5F}};
}

bool same(const Retrieval& a, const Retrieval& b) {
    return a.nodes == b.nodes && a.relevance == b.relevance && a.graph == b.graph &&
           a.kept == b.kept && a.selected == b.selected && a.linked == b.linked;
}

}  // namespace

TEST(retrieval, hands_out_every_content_node_once_in_tiers) {
    Made book(1, 400, 300, 900);
    for (int which = 0; which < 20; ++which) {
        const auto question = ask(which, book.entities);
        Retrieval all;
        book.retriever.retrieve(question.of(book.text), {}, all);
        auto ids = all.nodes;
        std::sort(ids.begin(), ids.end());
        Ids content;
        for (std::int32_t v = 0; v < book.nodes; ++v) {
            if (book.content[static_cast<std::size_t>(v)] != 0) content.push_back(v);
        }
        CHECK_EQ(ids, content);
        CHECK(all.linked);
        CHECK(all.kept >= 10 && all.kept <= all.selected);
        const auto falls = [&](std::int32_t from, std::int32_t to) {
            for (auto i = from + 1; i < to; ++i) {
                const auto a = static_cast<std::size_t>(i - 1);
                const auto b = static_cast<std::size_t>(i);
                if (all.relevance[a] < all.relevance[b]) return false;
                if (all.relevance[a] == all.relevance[b] && all.nodes[a] > all.nodes[b]) {
                    return false;
                }
            }
            return true;
        };
        CHECK(falls(0, all.kept));
        CHECK(falls(all.kept, all.selected));
        CHECK(falls(all.selected, static_cast<std::int32_t>(all.nodes.size())));
        // Only what is asked for, and the same.
        for (const std::int64_t limit : {0, 1, 5, 60, 10000}) {
            RetrievalOptions options;
            options.limit = limit;
            Retrieval some;
            book.retriever.retrieve(question.of(book.text), options, some);
            const auto count = std::min(static_cast<std::size_t>(limit), all.nodes.size());
            CHECK_EQ(some.nodes,
                     std::vector(all.nodes.begin(),
                                 all.nodes.begin() + static_cast<std::ptrdiff_t>(count)));
            CHECK_EQ(some.graph.size(), count);
        }
    }
}

TEST(retrieval, keeps_the_skyline_of_text_and_graph) {
    Made book(2, 500, 200, 700);
    const auto question = ask(3, book.entities);
    RetrievalOptions options;
    options.minimum = 0;
    options.added_sections = 100;  // every chapter
    Retrieval r;
    book.retriever.retrieve(question.of(book.text), options, r);
    std::vector<float> points;
    for (std::int32_t i = 0; i < r.selected; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto v = static_cast<std::size_t>(r.nodes[at]);
        points.push_back(book.text[v] + (r.nodes[at] == question.named[0] ? 0.5F : 0.0F));
        points.push_back(r.graph[at]);
    }
    const auto front = skyline(points, 2);
    CHECK_EQ(static_cast<std::size_t>(r.kept), front.size());
    for (std::size_t i = 0; i < front.size(); ++i) CHECK_EQ(front[i], static_cast<std::int64_t>(i));
}

TEST(retrieval, without_a_seed_text_alone_ranks) {
    Made book(3, 100, 50, 80);
    Retrieval r;
    book.retriever.retrieve({{}, {}, book.text, {}, {}}, {}, r);
    CHECK(!r.linked);
    CHECK(r.graph.empty());
    CHECK_EQ(r.by_entity, 0);
    std::vector<float> zeros(2, 0.0F);
    book.retriever.retrieve({Ids{0, 1}, zeros, book.text, {}, {}}, {}, r);
    CHECK(!r.linked);  // a weight of 0 starts no walk
}

TEST(retrieval, of_the_smallest_book) {
    const Tree tree(Ids{-1}, std::vector<std::uint8_t>{0}, Ids{0}, Ids{0});
    const KnowledgeGraph graph(0, {}, {}, {});
    const GTLink link(0, 1, {}, {});
    const std::vector<float> text{0.5F};
    for (const std::uint8_t content : {std::uint8_t{0}, std::uint8_t{1}}) {
        const Retriever retriever(tree, graph, link, {{}, {}, 10}, {},
                                  std::vector<std::uint8_t>{content});
        Retrieval r;
        retriever.retrieve({{}, {}, text, {}, {}}, {}, r);
        CHECK_EQ(r.nodes.size(), std::size_t{content});
        std::vector<float> scores(1);
        CHECK(!retriever.graph_reasoning(Ids{0}, {}, {}, {}, scores));
    }
}

TEST(retrieval, steps_of_graph_reasoning_agree) {
    Made book(4, 300, 250, 800);
    const auto question = ask(5, book.entities);
    Ids nodes = book.random.ids(150, book.nodes);
    nodes.push_back(book.link.nodes_of(question.seeds[0]).front());  // so that a seed is inside
    std::vector<float> by_node(300);
    std::vector<float> by_entity(250);
    CHECK(book.retriever.graph_reasoning(nodes, question.seeds, question.weights, {}, by_node));
    CHECK(book.retriever.augmented_pagerank(book.link.entities_of_many(nodes), question.seeds,
                                            question.weights, {}, by_entity));
    CHECK_EQ(by_node, book.link.project(by_entity));
    double sum = 0.0;
    for (const float s : by_entity) sum += double{s};
    CHECK(std::abs(sum - 1.0) < 1e-5);
}

TEST(retrieval, refuses_what_makes_no_sense) {
    Made book(5, 60, 40, 50);
    const auto good = ask(1, book.entities);
    Retrieval r;
    const auto asks = [&](const RetrievalQuery& q, const RetrievalOptions& o = {}) {
        book.retriever.retrieve(q, o, r);
        return 0;
    };
    auto text = book.text;
    text[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS(invalid_argument, asks(good.of(text)));
    text[7] = std::numeric_limits<float>::infinity();
    CHECK_THROWS(invalid_argument, asks(good.of(text)));
    text.pop_back();
    CHECK_THROWS(invalid_argument, asks(good.of(text)));
    const Ids unknown{40};
    const std::vector<float> one{1.0F};
    const std::vector<float> negative{-1.0F};
    const std::vector<float> huge(2, std::numeric_limits<float>::max());
    CHECK_THROWS(out_of_range, asks({unknown, one, book.text, {}, {}}));
    CHECK_THROWS(invalid_argument, asks({Ids{1}, negative, book.text, {}, {}}));
    CHECK_THROWS(invalid_argument, asks({Ids{1}, {}, book.text, {}, {}}));
    CHECK_THROWS(out_of_range, asks({{}, {}, book.text, Ids{60}, one}));
    CHECK_THROWS(invalid_argument, asks({{}, {}, book.text, Ids{1, 1}, huge}));
    RetrievalOptions options;
    options.graph.walk.damping = 1.0;
    CHECK_THROWS(invalid_argument, asks(good.of(book.text), options));
    options = {};
    options.graph.percentile = 101.0;
    CHECK_THROWS(invalid_argument, asks(good.of(book.text), options));
    options = {};
    options.minimum = -1;
    CHECK_THROWS(invalid_argument, asks(good.of(book.text), options));
    asks(good.of(book.text));  // nothing of a refused question is left behind
    Retrieval fresh;
    Made(5, 60, 40, 50).retriever.retrieve(good.of(book.text), {}, fresh);
    CHECK(same(r, fresh));

    const auto builds = [&](const Ids& ids, const std::vector<float>& cosines) {
        return Retriever(book.tree, book.graph, book.link,
                         {ids, cosines, static_cast<std::int64_t>(book.width)}, book.cosines,
                         book.content);
    };
    auto ids = book.neighbours;
    ids[0] = 0;
    CHECK_THROWS(invalid_argument, builds(ids, book.near));  // itself
    ids[0] = ids[1];
    CHECK_THROWS(invalid_argument, builds(ids, book.near));
    ids[0] = 40;
    CHECK_THROWS(out_of_range, builds(ids, book.near));
    ids[0] = -1;
    CHECK_THROWS(invalid_argument, builds(ids, book.near));
    auto near = book.near;
    near[1] = 2.0F;
    CHECK_THROWS(invalid_argument, builds(book.neighbours, near));
    near.pop_back();
    CHECK_THROWS(invalid_argument, builds(book.neighbours, near));
}

TEST(retrieval, same_bits_from_every_instruction_set) {
    const auto before = isa();
    for (const Isa one : available_isas()) {
        force_isa(one);
        Made book(9, 1000, 800, 2500);
        testing::Digest digest;
        for (int which = 0; which < 20; ++which) {
            Retrieval r;
            book.retriever.retrieve(ask(which, book.entities).of(book.text), {}, r);
            digest.add(r.nodes).add(r.relevance).add(r.graph);
            digest.add(Ids{r.kept, r.selected, r.entities});
        }
        force_isa(before);
        CHECK_EQ(digest.value(), 18409046480566079601U);
    }
}

TEST(retrieval, huge_weights_are_ratios) {
    Made book(6, 200, 150, 400);
    auto question = ask(2, book.entities);
    Retrieval r;
    Retrieval scaled;
    book.retriever.retrieve(question.of(book.text), {}, r);
    for (auto& w : question.weights) w *= 0x1p126F;
    book.retriever.retrieve(question.of(book.text), {}, scaled);
    CHECK(same(r, scaled));
}

TEST(retrieval, allocates_nothing_once_warm) {
    Made book(7, 600, 400, 1500);
    std::vector<Ask> questions;
    for (int which = 0; which < 40; ++which) questions.push_back(ask(which, book.entities));
    Retrieval r;
    const auto ask_all = [&] {
        for (const auto& question : questions) {
            book.retriever.retrieve(question.of(book.text), {}, r);
        }
    };
    for (int round = 0; round < 3; ++round) ask_all();
    const long before = testing::allocations();
    ask_all();
    const long after = testing::allocations();  // a check allocates, too
    CHECK_EQ(after, before);
}

TEST(retrieval, stage_three_alone_allocates_nothing_once_warm) {
    Made book(7, 600, 400, 1500);
    Ids some_nodes;
    Ids some_entities;
    for (std::int32_t v = 0; v < book.nodes; v += 2) some_nodes.push_back(v);
    for (std::int32_t e = 0; e < book.entities; e += 2) some_entities.push_back(e);
    std::vector<float> of_nodes(static_cast<std::size_t>(book.nodes));
    std::vector<float> of_entities(static_cast<std::size_t>(book.entities));
    const auto question = ask(2, book.entities);
    const auto run = [&] {
        bool linked = book.retriever.graph_reasoning(some_nodes, question.seeds, question.weights,
                                                     {}, of_nodes);
        linked &= book.retriever.augmented_pagerank(some_entities, question.seeds, question.weights,
                                                    {}, of_entities);
        return linked;
    };
    CHECK(run());
    CHECK(run());
    const long before = testing::allocations();
    const bool linked = run();
    const long after = testing::allocations();
    CHECK(linked);
    CHECK_EQ(after, before);
}

TEST(retrieval, threads_share_a_book) {
    Made book(8, 300, 200, 600);
    std::vector<Ask> questions;
    std::vector<Retrieval> wanted(8);
    for (int which = 0; which < 8; ++which) {
        questions.push_back(ask(which, book.entities));
        book.retriever.retrieve(questions.back().of(book.text), {},
                                wanted[static_cast<std::size_t>(which)]);
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            Retrieval mine;
            for (std::size_t round = 0; round < 40; ++round) {
                const auto which = (t + round) % 8;
                book.retriever.retrieve(questions[which].of(book.text), {}, mine);
                wrong += same(mine, wanted[which]) ? 0 : 1;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK_EQ(wrong.load(), 0);
}
