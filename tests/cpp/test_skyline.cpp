#include <limits>
#include <vector>

#include "bookrag/dispatch.hpp"
#include "bookrag/skyline.hpp"
#include "random.hpp"
#include "testing.hpp"

using bookrag::skyline;
using Rows = std::vector<std::int64_t>;
using Floats = std::vector<float>;

namespace {

Rows by_all_pairs(const Floats& scores, std::size_t d) {
    Rows out;
    const std::size_t n = scores.size() / d;
    for (std::size_t i = 0; i < n; ++i) {
        bool dominated = false;
        for (std::size_t j = 0; j < n && !dominated; ++j) {
            bool as_large = true;
            bool larger = false;
            for (std::size_t c = 0; c < d; ++c) {
                as_large = as_large && scores[j * d + c] >= scores[i * d + c];
                larger = larger || scores[j * d + c] > scores[i * d + c];
            }
            dominated = as_large && larger;
        }
        if (!dominated) out.push_back(static_cast<std::int64_t>(i));
    }
    return out;
}

}  // namespace

TEST(skyline, small_ones_by_hand) {
    CHECK_EQ(skyline(Floats{}, 2), Rows{});
    CHECK_EQ(skyline(Floats{1, 2}, 2), Rows{0});
    CHECK_EQ(skyline(Floats{1, 2, 2, 1, 0, 0, 1, 2}, 2), (Rows{0, 1, 3}));
    CHECK_EQ(skyline(Floats{1, 1, 1, 1, 1, 2}, 3), Rows{1});
    CHECK_EQ(skyline(Floats{0, 0, 0, 0, 0, 0, 0, 0}, 4), (Rows{0, 1}));
    CHECK_EQ(skyline(Floats{0.0F, 1, -0.0F, 1}, 2), (Rows{0, 1}));  // equal points
}

TEST(skyline, agrees_with_all_pairs) {
    testing::Random random(1);
    const float inf = std::numeric_limits<float>::infinity();
    const Floats special{-inf, -1, -0.0F, 0, 1e-45F, 1, std::numeric_limits<float>::max(), inf};
    for (const std::size_t d : {2U, 3U, 4U}) {
        for (int round = 0; round < 400; ++round) {
            Floats scores(static_cast<std::size_t>(random.below(60)) * d);
            for (auto& s : scores) {
                switch (round % 3) {
                    case 0:
                        s = random.unit();
                        break;  // hardly a tie
                    case 1:
                        s = static_cast<float>(random.below(4)) - 1.0F;
                        break;  // mostly ties
                    default:
                        s = special[static_cast<std::size_t>(random.below(8))];
                }
            }
            CHECK_EQ(skyline(scores, static_cast<std::int64_t>(d)), by_all_pairs(scores, d));
        }
    }
}

TEST(skyline, all_on_the_front) {
    for (const std::size_t d : {2U, 3U, 4U}) {
        const std::size_t n = 3000;
        Floats scores(n * d, 0.0F);
        for (std::size_t i = 0; i < n; ++i) {
            scores[i * d] = static_cast<float>(i);
            scores[i * d + d - 1] = static_cast<float>(n - i);
        }
        CHECK_EQ(skyline(scores, static_cast<std::int64_t>(d)).size(), n);
    }
}

// Enough rows for the filters, which are chosen from a sample, and enough on the front for the
// tree.
TEST(skyline, of_many_rows_by_every_instruction_set) {
    testing::Random random(2);
    const auto before = bookrag::isa();
    for (const std::size_t d : {2U, 3U, 4U}) {
        for (const bool opposed : {false, true}) {
            Floats scores = random.units(6000 * d);
            for (std::size_t i = 0; opposed && i < scores.size(); i += d) {
                float rest = 3.0F;
                for (std::size_t c = 1; c < d; ++c) rest -= scores[i + c];
                scores[i] = rest + 0.1F * scores[i];
            }
            const Rows front = by_all_pairs(scores, d);
            for (const auto isa : bookrag::available_isas()) {
                bookrag::force_isa(isa);
                CHECK_EQ(skyline(scores, static_cast<std::int64_t>(d)), front);
            }
        }
    }
    bookrag::force_isa(before);
}

TEST(skyline, refuses_bad_arguments) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS(invalid_argument, skyline(Floats{1, nan}, 2));
    CHECK_THROWS(invalid_argument, skyline(Floats{nan, 1, 1}, 3));
    CHECK_THROWS(invalid_argument, skyline(Floats{1, 1, 1, nan}, 4));
    CHECK_THROWS(invalid_argument, skyline(Floats{1}, 1));
    CHECK_THROWS(invalid_argument, skyline(Floats{}, 0));
    CHECK_THROWS(invalid_argument, skyline(Floats{1, 2, 3, 4, 5}, 5));
    CHECK_THROWS(invalid_argument, skyline(Floats{1, 2, 3}, 2));
}
