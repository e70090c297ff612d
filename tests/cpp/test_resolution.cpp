#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "bookrag/dispatch.hpp"
#include "bookrag/entity_resolution.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::gradient_drop;
using bookrag::merge_plan;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;
using Cases = std::vector<std::uint8_t>;

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr std::uint8_t kNew = 0;
constexpr std::uint8_t kMerge = 1;
constexpr std::uint8_t kAmbiguous = 2;

void expect(const Floats& row, std::uint8_t wanted_case, std::int32_t wanted_size) {
    const auto result = gradient_drop(row, 1, std::ssize(row));
    CHECK_EQ(result.cases, Cases{wanted_case});
    CHECK_EQ(result.sizes, Ids{wanted_size});
}

}  // namespace

TEST(resolution, the_cases_of_algorithm_1) {
    expect({0.9F, 0.1F, 0.1F}, kMerge, 1);
    expect({0.1F, 0.1F, 0.9F}, kMerge, 1);  // any order
    expect({0.9F, 0.8F, 0.1F}, kAmbiguous, 2);
    expect({0.9F, 0.8F, 0.7F}, kNew, 3);    // Case A: no drop anywhere
    expect({0.49F, 0.1F, 0.1F}, kNew, 0);   // gate
    expect({0.5F, 0.1F, 0.1F}, kMerge, 1);  // on the gate
    expect({1.0F, 0.6F, 0.36F}, kNew, 3);   // exactly g each time is no drop
    expect({1.0F, 0.59F, 0.58F}, kMerge, 1);
    expect({0.9F, -0.5F, -0.5F}, kMerge, 1);
}

TEST(resolution, running_out_is_a_drop) {
    expect({0.9F, kNone, kNone}, kMerge, 1);
    expect({0.9F, 0.8F, kNone}, kAmbiguous, 2);
    expect({kNone, 0.9F, 0.8F}, kAmbiguous, 2);
    expect({kNone, kNone}, kNew, 0);
    expect({0.9F}, kMerge, 1);  // k = 1
    expect({0.1F}, kNew, 0);
    const auto none = gradient_drop(Floats{}, 2, 0);
    CHECK_EQ(none.cases, (Cases{kNew, kNew}));
}

TEST(resolution, order_breaks_ties_by_column) {
    const auto result = gradient_drop(Floats{0.5F, 0.9F, 0.5F, kNone}, 1, 4);
    CHECK_EQ(result.order, (Ids{1, 0, 2, 3}));
}

TEST(resolution, any_width_by_any_instruction_set_is_the_stable_order) {
    const auto before = bookrag::isa();
    testing::Random random(17);
    constexpr std::size_t n = 37;  // two blocks and a rest
    for (std::size_t k = 1; k <= 66; ++k) {
        Floats scores;
        for (std::size_t i = 0; i < n * k; ++i) {
            const auto pick = random.below(12);  // few values: ties; -0 ties with 0
            scores.push_back(pick == 0 ? kNone : pick == 1 ? -0.0F : 0.1F * float(pick - 2));
        }
        Ids order;
        for (std::size_t i = 0; i < n; ++i) {
            Ids row(k);
            std::iota(row.begin(), row.end(), 0);
            std::ranges::stable_sort(row, [&](std::int32_t a, std::int32_t b) {
                return scores[i * k + static_cast<std::size_t>(a)] >
                       scores[i * k + static_cast<std::size_t>(b)];
            });
            order.insert(order.end(), row.begin(), row.end());
        }
        Cases cases;
        Ids sizes;
        for (std::size_t i = 0; i < n; ++i) {
            std::size_t high = 0;
            const auto score = [&](std::size_t place) {
                return scores[i * k + static_cast<std::size_t>(order[i * k + place])];
            };
            if (score(0) >= 0.5F) {
                for (high = 1; high < k && score(high) >= 0.9F * score(high - 1);) ++high;
            }
            cases.push_back(high == 1 ? kMerge : high == 0 || high == k ? kNew : kAmbiguous);
            sizes.push_back(static_cast<std::int32_t>(high));
        }
        for (const auto isa : bookrag::available_isas()) {
            bookrag::force_isa(isa);
            const auto result = gradient_drop(scores, n, std::ssize(scores) / 37, {0.9F, 0.5F});
            CHECK_EQ(result.order, order);
            CHECK_EQ(result.cases, cases);
            CHECK_EQ(result.sizes, sizes);
        }
    }
    bookrag::force_isa(before);
}

