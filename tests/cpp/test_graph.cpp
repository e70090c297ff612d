#include <cmath>
#include <limits>
#include <vector>

#include "bookrag/knowledge_graph.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::KnowledgeGraph;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

TEST(graph, keeps_parallel_relations_and_loops) {
    const KnowledgeGraph g(4, Ids{1, 0, 0, 2}, Ids{0, 2, 1, 2}, Floats{1, 2, 3, 4});
    CHECK_EQ(g.num_entities(), 4);
    CHECK_EQ(g.num_relations(), 4);
    CHECK_EQ(g.neighbours(0).entities, (Ids{1, 1, 2}));
    CHECK_EQ(g.neighbours(0).relations, (Ids{0, 2, 1}));
    CHECK_EQ(g.neighbours(0).weights, (Floats{1, 3, 2}));
    CHECK_EQ(g.neighbours(2).entities, (Ids{0, 2}));
    CHECK_EQ(g.neighbours(3).entities, Ids{});
    CHECK_EQ(g.degrees(), (Ids{3, 2, 2, 0}));
    CHECK_EQ(g.weighted_degrees(), (std::vector<double>{6, 4, 6, 0}));
}

TEST(graph, refuses_bad_relations) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    for (const float weight : {nan, inf, -inf, 0.0F, -1.0F}) {
        CHECK_THROWS(invalid_argument, KnowledgeGraph(2, Ids{0}, Ids{1}, Floats{weight}));
    }
    CHECK_THROWS(out_of_range, KnowledgeGraph(2, Ids{0}, Ids{2}, Floats{1}));
    CHECK_THROWS(out_of_range, KnowledgeGraph(2, Ids{-1}, Ids{0}, Floats{1}));
    CHECK_THROWS(invalid_argument, KnowledgeGraph(2, Ids{0, 1}, Ids{1}, Floats{1}));
    CHECK_THROWS(invalid_argument, KnowledgeGraph(-1, Ids{}, Ids{}, Floats{}));
    CHECK_THROWS(too_large, KnowledgeGraph(bookrag::kMaxEntities + 1, Ids{}, Ids{}, Floats{}));
    const KnowledgeGraph empty(0, Ids{}, Ids{}, Floats{});
    CHECK_EQ(empty.num_entities(), 0);
    CHECK_THROWS(out_of_range, empty.neighbours(0));
}

TEST(graph, induced_keeps_ids_of_the_whole) {
    const KnowledgeGraph g(5, Ids{0, 3, 4, 3}, Ids{1, 4, 4, 0}, Floats{1, 2, 3, 4});
    const auto part = g.induced(Ids{4, 3, 4});
    CHECK_EQ(part.entities, (Ids{3, 4}));
    CHECK_EQ(part.graph.num_entities(), 2);
    CHECK_EQ(part.graph.num_relations(), 2);
    CHECK_EQ(part.graph.neighbours(1).entities, (Ids{0, 1}));
    CHECK_EQ(part.graph.neighbours(1).relations, (Ids{1, 2}));
    CHECK_EQ(part.graph.weighted_degrees(), (std::vector<double>{2, 5}));
    CHECK_EQ(g.induced(Ids{}).graph.num_entities(), 0);
    CHECK_THROWS(out_of_range, g.induced(Ids{5}));
}

TEST(graph, rows_are_sorted_and_symmetric) {
    testing::Random random(11);
    for (int round = 0; round < 100; ++round) {
        const std::int32_t n = 1 + random.below(20);
        const auto m = static_cast<std::size_t>(random.below(60));
        const Ids from = random.ids(m, n);
        const Ids to = random.ids(m, n);
        const Floats weights = random.units(m, 0.1F);
        const KnowledgeGraph g(n, from, to, weights);
        std::vector<int> seen(m, 0);
        for (std::int32_t e = 0; e < n; ++e) {
            const auto row = g.neighbours(e);
            for (std::size_t i = 0; i < row.entities.size(); ++i) {
                const auto r = static_cast<std::size_t>(row.relations[i]);
                const bool along = from[r] == e && to[r] == row.entities[i];
                const bool against = to[r] == e && from[r] == row.entities[i];
                CHECK(along || against);
                CHECK_EQ(row.weights[i], weights[r]);
                ++seen[r];
                if (i == 0) continue;
                const bool later_neighbour = row.entities[i - 1] < row.entities[i];
                const bool later_relation = row.relations[i - 1] < row.relations[i];
                CHECK(later_neighbour ||
                      (row.entities[i - 1] == row.entities[i] && later_relation));
            }
        }
        for (std::size_t r = 0; r < m; ++r) CHECK_EQ(seen[r], from[r] == to[r] ? 1 : 2);
    }
}
