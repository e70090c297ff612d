#include "bookrag/pagerank.hpp"

#include <algorithm>
#include <string>

#include "check.hpp"
#include "ppr_state.hpp"

namespace bookrag {

namespace {

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// Memory that a thread keeps for its next call: 12 bytes an entity of the largest graph it saw.
struct Scratch {
    detail::PprSolver solver;
    detail::PprRestart restart;
    detail::RestartBuilder builder;
};

Scratch& scratch() {
    thread_local Scratch mine;
    return mine;
}

void take_seeds(detail::RestartBuilder& builder, detail::PprRestart& restart,
                std::span<const EntityId> seeds, std::span<const float> weights) {
    builder.clear();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        builder.add(seeds[i], weights.empty() ? 1.0 : double{weights[i]});
    }
    (void)builder.finish(restart);
}

template <typename T>
std::vector<T> whole(const KnowledgeGraph& graph, std::span<const EntityId> seeds,
                     std::span<const float> weights, const PageRankOptions& options) {
    const std::int64_t passes = detail::max_passes(options);
    detail::check_seeds(graph.num_entities(), seeds, weights);
    const auto& layout = graph.walk_layout();
    Scratch& s = scratch();
    take_seeds(s.builder, s.restart, seeds, weights);
    s.solver.begin(layout, s.restart, options.damping, passes);
    s.solver.reach(options.tol, sizeof(T) == sizeof(double));
    std::vector<T> out(idx(graph.num_entities()));
    detail::write_scores(layout, s.solver, s.restart, std::span<T>(out));
    return out;
}

// An induced graph with a walk on it.
struct Part {
    PprWorkspace workspace;
    std::vector<EntityId> entities;  // sorted copy, where the caller's are not
    std::vector<EntityId> seeds;
    std::vector<float> weights;

    // Loads the graph of `asked` and the seeds in it; returns the entities, ascending, distinct.
    std::span<const EntityId> load(const KnowledgeGraph& graph, std::span<const EntityId> asked,
                                   std::span<const EntityId> all_seeds,
                                   std::span<const float> all_weights) {
        detail::check_seeds(graph.num_entities(), all_seeds, all_weights);
        detail::check_ids(asked, graph.num_entities(), "entities", "entities");
        std::span<const EntityId> within = asked;
        const auto ascends = [](EntityId a, EntityId b) { return a >= b; };
        if (std::adjacent_find(asked.begin(), asked.end(), ascends) != asked.end()) {
            entities.assign(asked.begin(), asked.end());
            std::sort(entities.begin(), entities.end());
            entities.erase(std::unique(entities.begin(), entities.end()), entities.end());
            within = entities;
        }
        seeds.clear();
        weights.clear();
        bool some = false;
        for (std::size_t i = 0; i < all_seeds.size(); ++i) {
            const auto found = std::lower_bound(within.begin(), within.end(), all_seeds[i]);
            if (found == within.end() || *found != all_seeds[i]) continue;
            seeds.push_back(static_cast<EntityId>(found - within.begin()));
            weights.push_back(all_weights.empty() ? 1.0F : all_weights[i]);
            some = some || weights.back() > 0.0F;
        }
        if (!some) {
            detail::invalid("no seed with a weight > 0 lies in entities, so the walk cannot start");
        }
        workspace.load_induced(graph, within);
        return within;
    }
};

Part& part() {
    thread_local Part mine;
    return mine;
}

template <typename T>
EntityScores<T> induced(const KnowledgeGraph& graph, std::span<const EntityId> entities,
                        std::span<const EntityId> seeds, std::span<const float> weights,
                        const PageRankOptions& options) {
    Part& p = part();
    (void)detail::max_passes(options);
    const auto within = p.load(graph, entities, seeds, weights);
    EntityScores<T> out;
    out.entities.assign(within.begin(), within.end());
    out.scores.resize(within.size());
    p.workspace.solve(p.seeds, p.weights, options, std::span<T>(out.scores));
    return out;
}

template <typename T>
std::vector<T> spread(const KnowledgeGraph& graph, const EntityScores<T>& found) {
    std::vector<T> out(idx(graph.num_entities()));
    for (std::size_t i = 0; i < found.entities.size(); ++i) {
        out[idx(found.entities[i])] = found.scores[i];
    }
    return out;
}

// The k best of `values`, best first, then by id; zeros never count. id(i) names value i.
template <typename Value, typename Id>
EntityScores<float> best(std::size_t count, std::int64_t k, const Value& value, const Id& id) {
    struct Scored {
        float score;
        EntityId entity;
    };
    const auto better = [](const Scored& a, const Scored& b) {
        return a.score != b.score ? a.score > b.score : a.entity < b.entity;
    };
    std::vector<Scored> heap;  // worst on top
    const auto room = std::min(idx(k), count);
    heap.reserve(room);
    float bar = 0.0F;
    for (std::size_t i = 0; i < count; ++i) {
        const float score = value(i);
        if (!(score > 0.0F) || score < bar) continue;
        const Scored candidate{score, id(i)};
        if (heap.size() == room) {
            if (!better(candidate, heap.front())) continue;
            std::pop_heap(heap.begin(), heap.end(), better);
            heap.pop_back();
        }
        heap.push_back(candidate);
        std::push_heap(heap.begin(), heap.end(), better);
        if (heap.size() == room) bar = heap.front().score;
    }
    std::sort_heap(heap.begin(), heap.end(), better);
    EntityScores<float> out;
    for (const Scored& s : heap) {
        out.entities.push_back(s.entity);
        out.scores.push_back(s.score);
    }
    return out;
}

EntityScores<float> best_of(const detail::PprLayout& layout, const detail::PprSolver& solver,
                            const detail::PprRestart& restart, std::int64_t k) {
    const auto rows = layout.row_at();
    const double scale = solver.scale();
    const auto scan = [&](const auto* values) {
        // Rows without relations come after the others; only seeds among them score.
        const auto positions = idx(layout.positions());
        return best(
            positions + restart.rows.size(), k,
            [&](std::size_t i) {
                if (i < positions)
                    return static_cast<float>(static_cast<double>(values[i]) * scale);
                const std::int32_t row = restart.rows[i - positions];
                return layout.isolated(row)
                           ? static_cast<float>(restart.masses[i - positions] * scale)
                           : 0.0F;
            },
            [&](std::size_t i) { return i < positions ? rows[i] : restart.rows[i - positions]; });
    };
    return solver.single() ? scan(solver.values().data()) : scan(solver.values64().data());
}

// Whether an error of at most `error` in L1 leaves the order as it is: two scores cannot come
// nearer to each other by more than that together.
bool settled(const EntityScores<float>& top, double error) {
    for (std::size_t i = 1; i < top.scores.size(); ++i) {
        if (double{top.scores[i - 1]} - double{top.scores[i]} <= error) return false;
    }
    return true;
}

}  // namespace

