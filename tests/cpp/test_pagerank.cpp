#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "bookrag/dispatch.hpp"
#include "bookrag/pagerank.hpp"
#include "bookrag/ppr_workspace.hpp"
#include "digest.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::EntityId;
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
    CHECK_EQ(bookrag::personalized_pagerank64(lonely, Ids{0}), std::vector<double>{1});
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

namespace {

struct Kg {
    Ids from;
    Ids to;
    Floats weights;
};

// Clusters, and hubs long enough to be laid out apart.
Kg clustered(std::int32_t n, std::uint32_t seed) {
    testing::Random random(seed);
    Kg kg;
    for (std::int32_t i = 0; i < 3 * n; ++i) {
        const std::int32_t a = random.below(n);
        const std::int32_t b = i % 4 == 0 ? random.below(std::min(n, 5))
                                          : std::min(n - 1, a / 20 * 20 + random.below(20));
        kg.from.push_back(a);
        kg.to.push_back(b);
    }
    kg.weights = random.units(kg.from.size(), 0.01F);
    return kg;
}

double distance(const Floats& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(double{a[i]} - b[i]);
    return sum;
}

}  // namespace

TEST(pagerank, float64_is_finer) {
    const std::int32_t n = 3000;
    const Kg kg = clustered(n, 5);
    const KnowledgeGraph g(n, kg.from, kg.to, kg.weights);
    for (const double damping : {0.3, 0.5, 0.85, 0.99}) {
        const auto fine = bookrag::personalized_pagerank64(g, Ids{7, 2999}, {}, {damping, 1e-12});
        const auto coarse = bookrag::personalized_pagerank64(g, Ids{7, 2999}, {}, {damping, 1e-9});
        double error = 0.0;
        for (std::size_t i = 0; i < fine.size(); ++i) error += std::abs(fine[i] - coarse[i]);
        CHECK(error <= 1.01e-9);
        for (const double tol : {1e-2, 1e-4, 1e-6, 1e-9}) {
            const auto x = personalized_pagerank(g, Ids{7, 2999}, {}, {damping, tol});
            CHECK(distance(x, fine) <= tol + 1.2e-7);
        }
    }
}

TEST(pagerank, batch_agrees_with_single_walks) {
    const std::int32_t n = 2000;
    const Kg kg = clustered(n, 6);
    const KnowledgeGraph g(n + 3, kg.from, kg.to, kg.weights);  // the last three are alone
    for (const std::size_t walks : {1U, 2U, 3U, 16U, 21U}) {
        std::vector<std::int64_t> offsets{0};
        Ids seeds;
        for (std::size_t w = 0; w < walks; ++w) {
            seeds.push_back(static_cast<std::int32_t>(w * 90));
            if (w % 2 == 1) seeds.push_back(n + static_cast<std::int32_t>(w % 3));
            offsets.push_back(static_cast<std::int64_t>(seeds.size()));
        }
        testing::Random random(4);
        const Floats masses = random.units(seeds.size(), 0.1F);
        for (const double damping : {0.0, 0.5, 0.85, 0.98}) {
            const auto all =
                bookrag::personalized_pagerank_batch(g, offsets, seeds, masses, {damping, 1e-6});
            CHECK_EQ(all.size(), walks * static_cast<std::size_t>(n + 3));
            for (std::size_t w = 0; w < walks; ++w) {
                const auto first = static_cast<std::size_t>(offsets[w]);
                const auto many = static_cast<std::size_t>(offsets[w + 1]) - first;
                const auto exact = bookrag::personalized_pagerank64(
                    g, std::span(seeds).subspan(first, many),
                    std::span(masses).subspan(first, many), {damping, 1e-10});
                const Floats mine(
                    all.begin() + static_cast<std::ptrdiff_t>(w * exact.size()),
                    all.begin() + static_cast<std::ptrdiff_t>((w + 1) * exact.size()));
                CHECK(distance(mine, exact) <= 1e-6 + 1.2e-7);
            }
        }
    }
    CHECK(bookrag::personalized_pagerank_batch(g, std::vector<std::int64_t>{0}, Ids{}).empty());
    CHECK_THROWS(invalid_argument,
                 bookrag::personalized_pagerank_batch(g, std::vector<std::int64_t>{0, 0}, Ids{}));
    CHECK_THROWS(invalid_argument,
                 bookrag::personalized_pagerank_batch(g, std::vector<std::int64_t>{0, 2}, Ids{1}));
    CHECK_THROWS(out_of_range, bookrag::personalized_pagerank_batch(
                                   g, std::vector<std::int64_t>{0, 1}, Ids{9999}));
}

TEST(pagerank, top_is_the_head_of_all) {
    const std::int32_t n = 2000;
    const Kg kg = clustered(n, 7);
    const KnowledgeGraph g(n + 1, kg.from, kg.to, kg.weights);
    for (const std::int32_t seed : {3, 77, n}) {
        const auto exact = bookrag::personalized_pagerank64(g, Ids{seed}, {}, {0.5, 1e-12});
        std::vector<EntityId> order(exact.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](auto a, auto b) {
            return exact[static_cast<std::size_t>(a)] > exact[static_cast<std::size_t>(b)];
        });
        const auto top = bookrag::personalized_pagerank_top(g, 10, Ids{seed}, {}, {0.5, 1e-8});
        CHECK_EQ(top.entities.size(), seed == n ? std::size_t{1} : std::size_t{10});
        for (std::size_t i = 0; i < top.entities.size(); ++i) CHECK_EQ(top.entities[i], order[i]);
    }
    CHECK_THROWS(invalid_argument, bookrag::personalized_pagerank_top(g, 0, Ids{1}));
}

