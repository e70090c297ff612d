// Promises of no allocation once warm, held to by counting; retrieve() has its own test beside its
// others. The counter itself is tested, so that no test passes for want of counting.
#include <new>
#include <span>
#include <vector>

#include "allocations.hpp"
#include "bookrag/pagerank.hpp"
#include "bookrag/ppr_workspace.hpp"
#include "bookrag/retrieval.hpp"
#include "random.hpp"
#include "testing.hpp"

using namespace bookrag;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

namespace {

// Calls of operator new in the third run; 0 under a sanitizer, which cannot count.
template <typename F>
long allocations_once_warm(F&& work) {
    work();
    work();
    const long before = testing::allocations();
    work();
    return testing::allocations() - before;
}

KnowledgeGraph random_graph(std::int32_t entities, std::size_t relations) {
    testing::Random random(31);
    const Ids from = random.ids(relations, entities);
    const Ids to = random.ids(relations, entities);
    return {entities, from, to, random.units(relations, 0.1F)};
}

}  // namespace

TEST(allocations, are_counted) {
    if (testing::allocations() < 0) return;  // under a sanitizer
    CHECK_EQ(allocations_once_warm([] { (void)std::vector<int>(1000).size(); }), 1L);
    struct alignas(64) Line {
        char bytes[64];
    };
    CHECK_EQ(allocations_once_warm([] { (void)std::vector<Line>(5).size(); }), 1L);
}

TEST(allocations, none_of_a_workspace_that_saw_the_largest_graph) {
    const KnowledgeGraph graph = random_graph(3000, 9000);
    Ids most;
    Ids few;
    for (std::int32_t e = 0; e < 3000; ++e) {
        if (e % 5 != 0) most.push_back(e);
        if (e % 9 == 0) few.push_back(e);
    }
    PprWorkspace workspace;
    Floats scores(3000);
    std::vector<double> fine(3000);
    const Ids seeds{1, 17, 1};
    const Floats weights{0.5F, 2.0F, 1.0F};
    const auto solve = [&](std::size_t rows) {
        for (const double tol : {1e-3, 1e-6, 1e-10}) {  // the last one refines in float64
            workspace.solve(seeds, weights, {0.85, tol}, std::span(scores).first(rows));
            workspace.solve(seeds, {}, {0.5, tol}, std::span(fine).first(rows));
        }
        for (std::int32_t seed = 0; seed < 40; ++seed) {  // many walks on one graph
            workspace.solve(std::span(&seed, 1), {}, {0.5, 1e-6}, std::span(scores).first(rows));
        }
    };
    CHECK_EQ(allocations_once_warm([&] {
                 workspace.load_induced(graph, most);
                 solve(most.size());
                 workspace.load_induced(graph, few);  // smaller, after the largest
                 solve(few.size());
             }),
             0L);

    // Loaded row by row instead.
    const auto rows = graph.num_entities();
    Ids offsets{0};
    Ids targets;
    Floats values;
    for (std::int32_t e = 0; e < rows; ++e) {
        const auto near = graph.neighbours(e);
        targets.insert(targets.end(), near.entities.begin(), near.entities.end());
        values.insert(values.end(), near.weights.begin(), near.weights.end());
        offsets.push_back(static_cast<std::int32_t>(targets.size()));
    }
    CHECK_EQ(allocations_once_warm([&] {
                 workspace.load(offsets, targets, values);
                 solve(static_cast<std::size_t>(rows));
             }),
             0L);
}

TEST(allocations, of_a_walk_on_a_whole_graph_do_not_grow_with_its_sweeps) {
    const KnowledgeGraph graph = random_graph(3000, 9000);
    const auto counted = [&](double tol) {
        return allocations_once_warm(
            [&] { (void)personalized_pagerank(graph, Ids{1, 17}, {}, {0.85, tol}).size(); });
    };
    CHECK_EQ(counted(1e-7), counted(1e-2));
    const auto batch = [&](double tol) {
        return allocations_once_warm([&] {
            (void)personalized_pagerank_batch(graph, std::vector<std::int64_t>{0, 1, 2, 4},
                                              Ids{1, 2, 3, 4}, {}, {0.85, tol})
                .size();
        });
    };
    CHECK_EQ(batch(1e-6), batch(1e-2));
}

// Whichever allocation fails, the workspace is as good as new: no row stays marked, no array is
// taken to be longer than it is.
TEST(allocations, that_fail_leave_a_workspace_usable) {
    if (testing::allocations() < 0) return;  // under a sanitizer
    constexpr std::int32_t kEntities = 2000;
    testing::Random random(32);
    Ids from = random.ids(6000, kEntities);
    Ids to = random.ids(6000, kEntities);
    for (std::int32_t e = 1; e < 600; ++e) {  // a hub
        from.push_back(0);
        to.push_back(e);
    }
    const KnowledgeGraph graph(kEntities, from, to, Floats(from.size(), 1.0F));
    Ids most(kEntities);
    for (std::int32_t e = 0; e < kEntities; ++e) most[static_cast<std::size_t>(e)] = e;
    const Ids few(most.begin(), most.begin() + 500);
    const Ids seeds{0, 3};
    const auto scores = [&](PprWorkspace& workspace, const Ids& entities) {
        Floats out(entities.size());
        workspace.load_induced(graph, entities);
        workspace.solve(seeds, {}, {0.85, 1e-6}, out);
        return out;
    };
    PprWorkspace fresh;
    const Floats expected = scores(fresh, few);
    const Floats expected_most = scores(fresh, most);
    bool failed = true;
    for (long calls = 0; failed; ++calls) {
        PprWorkspace workspace;
        failed = false;
        testing::fail_allocation_after(calls);
        try {
            (void)scores(workspace, most);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        CHECK(!failed || scores(workspace, few) == expected);
        CHECK(!failed || scores(workspace, most) == expected_most);
    }
    testing::fail_allocation_after(-1);
}
