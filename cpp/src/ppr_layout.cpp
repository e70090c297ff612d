#include "ppr_layout.hpp"

#include <algorithm>
#include <cmath>

namespace bookrag::detail {

namespace {

using kernels::kLanes;

// A row this long is a hub: its own slots fill vectors with less padding than a group would have.
constexpr std::int32_t kHub = 64;
// Rows are sorted by degree within windows of this many, so that entities that were numbered
// together stay in the nearest cache together (5e4 entities: 0.26 ns a slot, against 0.30 with one
// window of 32768); smaller windows only pad more.
constexpr std::int64_t kWindow = 4096;
std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

std::int64_t padded(std::int64_t count) noexcept {
    return (count + kLanes - 1) / kLanes * kLanes;
}

}  // namespace

// Positions: hubs in row order; then, window by window, the other rows by descending degree. Each
// window begins a group. A last group holds no row. Rows of one degree are dealt out to their
// groups like cards: entities that were numbered together are related more often than others, and a
// sweep converges faster if the rows of a group are not (20 sweeps instead of 27 at 1e3 entities,
// damping 0.85, 1e-6).
void PprLayout::number_rows(std::int64_t rows) {
    const std::int64_t windows = (rows + kWindow - 1) / kWindow;
    position_.resize(idx(rows));
    row_.assign(idx(padded(rows) + (windows + 4) * kLanes), -1);
    hubs_ = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        if (degree_[idx(r)] < kHub) continue;
        row_[idx(hubs_)] = static_cast<std::int32_t>(r);
        position_[idx(r)] = static_cast<std::int32_t>(hubs_++);
    }
    std::int64_t next = padded(hubs_);
    for (std::int64_t begin = 0; begin < rows; begin += kWindow) {
        const std::int64_t end = std::min(begin + kWindow, rows);
        classes_.assign(kHub, {});
        for (std::int64_t r = begin; r < end; ++r) {
            if (degree_[idx(r)] < kHub) ++classes_[idx(degree_[idx(r)])].rows;
        }
        auto place = static_cast<std::int32_t>(next);
        for (std::int32_t d = kHub - 1; d > 0; --d) {
            Class& c = classes_[idx(d)];
            c.first = place;
            c.groups = std::max((c.rows + kLanes - 1) / kLanes, 1);
            c.whole = c.rows / c.groups;
            c.rest = c.rows % c.groups;
            place += c.rows;
        }
        for (std::int64_t r = begin; r < end; ++r) {
            const std::int32_t d = degree_[idx(r)];
            if (d == 0 || d >= kHub) continue;
            const std::int32_t at = classes_[idx(d)].next();
            position_[idx(r)] = at;
            row_[idx(at)] = static_cast<std::int32_t>(r);
        }
        next = padded(place);
    }
    nowhere_ = static_cast<std::int32_t>(next);
    for (std::int64_t r = 0; r < rows; ++r) {
        if (degree_[idx(r)] == 0) position_[idx(r)] = nowhere_;
    }
    positions_ = next + kLanes;
}

void PprLayout::plan_groups() {
    hub_slots_.assign(1, 0);
    for (std::int64_t h = 0; h < hubs_; ++h) {
        hub_slots_.push_back(hub_slots_.back() + padded(degree_[idx(row_[idx(h)])]));
    }
    slots_ = hub_slots_.back();
    runs_.clear();
    for (std::int64_t g = padded(hubs_) / kLanes; g < positions_ / kLanes; ++g) {
        const std::int32_t widest = row_[idx(g * kLanes)];  // rows of a group descend by degree
        const std::int32_t width = widest < 0 ? 0 : degree_[idx(widest)];
        if (runs_.empty() || runs_.back().width != width) {
            runs_.push_back({slots_, static_cast<std::int32_t>(g), 0, width});
        }
        ++runs_.back().groups;
        slots_ += std::int64_t{width} * kLanes;
    }
}

