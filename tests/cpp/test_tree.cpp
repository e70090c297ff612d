#include <algorithm>
#include <string>
#include <vector>

#include "bookrag/tree.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::NodeId;
using bookrag::Tree;
using Ids = std::vector<NodeId>;

namespace {

Tree make(const Ids& parents) {
    const std::size_t n = parents.size();
    return Tree(parents, std::vector<std::uint8_t>(n), Ids(n, 0), Ids(n, 0));
}

// A random tree whose ids are in no particular order.
Ids random_parents(testing::Random& random, std::int32_t n) {
    Ids name(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) name[static_cast<std::size_t>(i)] = i;
    for (std::int32_t i = n - 1; i > 0; --i) {
        std::swap(name[static_cast<std::size_t>(i)],
                  name[static_cast<std::size_t>(random.below(i + 1))]);
    }
    Ids parents(name.size(), -1);
    for (std::int32_t i = 1; i < n; ++i) {
        parents[static_cast<std::size_t>(name[static_cast<std::size_t>(i)])] =
            name[static_cast<std::size_t>(random.below(i))];
    }
    return parents;
}

}  // namespace

TEST(tree, document_order_and_intervals) {
    //        2
    //      0   3
    //     1 4   5
    const Tree t = make({2, 0, -1, 2, 0, 3});
    CHECK_EQ(t.root(), 2);
    CHECK_EQ(t.max_depth(), 2);
    CHECK_EQ(t.document_order(), (Ids{2, 0, 1, 4, 3, 5}));
    CHECK_EQ(t.depths(), (Ids{1, 2, 0, 1, 2, 2}));
    CHECK_EQ(t.subtree_sizes(), (Ids{3, 1, 6, 2, 1, 1}));
    CHECK_EQ(t.children(0), (Ids{1, 4}));
    CHECK_EQ(t.subtree(0), (Ids{0, 1, 4}));
    CHECK_EQ(t.ancestors(5), (Ids{3, 2}));
    CHECK_EQ(t.ancestors(2), Ids{});
    CHECK_EQ(t.ancestor_at_depth(5, 1), 3);
    CHECK_EQ(t.ancestor_at_depth(5, 2), 5);
    CHECK_EQ(t.ancestor_at_depth(3, 2), -1);
    CHECK_EQ(t.ancestor_at_depth(3, 1000), -1);
    CHECK_EQ(t.subtree_union(Ids{3, 1, 0, 3}), (Ids{0, 1, 3, 4, 5}));
    CHECK(t.contains(0, 4) && t.contains(4, 4) && !t.contains(4, 0) && !t.contains(3, 4));
    CHECK(!t.contains(0, 3));  // the next in document order after the subtree of 0
}

TEST(tree, kinds_and_pages) {
    const Tree t(Ids{-1, 0, 0, 0}, std::vector<std::uint8_t>{7, 255, 0, 255}, Ids{1, 2, 0, 5},
                 Ids{9, 3, 0, 5});
    CHECK_EQ(t.nodes_of_kind(255), (Ids{1, 3}));
    CHECK_EQ(t.nodes_of_kind(1), Ids{});
    CHECK_EQ(t.nodes_in_pages(3, 4), (Ids{0, 1}));
    CHECK_EQ(t.nodes_in_pages(5, 5), (Ids{0, 3}));
    CHECK_EQ(t.nodes_in_pages(10, 20), Ids{});
    CHECK_THROWS(invalid_argument, t.nodes_in_pages(0, 3));
    CHECK_THROWS(invalid_argument, t.nodes_in_pages(4, 3));
}

TEST(tree, refuses_what_is_no_tree) {
    CHECK_THROWS(invalid_argument, make({}));
    CHECK_THROWS(invalid_argument, make({-1, -1}));
    CHECK_THROWS(invalid_argument, make({-1, 1}));           // self
    CHECK_THROWS(invalid_argument, make({1, 2, 0}));         // no root
    CHECK_THROWS(invalid_argument, make({-1, 2, 3, 1, 1}));  // a cycle and a tail on it
    CHECK_THROWS(out_of_range, make({-1, 2}));
    CHECK_THROWS(out_of_range, make({-1, -2}));
    CHECK_THROWS(invalid_argument, Tree(Ids{-1}, std::vector<std::uint8_t>{}, Ids{0}, Ids{0}));
    CHECK_THROWS(invalid_argument, Tree(Ids{-1}, std::vector<std::uint8_t>{0}, Ids{3}, Ids{2}));
    CHECK_THROWS(invalid_argument, Tree(Ids{-1}, std::vector<std::uint8_t>{0}, Ids{0}, Ids{2}));
    const Tree t = make({-1});
    CHECK_THROWS(out_of_range, t.children(1));
    CHECK_THROWS(out_of_range, t.subtree(-1));
    CHECK_THROWS(invalid_argument, t.ancestor_at_depth(0, -1));
    CHECK_THROWS(out_of_range, t.subtree_union(Ids{0, 7}));
}

TEST(tree, names_a_node_of_the_cycle) {
    try {
        (void)make({-1, 2, 3, 2, 1});
    } catch (const bookrag::Error& error) {
        const std::string text = error.what();
        CHECK(text.find("node 2 ") != std::string::npos ||
              text.find("node 3 ") != std::string::npos);
        CHECK(text.find("node 4 ") == std::string::npos);
        return;
    }
    CHECK(false);
}

TEST(tree, a_chain_of_a_million) {
    const std::int32_t n = 1'000'000;
    Ids parents(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) parents[static_cast<std::size_t>(i)] = i - 1;
    const Tree t = make(parents);
    CHECK_EQ(t.max_depth(), n - 1);
    CHECK_EQ(t.ancestor_at_depth(n - 1, 12345), 12345);
    // All n nodes at once: n walks to the root would never end.
    const auto up = t.ancestors_at_depth(t.document_order(), 2);
    CHECK(std::count(up.begin(), up.end(), 2) == n - 2);
    CHECK_EQ(t.subtree_union(t.document_order()).size(), static_cast<std::size_t>(n));
}

TEST(tree, agrees_with_walking_up) {
    testing::Random random(7);
    for (int round = 0; round < 200; ++round) {
        const std::int32_t n = 1 + random.below(40);
        const Ids parents = random_parents(random, n);
        const Tree t = make(parents);
        const Ids asked = random.ids(static_cast<std::size_t>(random.below(6)), n);
        Ids expected;
        for (NodeId v = 0; v < n; ++v) {
            Ids line{v};
            while (parents[static_cast<std::size_t>(line.back())] >= 0) {
                line.push_back(parents[static_cast<std::size_t>(line.back())]);
            }
            const bool below = std::ranges::any_of(
                asked, [&](NodeId a) { return std::ranges::find(line, a) != line.end(); });
            if (below) expected.push_back(v);
            for (std::int32_t d = 0; d < n; ++d) {
                const auto length = static_cast<std::int32_t>(line.size());
                const NodeId up = d < length ? line[static_cast<std::size_t>(length - 1 - d)] : -1;
                CHECK_EQ(t.ancestor_at_depth(v, d), up);
            }
        }
        CHECK_EQ(t.subtree_union(asked), expected);
    }
}
