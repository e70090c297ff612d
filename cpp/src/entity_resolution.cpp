#include "bookrag/entity_resolution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "check.hpp"
#include "kernels/entity_resolution.hpp"

namespace bookrag {

namespace kernels {
BOOKRAG_SELECT(ResolutionKernels, resolution_kernels)
}

namespace {

constexpr float kAbsent = -std::numeric_limits<float>::infinity();

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// Candidate c with this score as one word: larger scores and, of equal ones, lower columns are
// larger words.
std::uint64_t candidate(float score, std::size_t c) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // -0 becomes +0
    const std::uint32_t upper = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
    return std::uint64_t{upper} << 32 | ~static_cast<std::uint32_t>(c);
}

std::int32_t column(std::uint64_t word) noexcept {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(word));
}

// The rule of the header for one row, its candidates' columns best first.
ResolutionCase decide(std::span<const float> row, std::span<const std::int32_t> order,
                      const GradientDropOptions& options, std::int32_t& size) {
    const auto score = [&](std::size_t place) { return row[idx(order[place])]; };
    size = 0;
    if (row.empty() || score(0) == kAbsent || score(0) < options.min_score) {
        return ResolutionCase::new_entity;
    }
    std::size_t high = 1;
    // Scores in the group are >= 0, since the best is and each next one is at least a share of it;
    // an absent one, -inf, always drops.
    while (high < row.size() && score(high) >= options.g * score(high - 1)) ++high;
    size = static_cast<std::int32_t>(high);
    if (high == 1) return ResolutionCase::merge;
    return high == row.size() ? ResolutionCase::new_entity : ResolutionCase::ambiguous;
}

// Row by row, for any number of columns. False if a score is NaN or +inf.
bool drop_rows(std::span<const float> scores, std::size_t k, const GradientDropOptions& options,
               const GradientDropView& out) {
    std::vector<float> row(k);  // copied: what was checked is what is used
    std::vector<std::uint64_t> words(k);
    for (std::size_t i = 0; i < out.cases.size(); ++i) {
        for (std::size_t c = 0; c < k; ++c) {
            row[c] = scores[i * k + c];
            if (!(row[c] < std::numeric_limits<float>::infinity())) return false;
            words[c] = candidate(row[c], c);
        }
        std::sort(words.begin(), words.end(), std::greater<>());
        const auto order = out.order.subspan(i * k, k);
        std::transform(words.begin(), words.end(), order.begin(), column);
        out.cases[i] = static_cast<std::uint8_t>(decide(row, order, options, out.sizes[i]));
    }
    return true;
}

[[noreturn]] void refuse_scores(std::span<const float> scores, std::int64_t k) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (scores[i] < std::numeric_limits<float>::infinity()) continue;
        detail::invalid("scores[" + std::to_string(i / idx(k)) + ", " + std::to_string(i % idx(k)) +
                        "] is " + detail::text(double{scores[i]}) +
                        ", but must be finite (-inf: no candidate)");
    }
    detail::invalid("scores held NaN or inf, but was changed by another thread");
}

// Disjoint sets whose root is their smallest member, with the pairs that must stay apart.
class DisjointSets {
  public:
    DisjointSets(std::int64_t n, std::span<const EntityId> incompatible) : parent_(idx(n)) {
        std::iota(parent_.begin(), parent_.end(), EntityId{0});
        if (incompatible.empty()) return;
        apart_.resize(parent_.size());
        for (std::size_t i = 0; i + 1 < incompatible.size(); i += 2) {
            apart_[idx(incompatible[i])].push_back(incompatible[i + 1]);
            apart_[idx(incompatible[i + 1])].push_back(incompatible[i]);
        }
    }

    EntityId find(EntityId e) noexcept {
        while (parent_[idx(e)] != e) {  // path halving
            parent_[idx(e)] = parent_[idx(parent_[idx(e)])];
            e = parent_[idx(e)];
        }
        return e;
    }

