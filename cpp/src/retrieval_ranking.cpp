#include "retrieval_ranking.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "sorting.hpp"

namespace bookrag::detail {

namespace {

constexpr std::size_t kFewToSort = 256;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// Ascending words are descending scores, ties by ascending id. -0 equals +0.
std::uint64_t word(float score, NodeId node) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
    const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
    return std::uint64_t{~ascending} << 32 | static_cast<std::uint32_t>(node);
}

NodeId node_of(std::uint64_t word) noexcept {
    return static_cast<NodeId>(static_cast<std::uint32_t>(word));
}

}  // namespace

void Ranking::reserve(std::size_t nodes) {
    keys_.reserve(nodes);
    swap_.reserve(nodes);
    best_[0].reserve(nodes);
    best_[1].reserve(nodes);
    left_.reserve(nodes);
    chosen_.reserve(nodes);
    is_chosen_.resize(nodes, 0);
}

// Nodes of the skyline into chosen_, in no order.
void Ranking::front(std::span<const NodeId> candidates, std::span<const float> first,
                    std::span<const float> second) {
    chosen_.clear();
    if (candidates.empty()) return;
    if (second.empty()) {
        float best = std::numeric_limits<float>::lowest();
        for (const auto v : candidates) best = std::max(best, first[idx(v)]);
        for (const auto v : candidates) {
            if (first[idx(v)] == best) chosen_.push_back(v);
        }
        return;
    }
    // Three strong rows (best by each score, and by their sum on a common scale) beat nearly
    // everything: LESS (Godfrey, Shipley, Gryz, VLDB 2005). What they leave is sorted and swept.
    NodeId by_first = candidates[0];
    NodeId by_second = candidates[0];
    float low_first = first[idx(by_first)];
    float low_second = second[idx(by_second)];
    const auto better = [](float a, float b, float tie_a, float tie_b) {
        return a > b || (a == b && tie_a > tie_b);
    };
    for (const auto v : candidates) {
        const float a = first[idx(v)];
        const float b = second[idx(v)];
        if (better(a, first[idx(by_first)], b, second[idx(by_first)])) by_first = v;
        if (better(b, second[idx(by_second)], a, first[idx(by_second)])) by_second = v;
        low_first = std::min(low_first, a);
        low_second = std::min(low_second, b);
    }
    // In float64: the difference of two floats may be no float.
    const double range_first = double{first[idx(by_first)]} - low_first;
    const double range_second = double{second[idx(by_second)]} - low_second;
    const double scale_first = range_first > 0 ? 1.0 / range_first : 0.0;
    const double scale_second = range_second > 0 ? 1.0 / range_second : 0.0;
    NodeId by_sum = candidates[0];
    double most = -1.0;
    for (const auto v : candidates) {
        const double sum = (double{first[idx(v)]} - low_first) * scale_first +
                           (double{second[idx(v)]} - low_second) * scale_second;
        if (sum > most) {
            most = sum;
            by_sum = v;
        }
    }
    const std::array<NodeId, 3> strong{by_first, by_second, by_sum};
    left_.resize(candidates.size());
    std::size_t count = 0;
    for (const auto v : candidates) {
        const float a = first[idx(v)];
        const float b = second[idx(v)];
        bool beaten = false;
        for (const auto s : strong) {
            const float x = first[idx(s)];
            const float y = second[idx(s)];
            beaten |= (x >= a) & (y >= b) & ((x > a) | (y > b));
        }
        left_[count] = v;
        count += beaten ? 0 : 1;
    }
    left_.resize(count);
    std::sort(left_.begin(), left_.end(), [&](NodeId v, NodeId w) {
        const float a = first[idx(v)];
        const float b = first[idx(w)];
        if (a != b) return a > b;
        const float c = second[idx(v)];
        const float d = second[idx(w)];
        return c != d ? c > d : v < w;
    });
    // Among equals on the first score only the best by the second stay, and only where they are
    // better than everything with a larger first score.
    float above = 0.0F;
    for (std::size_t i = 0; i < left_.size();) {
        const float a = first[idx(left_[i])];
        const float b = second[idx(left_[i])];
        const bool stays = i == 0 || b > above;
        std::size_t j = i;
        for (; j < left_.size() && first[idx(left_[j])] == a; ++j) {
            if (stays && second[idx(left_[j])] == b) chosen_.push_back(left_[j]);
        }
        above = i == 0 ? b : std::max(above, b);
        i = j;
    }
}

// The best by each score in turn into chosen_, until it holds `minimum`.
void Ranking::fill_up(std::span<const NodeId> candidates, std::span<const float> first,
                      std::span<const float> second, std::size_t minimum) {
    const std::size_t count = std::min(minimum, candidates.size());
    const std::size_t orders = second.empty() ? 1 : 2;
    for (std::size_t o = 0; o < orders; ++o) {
        auto& best = best_[o];
        best.resize(candidates.size());
        const auto score = o == 0 ? first : second;
        for (std::size_t i = 0; i < best.size(); ++i) {
            best[i] = word(score[idx(candidates[i])], candidates[i]);
        }
        // A heap of `count` suits a few; many are parted from the rest first.
        const auto end = best.begin() + static_cast<std::ptrdiff_t>(count);
        if (count > kFewToSort) {
            if (end != best.end()) std::nth_element(best.begin(), end, best.end());
            std::sort(best.begin(), end);
        } else {
            std::partial_sort(best.begin(), end, best.end());
        }
    }
    for (const auto v : chosen_) is_chosen_[idx(v)] = 1;
    for (std::size_t place = 0; place < count; ++place) {
        for (std::size_t o = 0; o < orders && chosen_.size() < count; ++o) {
            const NodeId v = node_of(best_[o][place]);
            if (is_chosen_[idx(v)] == 0) chosen_.push_back(v);
            is_chosen_[idx(v)] = 1;
        }
    }
    for (const auto v : chosen_) is_chosen_[idx(v)] = 0;
}

void Ranking::skyline(std::span<const NodeId> candidates, std::span<const float> first,
                      std::span<const float> second, std::size_t minimum, std::vector<NodeId>& kept,
                      std::vector<NodeId>& rest) {
    front(candidates, first, second);
    if (chosen_.size() < std::min(minimum, candidates.size())) {
        fill_up(candidates, first, second, minimum);
    }
    std::sort(chosen_.begin(), chosen_.end());
    kept.assign(chosen_.begin(), chosen_.end());
    rest.resize(candidates.size());
    std::size_t count = 0;
    auto next = kept.begin();
    for (const auto v : candidates) {
        if (next != kept.end() && *next == v) {
            ++next;
        } else {
            rest[count++] = v;
        }
    }
    rest.resize(count);
}

void Ranking::append_by(std::span<const NodeId> nodes, std::span<const float> score,
                        std::size_t at_most, std::vector<NodeId>& out) {
    const std::size_t wanted = std::min(at_most, nodes.size());
    if (wanted == 0) return;
    keys_.resize(nodes.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = word(score[idx(nodes[i])], nodes[i]);
    const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(wanted);
    if (wanted < nodes.size() / 8) {
        std::nth_element(keys_.begin(), end, keys_.end());
        std::sort(keys_.begin(), end);
    } else if (nodes.size() < kFewToSort) {
        std::sort(keys_.begin(), keys_.end());
    } else {
        swap_.resize(keys_.size());
        sort_by_upper_half(keys_, swap_);  // stable, and ids ascend
    }
    for (auto key = keys_.begin(); key != end; ++key) out.push_back(node_of(*key));
}

}  // namespace bookrag::detail
