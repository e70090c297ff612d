#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bookrag/dispatch.hpp"
#include "bookrag/similarity.hpp"
#include "digest.hpp"
#include "random.hpp"
#include "testing.hpp"

using namespace bookrag;
using Floats = std::vector<float>;
using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::int64_t>;

namespace {

double cosine(const float* a, const float* b, std::size_t d) {
    double dot = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    for (std::size_t c = 0; c < d; ++c) {
        dot += double{a[c]} * double{b[c]};
        aa += double{a[c]} * double{a[c]};
        bb += double{b[c]} * double{b[c]};
    }
    return aa == 0.0 || bb == 0.0 ? 0.0 : dot / std::sqrt(aa * bb);
}

}  // namespace

TEST(similarity, index_and_scan_agree_with_all_cosines) {
    testing::Random random(3);
    for (const std::size_t d : {1U, 7U, 16U, 50U, 130U}) {
        for (const std::size_t n : {1U, 2U, 3U, 4U, 5U, 100U, 300U}) {
            Floats rows(n * d);
            for (auto& v : rows) v = random.unit() - 0.5F;
            for (std::size_t c = 0; c < d; ++c) rows[c] = n > 50 ? 0.0F : rows[c];
            Floats query(d);
            for (auto& v : query) v = random.unit() - 0.5F;
            const auto size = static_cast<std::int64_t>(n);
            const auto width = static_cast<std::int64_t>(d);
            const VectorIndex index(rows, size, width);
            for (const std::int64_t k : {std::int64_t{1}, std::int64_t{10}, size + 1}) {
                const auto scanned = cosine_topk(query, rows, size, width, k);
                const auto found = index.search(query, k);
                CHECK_EQ(found.ids, scanned.ids);
                CHECK_EQ(found.cosines, scanned.cosines);
                CHECK_EQ(found.k, std::min(k, size));
                std::vector<double> all(n);
                for (std::size_t i = 0; i < n; ++i) all[i] = cosine(query.data(), &rows[i * d], d);
                std::sort(all.begin(), all.end(), std::greater<>());
                for (std::size_t i = 0; i < found.ids.size(); ++i) {
                    CHECK(std::abs(double{found.cosines[i]} - all[i]) < 1e-6);
                }
            }
        }
    }
}

TEST(similarity, index_discards_no_row_by_its_projection) {
    testing::Random random(5);
    constexpr std::int64_t kRows = 2500;
    constexpr std::int64_t kWidth = 130;
    Floats rows(kRows * kWidth);
    for (std::size_t i = 0; i < rows.size(); ++i) {  // a spectrum that falls
        rows[i] = (random.unit() - 0.5F) / static_cast<float>(1 + i % kWidth);
    }
    const Isa before = isa();
    std::vector<testing::Digest> digests;
    for (const Isa one : available_isas()) {
        force_isa(one);
        auto& digest = digests.emplace_back();
        const VectorIndex index(rows, kRows, kWidth);
        for (std::int64_t i = 0; i < 30; ++i) {
            const std::span query(&rows[static_cast<std::size_t>(i * kWidth)], kWidth);
            const auto scanned = cosine_topk(query, rows, kRows, kWidth, 10);
            const auto found = index.search(query, 10);
            CHECK_EQ(found.ids, scanned.ids);
            CHECK_EQ(found.cosines, scanned.cosines);
            CHECK(index.candidates(query, 10) < kRows / 2);
            digest.add(found.ids).add(found.cosines);
        }
    }
    force_isa(before);
    for (const auto& digest : digests) CHECK_EQ(digest.value(), 1592765102812361891U);
}

TEST(similarity, every_instruction_set_gives_the_same_bits) {
    testing::Random random(4);
    const auto rows = random.units(400 * 77, -0.5F);
    const Floats query(rows.begin(), rows.begin() + 77 * 3);
    std::vector<std::uint16_t> halves(400 * 77);  // +-0.5 to 1, and a few subnormal ones
    for (auto& half : halves) {
        const auto bits = static_cast<std::uint32_t>(random.below(0x800));
        const std::uint32_t exponent = bits < 8 ? 0U : 0x3800U;
        half = static_cast<std::uint16_t>((bits & 1U) << 15 | exponent | bits >> 1);
    }
    const Isa before = isa();
    std::vector<Floats> scores;
    std::vector<Neighbours> found;
    std::vector<Neighbours> of_halves;
    for (const Isa one : available_isas()) {
        force_isa(one);
        found.push_back(VectorIndex(rows, 400, 77).search({query.data(), 77}, 9));
        found.push_back(cosine_topk({query.data(), 77}, rows, 400, 77, 9));
        of_halves.push_back(cosine_topk({query.data(), 77}, halves, 400, 77, 9));
        scores.push_back(maxsim(query, rows, 77, Offsets{0, 0, 13, 400}));
    }
    force_isa(before);
    for (const auto& one : found) {
        CHECK_EQ(one.ids, found.front().ids);
        CHECK_EQ(one.cosines, found.front().cosines);
    }
    for (const auto& one : of_halves) {
        CHECK_EQ(one.ids, of_halves.front().ids);
        CHECK_EQ(one.cosines, of_halves.front().cosines);
    }
    for (const auto& one : scores) CHECK_EQ(one, scores.front());
    testing::Digest digest;
    digest.add(found.front().ids).add(found.front().cosines).add(scores.front());
    digest.add(of_halves.front().ids).add(of_halves.front().cosines);
    CHECK_EQ(digest.value(), 6780832532348315029U);
}

TEST(similarity, maxsim_by_hand) {
    const Floats query{1, 0, 0, 1};
    const Floats tokens{2, 1, 0, 3, -1, -1};
    CHECK_EQ(maxsim(query, tokens, 2, Offsets{0, 2, 2, 3}),
             (Floats{5, -std::numeric_limits<float>::infinity(), -2}));
    CHECK_EQ(maxsim(Floats{}, tokens, 2, Offsets{0, 2, 2, 3}), (Floats{0, 0, 0}));
    CHECK_EQ(maxsim(query, Floats{}, 2, Offsets{0}), Floats{});
}

TEST(similarity, refuses_bad_arguments) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Floats two{1, 2};
    CHECK_THROWS(invalid_argument, VectorIndex(Floats{1, nan}, 1, 2));
    CHECK_THROWS(invalid_argument, VectorIndex(two, 2, 2));
    CHECK_THROWS(invalid_argument, VectorIndex(two, 1, 0));
    CHECK_THROWS(too_large, VectorIndex(two, 1, kMaxDimensions + 1));
    CHECK_THROWS(invalid_argument, VectorIndex(two, -1, 2));
    CHECK_THROWS(invalid_argument, VectorIndex(two, 1, 2).search(two, 0));
    CHECK_THROWS(invalid_argument, VectorIndex(two, 1, 2).search(Floats{1}, 1));
    CHECK_THROWS(invalid_argument, cosine_topk(Floats{1}, two, 1, 2, 1));
    CHECK_THROWS(invalid_argument, cosine_topk(Floats{nan, 1}, two, 1, 2, 1));
    CHECK_THROWS(invalid_argument, maxsim(two, two, 2, Offsets{}));
    CHECK_THROWS(invalid_argument, maxsim(two, two, 2, Offsets{0, 2}));
    CHECK_THROWS(invalid_argument, maxsim(two, two, 2, Offsets{0, 1, 0, 1}));
    CHECK_THROWS(invalid_argument, maxsim(two, Floats{nan, 1}, 2, Offsets{0, 1}));
    CHECK_THROWS(invalid_argument, maxsim(two, two, 0, Offsets{0}));
}
