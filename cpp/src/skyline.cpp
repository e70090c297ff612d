#include "bookrag/skyline.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "check.hpp"
#include "kernels/skyline.hpp"
#include "sorting.hpp"

namespace bookrag {

namespace kernels {
BOOKRAG_SELECT(SkylineKernels, skyline_kernels)
}

namespace {

using detail::room_for;
using Rows = std::span<std::int32_t>;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// A float as an unsigned integer of the same order: -inf smallest, +inf largest, -0 equal to +0.
// Integers compare exactly and add up without NaN, which inf - inf would not.
std::uint32_t ordered(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);  // -0 + 0 is +0
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}

// What the steps below share: the scores and where they are.
struct Input {
    const float* scores;
    std::int64_t n;
    std::int32_t d;
    const kernels::SkylineKernels& kernel;

    [[nodiscard]] const float* row(std::int64_t i) const noexcept { return scores + i * d; }
};

[[noreturn]] void refuse_nan(const Input& in) {
    for (std::int64_t i = 0; i < in.n; ++i) {
        for (std::int64_t c = 0; c < in.d; ++c) {
            if (std::isnan(in.row(i)[c])) {
                detail::invalid("scores[" + std::to_string(i) + ", " + std::to_string(c) +
                                "] is NaN, which has no order");
            }
        }
    }
    detail::invalid("scores held a NaN, but was changed by another thread");
}

std::vector<std::int64_t> ascending(Rows rows, std::int64_t n) {
    std::vector<std::int64_t> out(rows.size());
    if (rows.size() < idx(n) / 64) {
        std::sort(rows.begin(), rows.end());
        std::copy(rows.begin(), rows.end(), out.begin());
        return out;
    }
    std::vector<std::uint64_t> marks(idx(n) / 64 + 1);  // many: a bit a row is faster than sorting
    for (const auto row : rows) marks[idx(row) / 64] |= std::uint64_t{1} << (row % 64);
    auto to = out.begin();
    for (std::size_t word = 0; word < marks.size(); ++word) {
        for (auto left = marks[word]; left != 0; left &= left - 1) {
            *to++ = static_cast<std::int64_t>(word * 64) + std::countr_zero(left);
        }
    }
    return out;
}

// ---------------------------------------------------------------- d = 2

// Drops rows that lose to a row of a higher bucket, the first value being cut into buckets: those
// whose second value is no larger than the best of all buckets above. Linear, and on
// anti-correlated points leaves little to sort.
Rows discard_by_buckets(const Input& in, Rows rows) {
    constexpr std::size_t kBuckets = 4096;
    float low = std::numeric_limits<float>::max();
    float high = std::numeric_limits<float>::lowest();
    for (const auto r : rows) {
        const float x = in.row(r)[0];
        if (!std::isfinite(x)) continue;
        low = std::min(low, x);
        high = std::max(high, x);
    }
    // Halves, since the difference of two floats may be no float. Every step is monotone in x, so
    // that a higher bucket means a larger x.
    const float scale = static_cast<float>(kBuckets - 1) / (high * 0.5F - low * 0.5F);
    if (!(high > low) || !std::isfinite(scale)) return rows;
    const auto bucket = [&](float x) {
        const float place = (x * 0.5F - low * 0.5F) * scale;
        if (!(place > 0.0F)) return std::size_t{0};  // -inf
        return place < static_cast<float>(kBuckets - 1) ? static_cast<std::size_t>(place)
                                                        : kBuckets - 1;
    };
    std::vector<float> above(kBuckets + 1, -std::numeric_limits<float>::infinity());
    for (const auto r : rows) {
        auto& best = above[bucket(in.row(r)[0])];
        best = std::max(best, in.row(r)[1]);
    }
    // above[b]: the best of the buckets after b. An empty bucket counts as -inf, which a row of
    // -inf does not lose to unless some row is really there: leave those to the sweep.
    float best = above[kBuckets];
    for (std::size_t b = kBuckets; b-- > 0;) {
        const float here = above[b];
        above[b] = best;
        best = std::max(best, here);
    }
    const auto last = std::remove_if(rows.begin(), rows.end(), [&](std::int32_t r) {
        const float rival = above[bucket(in.row(r)[0])];
        return in.row(r)[1] <= rival && rival > -std::numeric_limits<float>::infinity();
    });
    return rows.first(static_cast<std::size_t>(last - rows.begin()));
}

// Rows with the first value descending; the second decides among equals only for the few.
void sort_by_first_value(const Input& in, Rows rows) {
    constexpr std::size_t kFew = 400;  // below this, clearing the digits' counts costs more
    const auto words = room_for<std::uint64_t>(rows.size());
    const std::span all(words.get(), rows.size());
    std::transform(rows.begin(), rows.end(), all.begin(), [&](std::int32_t r) {
        return std::uint64_t{~ordered(in.row(r)[0])} << 32 | static_cast<std::uint32_t>(r);
    });
    if (rows.size() < kFew) {
        std::sort(all.begin(), all.end());
    } else {
        const auto scratch = room_for<std::uint64_t>(rows.size());
        detail::sort_by_upper_half(all, {scratch.get(), rows.size()});
    }
    std::transform(all.begin(), all.end(), rows.begin(), [](std::uint64_t word) {
        return static_cast<std::int32_t>(word & 0xFFFFFFFFU);
    });
}

Rows skyline2(const Input& in, Rows rows) {
    constexpr std::size_t kMany = 1024;
    if (rows.size() > kMany) rows = discard_by_buckets(in, rows);
    sort_by_first_value(in, rows);
    // From the largest first value down: of those that share one, the largest second value stays if
    // nothing before reached it.
    std::size_t kept = 0;
    float best = 0.0F;
    for (std::size_t i = 0; i < rows.size();) {
        const float x = in.row(rows[i])[0];
        float most = in.row(rows[i])[1];
        std::size_t end = i + 1;
        for (; end < rows.size() && in.row(rows[end])[0] == x; ++end) {
            most = std::max(most, in.row(rows[end])[1]);
        }
        if (i == 0 || most > best) {
            for (std::size_t j = i; j < end; ++j) {
                if (in.row(rows[j])[1] == most) rows[kept++] = rows[j];
            }
            best = most;
        }
        i = end;
    }
    return rows.first(kept);
}

// ---------------------------------------------------------------- d = 3, 4

// Positions 0 .. m - 1 of `points` (rows of d), sums descending. Sums of ordered integers: exact,
// so that a dominating point comes strictly earlier. Not for more than 2^16 points.
std::vector<std::uint64_t> by_sum(const float* points, std::size_t m, std::int32_t d) {
    std::vector<std::uint64_t> order(m);
    for (std::size_t i = 0; i < m; ++i) {
        std::uint64_t sum = 0;
        for (std::int32_t c = 0; c < d; ++c) sum += ordered(points[i * idx(d) + idx(c)]);
        order[i] = ~(sum << 16) - i;  // complement: ascending order is descending sums
    }
    std::sort(order.begin(), order.end());
    for (auto& word : order) word = ~word & 0xFFFF;
    return order;
}

// Few points: sort, then filter against what was kept.
Rows sort_filter(const Input& in, Rows rows) {
    const std::size_t d = idx(in.d);
    const std::size_t m = rows.size();
    const auto points = room_for<float>(m * d);
    for (std::size_t i = 0; i < m; ++i) std::copy_n(in.row(rows[i]), d, &points[i * d]);
    const auto order = by_sum(points.get(), m, in.d);
    const auto sorted = room_for<float>(m * d);
    const auto sorted_rows = room_for<std::int32_t>(m);
    for (std::size_t i = 0; i < m; ++i) {
        std::copy_n(&points[order[i] * d], d, &sorted[i * d]);
        sorted_rows[i] = rows[order[i]];
    }
    const auto window = room_for<float>((m + 15) * d);
    const auto kept = room_for<std::int32_t>(m);
    const auto size = idx(in.kernel.sort_filter(sorted.get(), static_cast<std::int64_t>(m), in.d,
                                                window.get(), kept.get()));
    for (std::size_t i = 0; i < size; ++i) rows[i] = sorted_rows[idx(kept[i])];
    return rows.first(size);
}

// Points near each other next to each other: a Z-order curve over the values' ranges.
void sort_along_curve(const Input& in, Rows rows) {
    const std::int32_t bits = in.d == 3 ? 10 : 8;
    const float cells = static_cast<float>(1 << bits);
    float low[4];
    float scale[4];
    for (std::int32_t c = 0; c < in.d; ++c) {
        float least = std::numeric_limits<float>::max();
        float most = std::numeric_limits<float>::lowest();
        for (const auto r : rows) {
            const float value = in.row(r)[c];
            if (!std::isfinite(value)) continue;
            least = std::min(least, value);
            most = std::max(most, value);
        }
        low[c] = least * 0.5F;
        scale[c] = most > least ? cells / (most * 0.5F - low[c]) : 0.0F;
    }
    const auto words = room_for<std::uint64_t>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::uint32_t code = 0;
        for (std::int32_t c = 0; c < in.d; ++c) {
            const float place = (in.row(rows[i])[c] * 0.5F - low[c]) * scale[c];
            // Neither an infinity nor a NaN reaches the conversion.
            const auto cell = !(place > 0.0F)        ? 0U
                              : place < cells - 1.0F ? static_cast<std::uint32_t>(place)
                                                     : static_cast<std::uint32_t>(cells) - 1U;
            for (std::int32_t b = 0; b < bits; ++b) {
                code |= (cell >> b & 1U) << (b * in.d + c);
            }
        }
        words[i] = std::uint64_t{code} << 32 | static_cast<std::uint32_t>(rows[i]);
    }
    const auto scratch = room_for<std::uint64_t>(rows.size());
    detail::sort_by_upper_half({words.get(), rows.size()}, {scratch.get(), rows.size()});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<std::int32_t>(words[i] & 0xFFFFFFFFU);
    }
}