std::vector<float> personalized_pagerank(const KnowledgeGraph& graph,
                                         std::span<const EntityId> seeds,
                                         std::span<const float> weights,
                                         const PageRankOptions& options) {
    return whole<float>(graph, seeds, weights, options);
}

std::int64_t personalized_pagerank_passes(const KnowledgeGraph& graph,
                                          std::span<const EntityId> seeds,
                                          const PageRankOptions& options) {
    (void)whole<float>(graph, seeds, {}, options);
    return scratch().solver.passes();
}

std::vector<double> personalized_pagerank64(const KnowledgeGraph& graph,
                                            std::span<const EntityId> seeds,
                                            std::span<const float> weights,
                                            const PageRankOptions& options) {
    return whole<double>(graph, seeds, weights, options);
}

EntityScores<float> personalized_pagerank_induced(const KnowledgeGraph& graph,
                                                  std::span<const EntityId> entities,
                                                  std::span<const EntityId> seeds,
                                                  std::span<const float> weights,
                                                  const PageRankOptions& options) {
    return induced<float>(graph, entities, seeds, weights, options);
}

EntityScores<double> personalized_pagerank_induced64(const KnowledgeGraph& graph,
                                                     std::span<const EntityId> entities,
                                                     std::span<const EntityId> seeds,
                                                     std::span<const float> weights,
                                                     const PageRankOptions& options) {
    return induced<double>(graph, entities, seeds, weights, options);
}

std::vector<float> personalized_pagerank_within(const KnowledgeGraph& graph,
                                                std::span<const EntityId> entities,
                                                std::span<const EntityId> seeds,
                                                std::span<const float> weights,
                                                const PageRankOptions& options) {
    return spread(graph, induced<float>(graph, entities, seeds, weights, options));
}

std::vector<double> personalized_pagerank_within64(const KnowledgeGraph& graph,
                                                   std::span<const EntityId> entities,
                                                   std::span<const EntityId> seeds,
                                                   std::span<const float> weights,
                                                   const PageRankOptions& options) {
    return spread(graph, induced<double>(graph, entities, seeds, weights, options));
}

EntityScores<float> personalized_pagerank_top(const KnowledgeGraph& graph, std::int64_t k,
                                              std::span<const EntityId> seeds,
                                              std::span<const float> weights,
                                              const PageRankOptions& options,
                                              const std::span<const EntityId>* within) {
    if (k < 1) detail::invalid("k is " + std::to_string(k) + ", but must be at least 1");
    const std::int64_t passes = detail::max_passes(options);
    if (within != nullptr) {
        const auto found = induced<float>(graph, *within, seeds, weights, options);
        return best(
            found.scores.size(), k, [&](std::size_t i) { return found.scores[i]; },
            [&](std::size_t i) { return found.entities[i]; });
    }
    detail::check_seeds(graph.num_entities(), seeds, weights);
    const auto& layout = graph.walk_layout();
    Scratch& s = scratch();
    take_seeds(s.builder, s.restart, seeds, weights);
    s.solver.begin(layout, s.restart, options.damping, passes);
    // One look on the way: gaps among the best are rarely wider than 1e-3, and a second look would
    // cost as much as the sweeps it may save.
    constexpr double kLook = 1e-4;
    // The k + 1 best: the last one only shows that the k-th is above it.
    const std::int64_t one_more = std::min<std::int64_t>(k, graph.num_entities()) + 1;
    for (const double tol : {std::max(kLook, options.tol), options.tol}) {
        s.solver.reach(tol);
        auto top = best_of(layout, s.solver, s.restart, one_more);
        if (tol == options.tol || settled(top, s.solver.error() + 1e-7)) {
            if (std::ssize(top.entities) > k) {
                top.entities.pop_back();
                top.scores.pop_back();
            }
            return top;
        }
    }
    return {};
}

}  // namespace bookrag
