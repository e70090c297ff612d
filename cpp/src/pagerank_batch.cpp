// Many walks at once.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "bookrag/pagerank.hpp"
#include "check.hpp"
#include "kernels/select.hpp"
#include "ppr_state.hpp"

namespace bookrag::kernels {
BOOKRAG_SELECT(PprBatchKernels, ppr_batch_kernels)
}

namespace bookrag {

namespace {

constexpr std::size_t kWalks = 16;
// Positions up to which 16 walks share their passes: 64 bytes each, 16 MiB, half of a shared cache.
constexpr std::int64_t kShared = 262144;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// Up to 16 walks with their values side by side. Terms as in PprSolver, one a walk.
class Sixteen {
  public:
    std::array<detail::PprRestart, kWalks> restart;

    // Writes the scores of the first `walks` restarts; false for a walk that float32 cannot bring
    // within tol.
    std::array<bool, kWalks> solve(const detail::PprLayout& layout, std::size_t walks,
                                   const PageRankOptions& options, std::int64_t limit,
                                   std::span<float> out) {
        const double a = options.damping;
        const auto m = layout.matrix();
        const auto place = layout.position_of();
        const std::size_t entities = place.size();
        x_.assign(idx(m.positions) * kWalks, 0.0F);
        next_.resize(x_.size());
        for (std::int64_t at = m.hubs; at % kernels::kLanes != 0; ++at) {
            std::fill_n(next_.begin() + at * std::int64_t{kWalks}, kWalks, 0.0F);
        }
        std::array<double, kWalks> isolated{};
        std::array<double, kWalks> share{};
        std::array<double, kWalks> total{};
        std::array<double, kWalks> rounding{};
        std::array<double, kWalks> before{};
        std::array<bool, kWalks> done{};
        seeded_.clear();
        for (std::size_t w = 0; w < walks; ++w) {
            double connected = 0.0;
            for (std::size_t i = 0; i < restart[w].rows.size(); ++i) {
                const std::int32_t row = restart[w].rows[i];
                const double mass = restart[w].masses[i];
                if (layout.isolated(row)) {
                    isolated[w] += mass;
                    continue;
                }
                const auto single = static_cast<float>(mass);
                seeded_.push_back(place[idx(row)]);
                x_[idx(place[idx(row)]) * kWalks + w] = single;
                connected += mass;
                rounding[w] += std::abs(double{single} - mass) / (1.0 - a);
            }
            share[w] = (1.0 - a) / (1.0 - a * std::min(isolated[w], 1.0));
            total[w] = before[w] = connected / (1.0 - a);
            rounding[w] *= share[w];
        }
        std::sort(seeded_.begin(), seeded_.end());
        seeded_.erase(std::unique(seeded_.begin(), seeded_.end()), seeded_.end());
        b_.clear();
        for (const std::int32_t at : seeded_) {
            const auto from = x_.begin() + std::int64_t{at} * std::int64_t{kWalks};
            b_.insert(b_.end(), from, from + kWalks);
        }
        seeded_.push_back(-1);

        const auto& kernel = kernels::select_ppr_batch_kernels();
        const auto omega = static_cast<float>(2.0 / (1.0 + std::sqrt(1.0 - a * a)));
        std::array<double, kWalks> norm{};
        std::array<double, kWalks> sum{};
        std::array<double, kWalks> moved{};
        double ratio = 1.0;
        std::int64_t sweeps = 0;
        for (int tries = 0; tries < 3; ++tries) {
            bool more = a > 0.0;
            while (more && sweeps < limit) {
                std::array<float, kWalks> changes{};
                kernel.sweep16(m, seeded_.data(), b_.data(), x_.data(), static_cast<float>(a),
                               omega, changes.data());
                ++sweeps;
                more = false;
                for (std::size_t w = 0; w < walks; ++w) {
                    const double change = double{changes[w]};
                    const double shrink = before[w] > 0.0 ? std::min(change / before[w], 1.0) : 0.0;
                    before[w] = change;
                    const double wanted =
                        0.8 * (options.tol - rounding[w] -
                               share[w] * a / (1.0 - a) * 0.4 * 0x1p-24 * total[w]);
                    more = more || share[w] * a / (1.0 - a) * ratio * change * shrink > wanted;
                }
                // Where float32 cannot get there it stops falling.
                if (sweeps > 2 && stalled(before, total, walks)) break;
            }
            kernel.certify16(m, seeded_.data(), b_.data(), x_.data(), next_.data(), a, norm.data(),
                             sum.data(), moved.data());
            bool all = true;
            for (std::size_t w = 0; w < walks; ++w) {
                const double error = share[w] * (a / (1.0 - a) * (norm[w] + moved[w]) +
                                                 std::abs(sum[w] - total[w])) +
                                     rounding[w];
                done[w] = error <= options.tol;
                all = all && done[w];
            }
            if (all) break;
            ratio *= 3.0;
        }
        std::array<double, kWalks> scale{};
        for (std::size_t w = 0; w < walks; ++w) scale[w] = 1.0 / (sum[w] + isolated[w]);
        for (std::size_t e = 0; e < entities; ++e) {
            const float* values = next_.data() + idx(place[e]) * kWalks;
            for (std::size_t w = 0; w < walks; ++w) {
                const double value = double{values[w]} * scale[w];
                out[w * entities + e] = static_cast<float>(value > 0.0 ? value : 0.0);
            }
        }
        for (std::size_t w = 0; w < walks; ++w) {
            for (std::size_t i = 0; i < restart[w].rows.size(); ++i) {
                const std::int32_t row = restart[w].rows[i];
                if (!layout.isolated(row)) continue;
                out[w * entities + idx(row)] = static_cast<float>(restart[w].masses[i] * scale[w]);
            }
        }
        return done;
    }

