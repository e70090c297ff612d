#include "ppr_restart.hpp"

#include <algorithm>
#include <cmath>

#include "check.hpp"

namespace bookrag::detail {

namespace {

constexpr double kMaxPasses = 1e5;

}  // namespace

std::int64_t max_passes(const PageRankOptions& options) {
    if (!(options.damping >= 0.0 && options.damping < 1.0)) {
        invalid("damping is " + text(options.damping) + ", but must be at least 0 and below 1");
    }
    if (!(options.tol >= 1e-12 && options.tol <= 1.0)) {
        invalid("tol is " + text(options.tol) + ", but must lie between 1e-12 and 1");
    }
    if (options.damping == 0.0) return 1;
    const double passes = std::ceil(std::log(options.tol / 2.0) / std::log(options.damping));
    if (!(passes <= kMaxPasses)) {
        invalid("damping " + text(options.damping) +
                " is so near 1 that tol needs more than 100000 passes; "
                "lower damping or raise tol");
    }
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(passes));
}

void check_seeds(std::int32_t num_entities, std::span<const EntityId> seeds,
                 std::span<const float> weights) {
    if (seeds.empty()) invalid("seeds is empty, but the walk must start somewhere");
    if (!weights.empty()) check_same_length(seeds.size(), "seeds", weights.size(), "weights");
    check_ids(seeds, num_entities, "seeds", "entities");
    bool some = weights.empty();
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!std::isfinite(weights[i]) || weights[i] < 0.0F) {
            invalid(at("weights", i) + " is " + text(double{weights[i]}) +
                    ", but a seed's weight must be finite and >= 0");
        }
        some = some || weights[i] > 0.0F;
    }
    if (!some) invalid("weights are all 0, but one seed must weigh more");
}

bool RestartBuilder::finish(PprRestart& out) {
    const auto before = [](const Entry& a, const Entry& b) {
        return a.row != b.row ? a.row < b.row : a.order < b.order;
    };
    if (!std::is_sorted(entries_.begin(), entries_.end(), before)) {
        std::sort(entries_.begin(), entries_.end(), before);
    }
    out.rows.clear();
    out.masses.clear();
    double sum = 0.0;
    for (const Entry& e : entries_) {
        if (!(e.weight > 0.0)) continue;
        if (out.rows.empty() || out.rows.back() != e.row) {
            out.rows.push_back(e.row);
            out.masses.push_back(0.0);
        }
        out.masses.back() += e.weight;
        sum += e.weight;
    }
    for (double& mass : out.masses) mass /= sum;
    return sum > 0.0;
}

}  // namespace bookrag::detail