TEST(pagerank, workspace_solves_what_it_loads) {
    bookrag::PprWorkspace workspace;
    for (const std::int32_t n : {1, 40, 3000, 17}) {
        const Kg kg = clustered(n, static_cast<std::uint32_t>(n));
        const KnowledgeGraph g(n, kg.from, kg.to, kg.weights);
        std::vector<EntityId> some;
        for (std::int32_t e = 0; e < n; ++e) {
            if (e % 3 != 1) some.push_back(e);
        }
        const Ids seeds{0, static_cast<std::int32_t>(some.size()) - 1};
        const auto part = g.induced(some);
        workspace.load_induced(g, some);
        for (const double tol : {1e-3, 1e-6, 1e-10}) {
            const auto exact =
                bookrag::personalized_pagerank64(part.graph, seeds, {}, {0.85, 1e-12});
            Floats got(some.size());
            workspace.solve(seeds, {}, {0.85, tol}, std::span<float>(got));
            CHECK(distance(got, exact) <= tol + 1.2e-7);
        }
    }
}

TEST(pagerank, same_bits_from_every_instruction_set) {
    const std::int32_t n = 5000;
    const Kg kg = clustered(n, 9);
    Ids some;
    for (std::int32_t e = 0; e < n; e += 3) some.push_back(e);
    const auto before = bookrag::isa();
    std::vector<Floats> singles;
    std::vector<std::vector<double>> doubles;
    std::vector<Floats> batches;
    std::vector<Floats> withins;
    for (const auto isa : bookrag::available_isas()) {
        bookrag::force_isa(isa);
        const KnowledgeGraph g(n, kg.from, kg.to, kg.weights);
        singles.push_back(personalized_pagerank(g, Ids{11, 4000}, {}, {0.85, 1e-6}));
        doubles.push_back(bookrag::personalized_pagerank64(g, Ids{11}, {}, {0.85, 1e-11}));
        batches.push_back(bookrag::personalized_pagerank_batch(
            g, std::vector<std::int64_t>{0, 1, 2, 4}, Ids{1, 2, 3, 4}));
        withins.push_back(personalized_pagerank_within(g, some, Ids{9, 3000}));
    }
    bookrag::force_isa(before);
    for (std::size_t i = 1; i < singles.size(); ++i) {
        CHECK_EQ(singles[i], singles[0]);
        CHECK_EQ(doubles[i], doubles[0]);
        CHECK_EQ(batches[i], batches[0]);
        CHECK_EQ(withins[i], withins[0]);
    }
    const auto digest =
        testing::Digest().add(singles[0]).add(doubles[0]).add(batches[0]).add(withins[0]);
    CHECK_EQ(digest.value(), 15246380782865988956U);
}

TEST(pagerank, awkward_graphs) {
    // Cliques, bipartite graphs, pairs and loops inside one group of rows: where over-relaxing rows
    // that are updated at once could diverge.
    for (const double damping : {0.5, 0.85, 0.99}) {
        for (const std::int32_t n : {2, 3, 16, 17, 40}) {
            for (int kind = 0; kind < 4; ++kind) {
                Ids from;
                Ids to;
                for (std::int32_t a = 0; a < n; ++a) {
                    for (std::int32_t b = a; b < n; ++b) {
                        const bool related = kind == 0   ? a != b
                                             : kind == 1 ? (a + b) % 2 == 1
                                             : kind == 2 ? b == a + 1 && a % 2 == 0
                                                         : a == b || a == 0;
                        if (!related) continue;
                        from.push_back(a);
                        to.push_back(b);
                    }
                }
                const Floats ones(from.size(), 1.0F);
                const KnowledgeGraph g(n, from, to, ones);
                std::vector<double> restart(static_cast<std::size_t>(n), 0.0);
                restart[0] = 1.0;
                auto exact = restart;
                if (damping < 0.9) exact = walk(n, from, to, ones, restart, damping);
                const auto fine = bookrag::personalized_pagerank64(g, Ids{0}, {}, {damping, 1e-10});
                const auto x = personalized_pagerank(g, Ids{0}, {}, {damping, 1e-6});
                CHECK(distance(x, fine) <= 1.2e-6);
                if (damping < 0.9) CHECK(distance(x, exact) <= 1.2e-6);
            }
        }
    }
}

// A tolerance a little above what float32 reaches: sweeps that only swing are given up each time,
// not only the first.
TEST(pagerank, does_not_sweep_to_the_limit_for_what_float32_cannot_give) {
    testing::Random random(11);
    const Ids from = random.ids(8000, 2000);
    const Ids to = random.ids(8000, 2000);
    const KnowledgeGraph graph(2000, from, to, Floats(8000, 1.0F));
    CHECK(bookrag::personalized_pagerank_passes(graph, Ids{5}, {0.99, 1e-5}) < 200);
    CHECK(bookrag::personalized_pagerank_passes(graph, Ids{5}, {0.999, 1e-4}) < 200);
}
