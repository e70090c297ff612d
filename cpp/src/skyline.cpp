#include "bookrag/skyline.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>

#include "check.hpp"

namespace bookrag {

namespace {

// A float as an unsigned integer of the same order: -inf smallest, +inf largest, -0 equal to +0.
// Integers compare exactly and add up without NaN, which inf - inf would not.
std::uint32_t ordered(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);  // -0 + 0 is +0
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}

template <std::size_t D>
struct Point {
    std::array<std::uint32_t, D> key;  // larger is better
    std::int64_t row;
};

// Copies the rows while checking them, so that later passes see only what was checked.
template <std::size_t D>
std::vector<Point<D>> read_points(std::span<const float> scores) {
    std::vector<Point<D>> points(scores.size() / D);
    for (std::size_t i = 0; i < points.size(); ++i) {
        points[i].row = static_cast<std::int64_t>(i);
        for (std::size_t c = 0; c < D; ++c) {
            const float value = scores[i * D + c];
            if (std::isnan(value)) {
                detail::invalid("scores[" + std::to_string(i) + ", " + std::to_string(c) +
                                "] is NaN, which has no order");
            }
            points[i].key[c] = ordered(value);
        }
    }
    return points;
}

// Best first: nothing later dominates anything earlier.
template <std::size_t D>
void sort_lexicographically(std::vector<Point<D>>& points) {
    std::sort(points.begin(), points.end(), [](const Point<D>& a, const Point<D>& b) {
        return a.key != b.key ? a.key > b.key : a.row < b.row;
    });
}

std::vector<std::int64_t> skyline2(std::span<const float> scores) {
    auto points = read_points<2>(scores);
    sort_lexicographically(points);
    std::vector<std::int64_t> kept;
    // Whoever comes later has no larger first value, so it stays only with a larger second one, or
    // as an equal of the one just kept.
    const Point<2>* last = nullptr;
    for (const auto& p : points) {
        if (last != nullptr && p.key[1] <= last->key[1] && p.key != last->key) continue;
        kept.push_back(p.row);
        last = &p;
    }
    return kept;
}

std::vector<std::int64_t> skyline3(std::span<const float> scores) {
    auto points = read_points<3>(scores);
    sort_lexicographically(points);
    std::vector<std::int64_t> kept;
    // The maxima, in the last two values, of everything seen: second value ascending, third
    // descending. A point at or below one of its steps is dominated, since the first value of
    // everything seen is at least as large, and equal points are dealt with apart.
    std::map<std::uint32_t, std::uint32_t> stairs;
    const Point<3>* last = nullptr;
    for (const auto& p : points) {
        if (last != nullptr && p.key == last->key) {
            kept.push_back(p.row);
            continue;
        }
        const auto [x, y, z] = p.key;
        auto step = stairs.lower_bound(y);  // the highest third value among seconds >= y
        if (step != stairs.end() && step->second >= z) continue;
        kept.push_back(p.row);
        last = &p;
        // The new step hides those at or below it: second value <= y and third <= z.
        auto first = step;
        while (first != stairs.begin() && std::prev(first)->second <= z) --first;
        stairs.insert_or_assign(stairs.erase(first, step), y, z);
    }
    return kept;
}

std::vector<std::int64_t> skyline4(std::span<const float> scores) {
    const auto points = read_points<4>(scores);
    // A dominating point has a strictly larger sum, so with sums descending nothing later dominates
    // anything earlier, and large sums, which dominate most, come first.
    struct Entry {
        std::uint64_t sum;
        std::int64_t row;
    };
    std::vector<Entry> entries(points.size());
    std::transform(points.begin(), points.end(), entries.begin(), [](const Point<4>& p) {
        return Entry{std::accumulate(p.key.begin(), p.key.end(), std::uint64_t{0}), p.row};
    });
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.sum != b.sum ? a.sum > b.sum : a.row < b.row;
    });

    std::vector<std::int64_t> kept;
    std::vector<std::array<std::uint32_t, 4>> window;  // distinct points kept so far
    for (const Entry& entry : entries) {
        const auto& p = points[static_cast<std::size_t>(entry.row)].key;
        bool dominated = false;
        bool repeated = false;
        for (const auto& w : window) {
            if (w[0] >= p[0] && w[1] >= p[1] && w[2] >= p[2] && w[3] >= p[3]) {
                repeated = w == p;
                dominated = !repeated;
                break;  // an equal in the window means that nothing in it dominates
            }
        }
        if (dominated) continue;
        kept.push_back(entry.row);
        if (!repeated) window.push_back(p);
    }
    return kept;
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
    auto kept = d == 2 ? skyline2(scores) : d == 3 ? skyline3(scores) : skyline4(scores);
    std::sort(kept.begin(), kept.end());
    return kept;
}

}  // namespace bookrag
