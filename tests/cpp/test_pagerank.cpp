#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "bookrag/pagerank.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::KnowledgeGraph;
using bookrag::personalized_pagerank;
using bookrag::personalized_pagerank_within;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

namespace {

double sum(const Floats& x) {
    return std::accumulate(x.begin(), x.end(), 0.0);
}

// A walker's distribution pushed on for a thousand steps over a dense transition matrix.
std::vector<double> walk(std::int32_t n, const Ids& from, const Ids& to, const Floats& weights,
                         const std::vector<double>& restart, double damping) {
    const auto size = static_cast<std::size_t>(n);
    std::vector<double> matrix(size * size, 0.0);
    for (std::size_t r = 0; r < from.size(); ++r) {
        const auto a = static_cast<std::size_t>(from[r]);
        const auto b = static_cast<std::size_t>(to[r]);
        matrix[a * size + b] += double{weights[r]};
        if (a != b) matrix[b * size + a] += double{weights[r]};
    }
    std::vector<double> x(restart);
    for (int step = 0; step < 1000; ++step) {
        std::vector<double> next(size, 0.0);
        for (std::size_t a = 0; a < size; ++a) {
            double out = 0.0;
            for (std::size_t b = 0; b < size; ++b) out += matrix[a * size + b];
            for (std::size_t b = 0; b < size; ++b) {
                const double go = out > 0.0 ? matrix[a * size + b] / out : restart[b];
                next[b] += x[a] * (damping * go + (1.0 - damping) * restart[b]);
            }
        }
        x = next;
    }
    return x;
}

}  // namespace

TEST(pagerank, two_entities_by_hand) {
    const KnowledgeGraph g(2, Ids{0}, Ids{1}, Floats{5});
    const auto x = personalized_pagerank(g, Ids{0}, {}, {0.5, 1e-9});
    CHECK(std::abs(x[0] - 2.0F / 3.0F) < 1e-6F);
    CHECK(std::abs(x[1] - 1.0F / 3.0F) < 1e-6F);
}

TEST(pagerank, degenerate_graphs) {
    const KnowledgeGraph lonely(1, Ids{}, Ids{}, Floats{});
    CHECK_EQ(personalized_pagerank(lonely, Ids{0}), Floats{1});
    const KnowledgeGraph apart(3, Ids{}, Ids{}, Floats{});
    CHECK_EQ(personalized_pagerank(apart, Ids{0, 2, 2}, Floats{2, 1, 1}), (Floats{0.5F, 0, 0.5F}));
    const KnowledgeGraph loop(2, Ids{0}, Ids{0}, Floats{3});
    CHECK_EQ(personalized_pagerank(loop, Ids{0}), (Floats{1, 0}));
    const KnowledgeGraph pair(2, Ids{0}, Ids{1}, Floats{1});
    CHECK_EQ(personalized_pagerank(pair, Ids{1}, {}, {0.0, 1e-6}), (Floats{0, 1}));
}

TEST(pagerank, extreme_weights_stay_finite) {
    const float big = std::numeric_limits<float>::max();
    const float tiny = std::numeric_limits<float>::denorm_min();
    const KnowledgeGraph g(4, Ids{0, 1, 1, 2}, Ids{1, 2, 2, 3}, Floats{big, big, big, tiny});
    const auto x = personalized_pagerank(g, Ids{0, 3}, Floats{tiny, big}, {0.85, 1e-6});
    for (const float v : x) CHECK(std::isfinite(v) && v >= 0.0F);
    CHECK(std::abs(sum(x) - 1.0) < 1e-6);
}

TEST(pagerank, agrees_with_a_dense_walk) {
    testing::Random random(3);
    for (int round = 0; round < 60; ++round) {
        const std::int32_t n = 1 + random.below(12);
        const auto m = static_cast<std::size_t>(random.below(20));
        const Ids from = random.ids(m, n);
        const Ids to = random.ids(m, n);
        const Floats weights = random.units(m, 0.01F);
        const KnowledgeGraph g(n, from, to, weights);
        const auto k = static_cast<std::size_t>(1 + random.below(3));
        const Ids seeds = random.ids(k, n);
        const Floats seed_weights = random.units(k, 0.01F);
        std::vector<double> restart(static_cast<std::size_t>(n), 0.0);
        const double total = sum(seed_weights);
        for (std::size_t i = 0; i < k; ++i) {
            restart[static_cast<std::size_t>(seeds[i])] += double{seed_weights[i]} / total;
        }
        for (const double damping : {0.1, 0.5, 0.85}) {
            const auto exact = walk(n, from, to, weights, restart, damping);
            for (const double tol : {1e-3, 1e-6}) {
                const auto x = personalized_pagerank(g, seeds, seed_weights, {damping, tol});
                double error = 0.0;
                for (std::size_t i = 0; i < x.size(); ++i)
                    error += std::abs(double{x[i]} - exact[i]);
                CHECK(error <= tol + 1e-7);
                CHECK(std::abs(sum(x) - 1.0) < 1e-6);
            }
        }
    }
}

TEST(pagerank, within_is_the_induced_graph) {
    testing::Random random(9);
    const Ids from = random.ids(60, 20);
    const Ids to = random.ids(60, 20);
    const KnowledgeGraph g(20, from, to, random.units(60, 0.1F));
    const Ids entities{3, 4, 5, 9, 12, 19};
    const auto part = g.induced(entities);
    const auto whole = personalized_pagerank_within(g, entities, Ids{4, 7, 12});
    const auto alone = personalized_pagerank(part.graph, Ids{1, 4});
    Floats expected(20, 0.0F);
    for (std::size_t i = 0; i < alone.size(); ++i) {
        expected[static_cast<std::size_t>(part.entities[i])] = alone[i];
    }
    CHECK_EQ(whole, expected);
    CHECK_THROWS(invalid_argument, personalized_pagerank_within(g, entities, Ids{7}));
    CHECK_THROWS(out_of_range, personalized_pagerank_within(g, Ids{20}, Ids{7}));
}

TEST(pagerank, refuses_bad_arguments) {
    const KnowledgeGraph g(2, Ids{0}, Ids{1}, Floats{1});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const double dnan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{}));
    CHECK_THROWS(out_of_range, personalized_pagerank(g, Ids{2}));
    CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{0}, Floats{1, 2}));
    CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{0}, Floats{nan}));
    CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{0}, Floats{-1}));
    CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{0, 1}, Floats{0, 0}));
    for (const double damping : {-0.1, 1.0, 2.0, dnan, 1.0 - 1e-9}) {
        CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{0}, {}, {damping, 1e-6}));
    }
    for (const double tol : {0.0, -1.0, 1e-13, 2.0, dnan}) {
        CHECK_THROWS(invalid_argument, personalized_pagerank(g, Ids{0}, {}, {0.5, tol}));
    }
}