    // False if the two sets hold an incompatible pair.
    bool unite(EntityId a, EntityId b) {
        a = find(a);
        b = find(b);
        if (a == b) return true;
        if (b < a) std::swap(a, b);
        if (!apart_.empty()) {
            auto& of_a = apart_[idx(a)];
            auto& of_b = apart_[idx(b)];
            // Either set's list names the other if the pair exists: the shorter one is enough.
            const bool a_shorter = of_a.size() <= of_b.size();
            const EntityId other = a_shorter ? b : a;
            const auto& shorter = a_shorter ? of_a : of_b;
            if (std::any_of(shorter.begin(), shorter.end(),
                            [&](EntityId e) { return find(e) == other; })) {
                return false;
            }
            if (a_shorter) of_a.swap(of_b);  // append the shorter to the longer
            of_a.insert(of_a.end(), of_b.begin(), of_b.end());
            std::vector<EntityId>().swap(of_b);
        }
        parent_[idx(b)] = a;
        return true;
    }

  private:
    std::vector<EntityId> parent_;
    std::vector<std::vector<EntityId>> apart_;  // of each root: entities its set must not hold
};

}  // namespace

void gradient_drop_into(std::span<const float> scores, std::int64_t n, std::int64_t k,
                        const GradientDropOptions& options, const GradientDropView& out) {
    if (!(options.g > 0.0F && options.g <= 1.0F)) {
        detail::invalid("g is " + detail::text(double{options.g}) +
                        ", but must be above 0 and at most 1");
    }
    if (!(options.min_score >= 0.0F && std::isfinite(options.min_score))) {
        detail::invalid("min_score is " + detail::text(double{options.min_score}) +
                        ", but must be finite and >= 0");
    }
    detail::check_count(n, std::numeric_limits<std::int32_t>::max(), "number of rows");
    detail::check_count(k, std::numeric_limits<std::int32_t>::max(), "number of candidates");
    if (std::ssize(scores) != n * k) {
        detail::invalid("scores has " + std::to_string(scores.size()) + " values, not " +
                        std::to_string(n) + " rows of " + std::to_string(k));
    }
    detail::check_same_length(out.cases.size(), "cases", idx(n), "n rows");
    detail::check_same_length(out.sizes.size(), "sizes", idx(n), "n rows");
    detail::check_same_length(out.order.size(), "order", scores.size(), "scores");

    using kernels::ResolutionKernels;
    const bool fits = k >= ResolutionKernels::kMinColumns && k <= ResolutionKernels::kMaxColumns;
    const bool good =
        fits ? kernels::select_resolution_kernels().gradient_drop(
                   scores.data(), n, static_cast<std::int32_t>(k), options.g, options.min_score,
                   out.cases.data(), out.sizes.data(), out.order.data())
             : drop_rows(scores, idx(k), options, out);
    if (!good) refuse_scores(scores, k);
}

GradientDrop gradient_drop(std::span<const float> scores, std::int64_t n, std::int64_t k,
                           const GradientDropOptions& options) {
    GradientDrop out;
    out.cases.resize(n > 0 ? idx(n) : 0);
    out.sizes.resize(out.cases.size());
    out.order.resize(scores.size());
    gradient_drop_into(scores, n, k, options, {out.cases, out.sizes, out.order});
    return out;
}

MergePlan merge_plan(std::int64_t num_entities, std::span<const EntityId> left,
                     std::span<const EntityId> right, std::span<const EntityId> incompatible) {
    detail::check_count(num_entities, kMaxEntities, "num_entities");
    detail::check_same_length(left.size(), "left", right.size(), "right");
    detail::check_ids(left, num_entities, "left", "entities");
    detail::check_ids(right, num_entities, "right", "entities");
    if (incompatible.size() % 2 != 0) detail::invalid("incompatible holds half a pair at its end");
    detail::check_ids(incompatible, num_entities, "incompatible", "entities");
    for (std::size_t i = 0; i < incompatible.size(); i += 2) {
        if (incompatible[i] == incompatible[i + 1]) {
            detail::invalid("incompatible pair " + std::to_string(i / 2) + " joins entity " +
                            std::to_string(incompatible[i]) + " with itself");
        }
    }

    DisjointSets sets(num_entities, incompatible);
    MergePlan plan;
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (!sets.unite(left[i], right[i])) plan.skipped.push_back(static_cast<std::int64_t>(i));
    }
    plan.representative.resize(idx(num_entities));
    for (std::size_t e = 0; e < plan.representative.size(); ++e) {
        const auto id = static_cast<EntityId>(e);
        plan.representative[e] = sets.find(id);
        plan.num_sets += plan.representative[e] == id;
    }
    return plan;
}

}  // namespace bookrag
