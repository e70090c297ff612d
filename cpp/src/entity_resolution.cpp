#include "bookrag/entity_resolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "check.hpp"

namespace bookrag {

namespace {

constexpr float kAbsent = -std::numeric_limits<float>::infinity();

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

struct Candidate {
    float score;
    std::int32_t column;
};

// The rule of the header for one row, candidates best first.
ResolutionCase decide(std::span<const Candidate> row, const GradientDropOptions& options,
                      std::int32_t& size) {
    size = 0;
    if (row.empty() || row[0].score == kAbsent || row[0].score < options.min_score) {
        return ResolutionCase::new_entity;
    }
    std::size_t high = 1;
    // Scores in the group are >= 0, since the best is and each next one is at least a share of it;
    // an absent one, -inf, always drops.
    while (high < row.size() && row[high].score >= options.g * row[high - 1].score) ++high;
    size = static_cast<std::int32_t>(high);
    if (high == 1) return ResolutionCase::merge;
    return high == row.size() ? ResolutionCase::new_entity : ResolutionCase::ambiguous;
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

GradientDrop gradient_drop(std::span<const float> scores, std::int64_t n, std::int64_t k,
                           const GradientDropOptions& options) {
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

    GradientDrop out;
    out.cases.resize(idx(n));
    out.sizes.resize(idx(n));
    out.order.resize(scores.size());
    std::vector<Candidate> row(idx(k));
    for (std::size_t i = 0; i < idx(n); ++i) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            const float score = scores[i * row.size() + c];
            if (!(score < std::numeric_limits<float>::infinity())) {
                detail::invalid("scores[" + std::to_string(i) + ", " + std::to_string(c) + "] is " +
                                detail::text(double{score}) +
                                ", but must be finite (-inf: no candidate)");
            }
            row[c] = {score, static_cast<std::int32_t>(c)};
        }
        std::sort(row.begin(), row.end(), [](const Candidate& a, const Candidate& b) {
            return a.score != b.score ? a.score > b.score : a.column < b.column;
        });
        out.cases[i] = static_cast<std::uint8_t>(decide(row, options, out.sizes[i]));
        std::transform(row.begin(), row.end(),
                       out.order.begin() + static_cast<std::ptrdiff_t>(i * row.size()),
                       [](const Candidate& c) { return c.column; });
    }
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