  private:
    static bool stalled(const std::array<double, kWalks>& changes,
                        const std::array<double, kWalks>& total, std::size_t walks) {
        for (std::size_t w = 0; w < walks; ++w) {
            if (changes[w] > 1e-7 * total[w]) return false;
        }
        return true;
    }

    std::vector<std::int32_t> seeded_;  // positions, closed by -1
    std::vector<float> b_;              // 16 values for each of them
    detail::LineVector<float> x_;
    detail::LineVector<float> next_;
};

Sixteen& sixteen() {
    thread_local Sixteen mine;
    return mine;
}

void check_offsets(std::span<const std::int64_t> offsets, std::size_t seeds) {
    if (offsets.empty() || offsets.front() != 0 ||
        offsets.back() != static_cast<std::int64_t>(seeds)) {
        detail::invalid("offsets must begin with 0 and end with the number of seeds, " +
                        std::to_string(seeds));
    }
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] <= offsets[i - 1]) {
            detail::invalid(detail::at("offsets", i) + " is " + std::to_string(offsets[i]) +
                            ", but must exceed the one before: a walk must start somewhere");
        }
    }
}

}  // namespace

std::vector<float> personalized_pagerank_batch(const KnowledgeGraph& graph,
                                               std::span<const std::int64_t> offsets,
                                               std::span<const EntityId> seeds,
                                               std::span<const float> weights,
                                               const PageRankOptions& options) {
    const std::int64_t limit = detail::max_passes(options);
    check_offsets(offsets, seeds.size());
    const std::size_t walks = offsets.size() - 1;
    const auto entities = idx(graph.num_entities());
    if (walks == 0) return {};
    if (!weights.empty()) {
        detail::check_same_length(seeds.size(), "seeds", weights.size(), "weights");
    }
    const auto seeds_of = [&](std::size_t w) {
        return seeds.subspan(idx(offsets[w]), idx(offsets[w + 1] - offsets[w]));
    };
    const auto weights_of = [&](std::size_t w) {
        return weights.empty() ? weights
                               : weights.subspan(idx(offsets[w]), idx(offsets[w + 1] - offsets[w]));
    };
    for (std::size_t w = 0; w < walks; ++w) {
        try {
            detail::check_seeds(graph.num_entities(), seeds_of(w), weights_of(w));
        } catch (const Error& error) {
            throw Error(error.code(), "walk " + std::to_string(w) + ": " + error.what());
        }
    }
    const auto& layout = graph.walk_layout();
    std::vector<float> out(walks * entities);
    const auto alone = [&](std::size_t w) {
        const auto scores = personalized_pagerank(graph, seeds_of(w), weights_of(w), options);
        std::copy(scores.begin(), scores.end(),
                  out.begin() + static_cast<std::ptrdiff_t>(w * entities));
    };
    const bool shared = layout.positions() <= kShared;
    detail::RestartBuilder builder;
    for (std::size_t first = 0; first < walks; first += kWalks) {
        const std::size_t many = std::min(kWalks, walks - first);
        if (!shared || many < 3) {
            for (std::size_t w = first; w < first + many; ++w) alone(w);
            continue;
        }
        for (std::size_t w = 0; w < many; ++w) {
            builder.clear();
            const auto ids = seeds_of(first + w);
            const auto masses = weights_of(first + w);
            for (std::size_t i = 0; i < ids.size(); ++i) {
                builder.add(ids[i], masses.empty() ? 1.0 : double{masses[i]});
            }
            (void)builder.finish(sixteen().restart[w]);
        }
        const auto done =
            sixteen().solve(layout, many, options, limit, std::span(out).subspan(first * entities));
        for (std::size_t w = 0; w < many; ++w) {
            if (!done[w]) alone(first + w);
        }
    }
    return out;
}

}  // namespace bookrag
