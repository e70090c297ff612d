#include "bookrag/pagerank.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "check.hpp"

namespace bookrag {

namespace {

constexpr double kMaxPasses = 1e5;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// Passes after which the error must be within tol / 2 whatever the graph: the first iterate is at
// most `damping` away in L1, and every pass shrinks that by damping.
std::int64_t max_passes(const PageRankOptions& options) {
    if (!(options.damping >= 0.0 && options.damping < 1.0)) {
        detail::invalid("damping is " + detail::text(options.damping) +
                        ", but must be at least 0 and below 1");
    }
    if (!(options.tol >= 1e-12 && options.tol <= 1.0)) {
        detail::invalid("tol is " + detail::text(options.tol) +
                        ", but must lie between 1e-12 and 1");
    }
    if (options.damping == 0.0) return 1;
    const double passes = std::ceil(std::log(options.tol / 2.0) / std::log(options.damping));
    if (!(passes <= kMaxPasses)) {
        detail::invalid("damping " + detail::text(options.damping) +
                        " is so near 1 that tol needs more than 100000 passes; "
                        "lower damping or raise tol");
    }
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(passes));
}

// The restart distribution: one value an entity, summing to 1. float64 holds sums of float32 values
// of any magnitude without overflow.
std::vector<double> restart_distribution(std::int32_t num_entities, std::span<const EntityId> seeds,
                                         std::span<const float> weights) {
    if (seeds.empty()) detail::invalid("seeds is empty, but the walk must start somewhere");
    if (!weights.empty())
        detail::check_same_length(seeds.size(), "seeds", weights.size(), "weights");
    detail::check_ids(seeds, num_entities, "seeds", "entities");
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!std::isfinite(weights[i]) || weights[i] < 0.0F) {
            detail::invalid(detail::at("weights", i) + " is " + detail::text(double{weights[i]}) +
                            ", but a seed's weight must be finite and >= 0");
        }
    }
    std::vector<double> restart(idx(num_entities), 0.0);
    double sum = 0.0;
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        const double w = weights.empty() ? 1.0 : double{weights[i]};
        restart[idx(seeds[i])] += w;
        sum += w;
    }
    if (!(sum > 0.0)) detail::invalid("weights are all 0, but one seed must weigh more");
    for (double& r : restart) r /= sum;
    return restart;
}

// Solves  y = restart + damping * P^T y  on the entities that have relations, P the row-stochastic
// walk matrix; y is left at restart elsewhere. All terms are >= 0.
std::vector<double> solve(const KnowledgeGraph& graph, const std::vector<double>& restart,
                          double damping, double bound, std::int64_t passes) {
    const CsrView rows = graph.adjacency();
    const auto weights = graph.weights();
    const auto strength = graph.weighted_degrees();
    const std::size_t n = restart.size();

    std::vector<double> y(restart);
    std::vector<double> outflow(n);  // y_u / strength_u: what a unit of weight carries away from u
    for (std::int64_t pass = 0; pass < passes; ++pass) {
        for (std::size_t u = 0; u < n; ++u) {
            outflow[u] = strength[u] > 0.0 ? y[u] / strength[u] : 0.0;
        }
        double residual = 0.0;
        for (std::size_t v = 0; v < n; ++v) {
            double inflow = 0.0;
            for (auto s = idx(rows.offsets[v]); s < idx(rows.offsets[v + 1]); ++s) {
                inflow += double{weights[s]} * outflow[idx(rows.targets[s])];
            }
            const double next = restart[v] + damping * inflow;
            residual += std::abs(next - y[v]);
            y[v] = next;  // outflow holds the old values: this is Jacobi, not Gauss-Seidel
        }
        // The new iterate's own residual is at most damping * residual, its error at most that
        // over 1 - damping.
        if (damping * residual <= bound * (1.0 - damping)) break;
    }
    return y;
}

std::vector<double> stationary(const KnowledgeGraph& graph, const std::vector<double>& restart,
                               const PageRankOptions& options) {
    const std::int64_t passes = max_passes(options);
    const auto strength = graph.weighted_degrees();

    // Entities without relations send everything back to the seeds. Their share of the restart mass
    // is known beforehand, so the chain with restarts is y scaled, and no pass has to handle them.
    double isolated = 0.0;
    for (std::size_t v = 0; v < restart.size(); ++v) {
        if (!(strength[v] > 0.0)) isolated += restart[v];
    }
    const double scale =
        (1.0 - options.damping) / (1.0 - options.damping * std::min(isolated, 1.0));
    std::vector<double> x =
        solve(graph, restart, options.damping, options.tol / 2.0 / scale, passes);

    // Exact y gives a sum of 1 after scaling; dividing by the sum instead of multiplying by the
    // scale makes it so for the iterate too, and at most doubles its error (hence tol / 2).
    double sum = 0.0;
    for (const double value : x) sum += value;
    for (double& value : x) value /= sum;
    return x;
}

}  // namespace

std::vector<float> personalized_pagerank(const KnowledgeGraph& graph,
                                         std::span<const EntityId> seeds,
                                         std::span<const float> weights,
                                         const PageRankOptions& options) {
    const auto restart = restart_distribution(graph.num_entities(), seeds, weights);
    const auto x = stationary(graph, restart, options);
    std::vector<float> out(x.size());
    std::transform(x.begin(), x.end(), out.begin(), [](double v) { return static_cast<float>(v); });
    return out;
}

std::vector<float> personalized_pagerank_within(const KnowledgeGraph& graph,
                                                std::span<const EntityId> entities,
                                                std::span<const EntityId> seeds,
                                                std::span<const float> weights,
                                                const PageRankOptions& options) {
    const auto whole = restart_distribution(graph.num_entities(), seeds, weights);
    const InducedGraph part = graph.induced(entities);
    std::vector<double> restart(part.entities.size());
    double sum = 0.0;
    for (std::size_t i = 0; i < restart.size(); ++i) {
        restart[i] = whole[idx(part.entities[i])];
        sum += restart[i];
    }
    if (!(sum > 0.0)) {
        detail::invalid("no seed with a weight > 0 lies in entities, so the walk cannot start");
    }
    for (double& r : restart) r /= sum;
    const auto x = stationary(part.graph, restart, options);
    std::vector<float> out(idx(graph.num_entities()), 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) {
        out[idx(part.entities[i])] = static_cast<float>(x[i]);
    }
    return out;
}

}  // namespace bookrag
