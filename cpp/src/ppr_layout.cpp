#include "ppr_layout.hpp"

#include <algorithm>
#include <array>

#include "kernels/ppr_build.hpp"
#include "kernels/select.hpp"

namespace bookrag::kernels {
BOOKRAG_SELECT(PprBuildKernels, ppr_build_kernels)
}

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
    row_.assign(idx(padded(rows) + (windows + 4) * kLanes), -1);
    std::int32_t* const position = position_.data();
    std::int32_t* const row = row_.data();
    const std::int32_t* const degree = degree_.data();
    hubs_ = std::ssize(hub_rows_);
    std::copy(hub_rows_.begin(), hub_rows_.end(), row);
    for (std::int64_t h = 0; h < hubs_; ++h) position[row[h]] = static_cast<std::int32_t>(h);
    lonely_.clear();
    std::int64_t next = padded(hubs_);
    for (std::int64_t begin = 0; begin < rows; begin += kWindow) {
        const std::int64_t end = std::min(begin + kWindow, rows);
        std::array<Class, kHub + 1> classes{};
        for (std::int64_t r = begin; r < end; ++r) {
            ++classes[idx(std::min(degree[r], kHub))].rows;
        }
        auto place = static_cast<std::int32_t>(next);
        for (std::int32_t d = kHub - 1; d > 0; --d) {
            Class& c = classes[idx(d)];
            c.first = place;
            c.groups = std::max((c.rows + kLanes - 1) / kLanes, 1);
            c.whole = c.rows / c.groups;
            c.rest = c.rows % c.groups;
            place += c.rows;
        }
        for (std::int64_t r = begin; r < end; ++r) {
            const std::int32_t d = degree[r];
            if (d >= kHub) continue;
            if (d == 0) {
                lonely_.push_back(static_cast<std::int32_t>(r));
                continue;
            }
            const std::int32_t at = classes[idx(d)].next();
            position[r] = at;
            row[at] = static_cast<std::int32_t>(r);
        }
        next = padded(place);
    }
    nowhere_ = static_cast<std::int32_t>(next);
    for (const std::int32_t r : lonely_) position[r] = nowhere_;
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
                      std::span<const std::int32_t> targets, std::span<const float> weights) {
    const auto rows = static_cast<std::int64_t>(begin.size());
    degree_.resize(idx(rows));
    position_.resize(idx(rows));
    hub_rows_.clear();
    for (std::int64_t r = 0; r < rows; ++r) {
        const auto degree = static_cast<std::int32_t>(end[idx(r)] - begin[idx(r)]);
        degree_[idx(r)] = degree;
        if (degree >= kHub) hub_rows_.push_back(static_cast<std::int32_t>(r));
    }
    number_rows(rows);
    plan_groups();

    index_.resize(idx(slots_));
    weight_.resize(idx(slots_));
    // Fills `width` slots of the row at a position, `stride` apart.
    const auto fill = [&](std::int64_t at, std::int64_t slot, std::int64_t width,
                          std::int64_t stride) {
        const std::int32_t row = row_[idx(at)];
        std::int64_t used = 0;
        if (row >= 0) {
            const auto last = idx(end[idx(row)]);
            for (auto s = idx(begin[idx(row)]); s < last; ++s, ++used, slot += stride) {
                index_[idx(slot)] = position_[idx(targets[s])];
                weight_[idx(slot)] = weights[s];
            }
        }
        for (; used < width; ++used, slot += stride) {
            index_[idx(slot)] = 0;
            weight_[idx(slot)] = 0.0F;
        }
    };
    for (std::int64_t h = 0; h < hubs_; ++h) {
        fill(h, hub_slots_[idx(h)], hub_slots_[idx(h) + 1] - hub_slots_[idx(h)], 1);
    }
    for (const auto& run : runs_) {
        std::int64_t slot = run.first_slot;
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            for (std::int64_t lane = 0; lane < kLanes; ++lane) {
                fill(g * kLanes + lane, slot + lane, run.width, kLanes);
            }
            slot += std::int64_t{run.width} * kLanes;
        }
    }

    p_.resize(idx(slots_));
    coupling_.resize(idx(positions_ / kLanes));
    rounding_.resize(idx(positions_));
    strength_.resize(idx(positions_));
    inverse_.resize(idx(positions_));
    // No kernel writes the positions between the hubs and the first group.
    for (std::int64_t at = hubs_; at < padded(hubs_); ++at) {
        rounding_[idx(at)] = 0.0F;
        strength_[idx(at)] = 0.0F;
        inverse_[idx(at)] = 0.0;
    }
    const kernels::PprRows matrix{hubs_,
                                  hub_slots_.data(),
                                  static_cast<std::int64_t>(runs_.size()),
                                  runs_.data(),
                                  index_.data(),
                                  weight_.data(),
                                  inverse_.data(),
                                  p_.data(),
                                  coupling_.data(),
                                  rounding_.data(),
                                  strength_.data()};
    const auto& kernel = kernels::select_ppr_build_kernels();
    kernel.normalise(matrix, kernel.invert(matrix));
}

template void PprLayout::build(std::span<const std::int64_t>, std::span<const std::int64_t>,
                               std::span<const std::int32_t>, std::span<const float>);
template void PprLayout::build(std::span<const std::int32_t>, std::span<const std::int32_t>,
                               std::span<const std::int32_t>, std::span<const float>);

kernels::PprMatrix PprLayout::matrix() const noexcept {
    return {positions_,        hubs_,
            hub_slots_.data(), static_cast<std::int64_t>(runs_.size()),
            runs_.data(),      index_.data(),
            p_.data(),         weight_.data(),
            coupling_.data(),  rounding_.data(),
            strength_.data()};
}

}  // namespace bookrag::detail