// Many points: a tree of boxes over all of them, asked for each whether anything dominates it. Only
// boxes whose upper corner dominates the point are opened: on a front, its neighbours.
Rows tree_filter(const Input& in, Rows rows) {
    sort_along_curve(in, rows);
    const auto d = in.d;
    const auto m = static_cast<std::int64_t>(rows.size());
    kernels::DominanceTree tree{};
    std::vector<std::unique_ptr<float[]>> levels;
    std::int64_t groups = (m + 15) / 16;
    levels.push_back(room_for<float>(idx(groups * 16 * d)));
    float* leaf = levels[0].get();
    for (std::int64_t i = 0; i < groups * 16; ++i) {
        for (std::int32_t c = 0; c < d; ++c) {
            // What fills up the last block is dominated by all and dominates nothing.
            leaf[(i / 16 * d + c) * 16 + i % 16] =
                i < m ? in.row(rows[idx(i)])[c] : -std::numeric_limits<float>::infinity();
        }
    }
    tree.groups[tree.levels++] = leaf;
    while (groups > 1) {
        const std::int64_t above = (groups + 15) / 16;
        levels.push_back(room_for<float>(idx(above * 16 * d)));
        in.kernel.next_level(tree.groups[tree.levels - 1], groups, d, levels.back().get());
        tree.groups[tree.levels++] = levels.back().get();
        groups = above;
    }
    const auto kept = room_for<std::int32_t>(rows.size());
    const auto size = idx(in.kernel.undominated(&tree, m, d, kept.get()));
    for (std::size_t i = 0; i < size; ++i) rows[i] = rows[idx(kept[i])];  // kept[i] >= i
    return rows.first(size);
}

