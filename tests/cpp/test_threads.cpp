// Threads hammering shared structures: each must see what one thread alone sees. Under TSan a
// hidden write (a cache, a lazily built index) would be a report.
#include <atomic>
#include <thread>
#include <vector>

#include "bookrag/entity_resolution.hpp"
#include "bookrag/gt_link.hpp"
#include "bookrag/knowledge_graph.hpp"
#include "bookrag/pagerank.hpp"
#include "bookrag/similarity.hpp"
#include "bookrag/skyline.hpp"
#include "bookrag/tree.hpp"
#include "random.hpp"
#include "testing.hpp"

using namespace bookrag;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 40;

template <typename F>
void hammer(F&& once) {
    std::atomic<int> wrong{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            while (!go.load()) std::this_thread::yield();
            for (int round = 0; round < kRounds; ++round) wrong += once(t + round) ? 0 : 1;
        });
    }
    go = true;
    for (auto& thread : threads) thread.join();
    CHECK_EQ(wrong.load(), 0);
}

}  // namespace

TEST(threads, share_a_graph_and_a_link) {
    testing::Random random(2);
    const std::int32_t n = 500;
    const KnowledgeGraph graph(n, random.ids(1500, n), random.ids(1500, n),
                               random.units(1500, 0.1F));
    const GTLink link(n, 300, random.ids(900, n), random.ids(900, 300));
    std::vector<std::vector<float>> ranks;
    std::vector<std::vector<float>> projected;
    for (std::int32_t seed = 0; seed < 4; ++seed) {
        ranks.push_back(personalized_pagerank(graph, Ids{seed}));
        projected.push_back(link.project(ranks.back()));
    }
    const Ids some = random.ids(100, n);
    const auto part = graph.induced(some);
    const auto nodes = link.nodes_of_many(some);
    hammer([&](int i) {
        const auto which = static_cast<std::size_t>(i % 4);
        const auto rank = personalized_pagerank(graph, Ids{static_cast<std::int32_t>(which)});
        return rank == ranks[which] && link.project(rank) == projected[which] &&
               graph.induced(some).entities == part.entities && link.nodes_of_many(some) == nodes;
    });
}

TEST(threads, share_a_tree) {
    testing::Random random(4);
    const std::int32_t n = 2000;
    Ids parents(static_cast<std::size_t>(n), -1);
    for (std::int32_t i = 1; i < n; ++i) parents[static_cast<std::size_t>(i)] = random.below(i);
    const Ids pages(static_cast<std::size_t>(n), 1);
    const Tree tree(parents, std::vector<std::uint8_t>(static_cast<std::size_t>(n)), pages, pages);
    const Ids asked = random.ids(50, n);
    const auto up = tree.ancestors_at_depth(asked, 2);
    const auto below = tree.subtree_union(asked);
    hammer([&](int) {
        return tree.ancestors_at_depth(asked, 2) == up && tree.subtree_union(asked) == below &&
               tree.nodes_in_pages(1, 1).size() == static_cast<std::size_t>(n);
    });
}

TEST(threads, share_scores) {
    testing::Random random(6);
    const auto scores = random.units(4000);
    const auto front = skyline(scores, 4);
    const auto drops = gradient_drop(scores, 400, 10);
    const auto plan = merge_plan(1000, Ids{1, 2, 3}, Ids{4, 5, 6}, Ids{7, 8});
    hammer([&](int) {
        return skyline(scores, 4) == front && gradient_drop(scores, 400, 10).order == drops.order &&
               merge_plan(1000, Ids{1, 2, 3}, Ids{4, 5, 6}, Ids{7, 8}).representative ==
                   plan.representative;
    });
}

TEST(threads, share_an_index) {
    testing::Random random(9);
    constexpr std::size_t d = 130;
    auto rows = random.units(2100 * d, -0.5F);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] /= 1.0F + static_cast<float>(i % d);  // near a subspace: the projection is used
    }
    const VectorIndex index(rows, 2100, d);
    const std::span<const float> query(rows.data() + 7 * d, d);
    const auto found = index.search(query, 5);
    CHECK_EQ(found.ids, cosine_topk(query, rows, 2100, d, 5).ids);
    hammer([&](int i) {
        const auto other = index.search({rows.data() + static_cast<std::size_t>(i) * d, d}, 3);
        return other.ids[0] == i && index.search(query, 5).ids == found.ids;
    });
}
