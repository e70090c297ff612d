#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "bookrag/gt_link.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::GTLink;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

TEST(link, both_directions_without_repeats) {
    const GTLink l(3, 5, Ids{2, 0, 2, 2, 0}, Ids{4, 1, 1, 4, 0});
    CHECK_EQ(l.num_links(), 4);
    CHECK_EQ(l.nodes_of(0), (Ids{0, 1}));
    CHECK_EQ(l.nodes_of(1), Ids{});
    CHECK_EQ(l.nodes_of(2), (Ids{1, 4}));
    CHECK_EQ(l.entities_of(1), (Ids{0, 2}));
    CHECK_EQ(l.entities_of(4), (Ids{2}));
    CHECK_EQ(l.nodes_of_many(Ids{2, 0, 2}), (Ids{0, 1, 4}));
    CHECK_EQ(l.entities_of_many(Ids{1, 3}), (Ids{0, 2}));
    CHECK_EQ(l.project(Floats{1, 10, 100}), (Floats{1, 101, 0, 0, 100}));
}

TEST(link, refuses_what_it_does_not_know) {
    CHECK_THROWS(out_of_range, GTLink(1, 1, Ids{1}, Ids{0}));
    CHECK_THROWS(out_of_range, GTLink(1, 1, Ids{0}, Ids{-1}));
    CHECK_THROWS(invalid_argument, GTLink(1, 1, Ids{0}, Ids{}));
    CHECK_THROWS(invalid_argument, GTLink(-1, 1, Ids{}, Ids{}));
    CHECK_THROWS(too_large, GTLink(1, bookrag::kMaxNodes + 1, Ids{}, Ids{}));
    const GTLink l(2, 2, Ids{0}, Ids{1});
    CHECK_THROWS(out_of_range, l.nodes_of(2));
    CHECK_THROWS(out_of_range, l.entities_of(-1));
    CHECK_THROWS(out_of_range, l.nodes_of_many(Ids{0, 2}));
    CHECK_THROWS(invalid_argument, l.project(Floats{1}));
    CHECK_THROWS(invalid_argument, l.project(Floats{1, std::numeric_limits<float>::quiet_NaN()}));
    const GTLink empty(0, 0, Ids{}, Ids{});
    CHECK_EQ(empty.project(Floats{}), Floats{});
}

TEST(link, agrees_with_a_set_of_pairs) {
    testing::Random random(5);
    for (int round = 0; round < 200; ++round) {
        const std::int32_t ne = 1 + random.below(12);
        const std::int32_t nn = 1 + random.below(12);
        const auto m = static_cast<std::size_t>(random.below(50));
        const Ids entities = random.ids(m, ne);
        const Ids nodes = random.ids(m, nn);
        std::set<std::pair<std::int32_t, std::int32_t>> pairs;
        for (std::size_t i = 0; i < m; ++i) pairs.emplace(entities[i], nodes[i]);
        const GTLink l(ne, nn, entities, nodes);
        CHECK_EQ(l.num_links(), static_cast<std::int64_t>(pairs.size()));
        for (std::int32_t e = 0; e < ne; ++e) {
            Ids expected;
            for (const auto& [pe, pn] : pairs) {
                if (pe == e) expected.push_back(pn);
            }
            CHECK_EQ(l.nodes_of(e), expected);
        }
        for (std::int32_t v = 0; v < nn; ++v) {
            Ids expected;
            for (const auto& [pe, pn] : pairs) {
                if (pn == v) expected.push_back(pe);
            }
            CHECK_EQ(l.entities_of(v), expected);
        }
    }
}