// Rows of a sample that dominate most of it, greedily: each next one for what it adds.
std::vector<float> choose_filters(const Input& in) {
    constexpr std::size_t kCandidates = 128;
    constexpr std::size_t kFilters = 48;
    const std::size_t d = idx(in.d);
    const std::size_t blocks = std::clamp<std::size_t>(idx(in.n) / 256, 16, 64);
    const std::size_t s = blocks * 16;
    std::vector<float> sample(s * d);
    for (std::size_t i = 0; i < s; ++i) {
        std::copy_n(in.row(static_cast<std::int64_t>(i) * in.n / static_cast<std::int64_t>(s)), d,
                    &sample[i * d]);
    }
    const auto order = by_sum(sample.data(), s, in.d);
    std::vector<float> points(std::min(s, kCandidates) * d);
    for (std::size_t i = 0; i < points.size() / d; ++i) {
        std::copy_n(&sample[order[i] * d], d, &points[i * d]);
    }
    std::vector<float> columns(s * d);
    for (std::size_t i = 0; i < s; ++i) {
        for (std::size_t c = 0; c < d; ++c) {
            columns[(i / 16 * d + c) * 16 + i % 16] = sample[i * d + c];
        }
    }
    const std::size_t count = points.size() / d;
    std::vector<std::uint16_t> bits(count * blocks);
    in.kernel.coverage(columns.data(), static_cast<std::int32_t>(blocks), in.d, points.data(),
                       static_cast<std::int32_t>(count), bits.data());
    std::vector<std::uint16_t> left(blocks, 0xFFFF);
    std::vector<float> chosen;
    while (chosen.size() < kFilters * d) {
        std::size_t most = 0;
        std::size_t which = 0;
        for (std::size_t p = 0; p < count; ++p) {
            std::size_t gain = 0;
            for (std::size_t b = 0; b < blocks; ++b) {
                gain +=
                    idx(std::popcount(static_cast<std::uint16_t>(bits[p * blocks + b] & left[b])));
            }
            if (gain > most) {
                most = gain;
                which = p;
            }
        }
        // One that discards less than this costs more, over all rows, than it saves later.
        if (most * 256 < s) break;
        for (std::size_t b = 0; b < blocks; ++b) {
            left[b] = static_cast<std::uint16_t>(left[b] & ~bits[which * blocks + b]);
        }
        chosen.insert(chosen.end(), &points[which * d], &points[which * d] + d);
    }
    return chosen;
}

}  // namespace