template <typename Offset>
void PprLayout::build(std::span<const Offset> begin, std::span<const Offset> end,
                      std::span<const std::int32_t> targets, std::span<const float> weights,
                      std::span<const double> sums, bool with_weights) {
    const auto rows = static_cast<std::int64_t>(begin.size());
    degree_.resize(idx(rows));
    inverse_row_.resize(idx(rows));
    for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        if (!sums.empty()) {
            sum = sums[idx(r)];
        } else {
            for (auto s = idx(begin[idx(r)]); s < idx(end[idx(r)]); ++s) sum += double{weights[s]};
        }
        degree_[idx(r)] = static_cast<std::int32_t>(end[idx(r)] - begin[idx(r)]);
        inverse_row_[idx(r)] = sum > 0.0 ? 1.0 / sum : 0.0;
    }
    number_rows(rows);
    plan_groups();

    index_.resize(idx(slots_));
    p_.resize(idx(slots_));
    weight_.resize(with_weights ? idx(slots_) : 0);
    coupling_.assign(idx(positions_ / kLanes), 0.0F);
    rounding_.resize(idx(positions_));

    // Fills `width` slots of the row at a position, `stride` apart, and returns the weight that
    // stays in the row's group.
    const auto fill = [&](std::int64_t at, std::int64_t slot, std::int64_t width,
                          std::int64_t stride) {
        const std::int32_t row = row_[idx(at)];
        double inside = 0.0;
        double moved = 0.0;
        std::int64_t used = 0;
        if (row >= 0) {
            const auto last = idx(end[idx(row)]);
            for (auto s = idx(begin[idx(row)]); s < last; ++s, ++used, slot += stride) {
                const std::int32_t column = position_[idx(targets[s])];
                if (column / kLanes == at / kLanes) inside += double{weights[s]};
                index_[idx(slot)] = column;
                p_[idx(slot)] =
                    static_cast<float>(double{weights[s]} * inverse_row_[idx(targets[s])]);
                if (with_weights) weight_[idx(slot)] = weights[s];
                // The row's own column has the same weights, and is rounded like this elsewhere.
                const double exact = double{weights[s]} * inverse_row_[idx(row)];
                moved += std::abs(double{static_cast<float>(exact)} - exact);
            }
        }
        for (; used < width; ++used, slot += stride) {
            index_[idx(slot)] = 0;
            p_[idx(slot)] = 0.0F;
            if (with_weights) weight_[idx(slot)] = 0.0F;
        }
        rounding_[idx(at)] = static_cast<float>(moved * 1.000001);
        return row < 0 ? 0.0 : inside * inverse_row_[idx(row)];
    };
    for (std::int64_t h = 0; h < hubs_; ++h) {
        fill(h, hub_slots_[idx(h)], hub_slots_[idx(h) + 1] - hub_slots_[idx(h)], 1);
    }
    for (const auto& run : runs_) {
        std::int64_t slot = run.first_slot;
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            double most = 0.0;
            for (std::int64_t lane = 0; lane < kLanes; ++lane) {
                most = std::max(most, fill(g * kLanes + lane, slot + lane, run.width, kLanes));
            }
            coupling_[idx(g)] = static_cast<float>(most);
            slot += std::int64_t{run.width} * kLanes;
        }
    }
    inverse_.resize(with_weights ? idx(positions_) : 0);
    if (with_weights) {
        for (std::int64_t at = 0; at < positions_; ++at) {
            const std::int32_t row = row_[idx(at)];
            inverse_[idx(at)] = row < 0 ? 0.0 : inverse_row_[idx(row)];
        }
    }
}

template void PprLayout::build(std::span<const std::int64_t>, std::span<const std::int64_t>,
                               std::span<const std::int32_t>, std::span<const float>,
                               std::span<const double>, bool);
template void PprLayout::build(std::span<const std::int32_t>, std::span<const std::int32_t>,
                               std::span<const std::int32_t>, std::span<const float>,
                               std::span<const double>, bool);

kernels::PprMatrix PprLayout::matrix() const noexcept {
    return {positions_,        hubs_,
            hub_slots_.data(), static_cast<std::int64_t>(runs_.size()),
            runs_.data(),      index_.data(),
            p_.data(),         weight_.empty() ? nullptr : weight_.data(),
            coupling_.data(),  rounding_.data()};
}

}  // namespace bookrag::detail