TEST(resolution, refuses_bad_scores_and_options) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{0.1F, nan}, 1, 2));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{inf, 0.1F}, 1, 2));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{1, 2, 3}, 1, 2));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{}, -1, 0));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{1}, 1, 1, {0.0F, 0.5F}));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{1}, 1, 1, {1.5F, 0.5F}));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{1}, 1, 1, {nan, 0.5F}));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{1}, 1, 1, {0.6F, -0.5F}));
    CHECK_THROWS(invalid_argument, gradient_drop(Floats{1}, 1, 1, {0.6F, nan}));
}

TEST(resolution, merge_plan_by_hand) {
    const auto plan = merge_plan(6, Ids{5, 1, 4}, Ids{4, 3, 3});
    CHECK_EQ(plan.representative, (Ids{0, 1, 2, 1, 1, 1}));
    CHECK_EQ(plan.num_sets, 3);
    CHECK(plan.skipped.empty());
}

TEST(resolution, incompatible_entities_stay_apart) {
    // 0-1, 1-2 would bring 0 and 2 together; 3 may still join either.
    const auto plan = merge_plan(4, Ids{0, 1, 3, 0}, Ids{1, 2, 2, 3}, Ids{2, 0});
    CHECK_EQ(plan.representative, (Ids{0, 0, 2, 2}));
    CHECK_EQ(plan.skipped, (std::vector<std::int64_t>{1, 3}));
    CHECK_EQ(plan.num_sets, 2);
}

TEST(resolution, merge_plan_agrees_with_relabelling) {
    testing::Random random(21);
    for (int round = 0; round < 300; ++round) {
        const std::int32_t n = 1 + random.below(15);
        const auto m = static_cast<std::size_t>(random.below(20));
        const Ids left = random.ids(m, n);
        const Ids right = random.ids(m, n);
        Ids apart;
        for (int i = random.below(5); i > 0; --i) {
            const std::int32_t a = random.below(n);
            const std::int32_t b = random.below(n);
            if (a != b) apart.insert(apart.end(), {a, b});
        }
        Ids label(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < label.size(); ++i) label[i] = static_cast<std::int32_t>(i);
        std::vector<std::int64_t> skipped;
        for (std::size_t i = 0; i < m; ++i) {
            const auto la = label[static_cast<std::size_t>(left[i])];
            const auto lb = label[static_cast<std::size_t>(right[i])];
            bool allowed = true;
            for (std::size_t q = 0; q + 1 < apart.size(); q += 2) {
                const auto a = label[static_cast<std::size_t>(apart[q])];
                const auto b = label[static_cast<std::size_t>(apart[q + 1])];
                allowed = allowed && !((a == la && b == lb) || (a == lb && b == la));
            }
            if (!allowed) {
                skipped.push_back(static_cast<std::int64_t>(i));
                continue;
            }
            for (auto& l : label) {
                if (l == la || l == lb) l = std::min(la, lb);
            }
        }
        const auto plan = merge_plan(n, left, right, apart);
        CHECK_EQ(plan.representative, label);
        CHECK_EQ(plan.skipped, skipped);
    }
}

TEST(resolution, merge_plan_refuses_bad_pairs) {
    CHECK_THROWS(out_of_range, merge_plan(2, Ids{0}, Ids{2}));
    CHECK_THROWS(invalid_argument, merge_plan(2, Ids{0}, Ids{}));
    CHECK_THROWS(invalid_argument, merge_plan(2, Ids{}, Ids{}, Ids{1}));
    CHECK_THROWS(invalid_argument, merge_plan(2, Ids{}, Ids{}, Ids{1, 1}));
    CHECK_THROWS(out_of_range, merge_plan(2, Ids{}, Ids{}, Ids{1, 2}));
    CHECK_THROWS(too_large, merge_plan(bookrag::kMaxEntities + 1, Ids{}, Ids{}));
}