std::vector<std::int64_t> skyline(std::span<const float> scores, std::int64_t d) {
    if (d < 2 || d > 4) {
        detail::invalid("scores has " + std::to_string(d) +
                        " columns, but a skyline takes 2, 3 or 4");
    }
    if (scores.size() % static_cast<std::size_t>(d) != 0) {
        detail::invalid("scores has " + std::to_string(scores.size()) +
                        " values, which do not fill rows of " + std::to_string(d));
    }
    const std::int64_t n = std::ssize(scores) / d;
    detail::check_count(n, kMaxSkylineRows, "number of rows");
    if (n == 0) return {};
    const Input in{scores.data(), n, static_cast<std::int32_t>(d),
                   kernels::select_skyline_kernels()};

    std::int64_t best = 0;
    if (in.kernel.find_nan(in.scores, n, in.d, &best)) refuse_nan(in);
    constexpr std::int64_t kSampled = 4096;  // fewer rows do not repay the choice of filters
    std::vector<float> filters;
    if (d > 2 && n >= kSampled) filters = choose_filters(in);
    if (filters.empty()) filters.assign(in.row(best), in.row(best) + d);
    const auto kept = room_for<std::int32_t>(idx(n) + 15);
    const auto m =
        in.kernel.discard(in.scores, n, in.d, filters.data(),
                          static_cast<std::int32_t>(std::ssize(filters) / d), kept.get());
    const Rows rows(kept.get(), idx(m));
    constexpr std::size_t kFew = 2048;  // where the tree begins to win
    return ascending(d == 2                ? skyline2(in, rows)
                     : rows.size() <= kFew ? sort_filter(in, rows)
                                           : tree_filter(in, rows),
                     n);
}

}  // namespace bookrag
