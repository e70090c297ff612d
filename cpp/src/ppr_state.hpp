// What a PprWorkspace holds. Not installed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/ppr_workspace.hpp"
#include "ppr_layout.hpp"
#include "ppr_restart.hpp"
#include "ppr_solver.hpp"

namespace bookrag::detail {

// Writes the result of a solver, one score a row.
template <typename T>
void write_scores(const PprLayout& layout, const PprSolver& solver, const PprRestart& restart,
                  std::span<T> scores) {
    const auto place = layout.position_of();
    const double scale = solver.scale();
    const auto write = [&](const auto* values) {
        for (std::size_t r = 0; r < scores.size(); ++r) {
            const double value = static_cast<double>(values[place[r]]) * scale;
            scores[r] = static_cast<T>(value > 0.0 ? value : 0.0);
        }
    };
    if (solver.single()) {
        write(solver.values().data());
    } else {
        write(solver.values64().data());
    }
    for (std::size_t i = 0; i < restart.rows.size(); ++i) {
        if (layout.isolated(restart.rows[i])) {
            scores[static_cast<std::size_t>(restart.rows[i])] =
                static_cast<T>(restart.masses[i] * scale);
        }
    }
}

// Slots of a graph that is being cut out.
struct Cut {
    std::vector<std::int32_t> rows;  // -1: outside
    std::vector<float> weights;
    std::vector<std::int32_t> before;  // these three by 16 slots, see kernels/ppr_build.hpp
    std::vector<std::uint16_t> in;
    std::vector<std::uint16_t> flagged;

    void reserve(std::int32_t slots);
    // Moves the slots that stay to `targets` and `kept`; returns how many they are.
    std::int32_t pack(std::int32_t slots, std::int32_t unflag, std::vector<std::int32_t>& targets,
                      std::vector<float>& kept);
    // Where a slot went, or would have gone.
    [[nodiscard]] std::int32_t moved(std::int32_t slot) const noexcept {
        const auto at = static_cast<std::size_t>(slot) / 16;
        const unsigned lower = (1U << (slot % 16)) - 1;
        return before[at] + std::popcount(in[at] & lower);
    }
    template <typename Visit>
    void each_flagged(std::int32_t slots, Visit visit) const {
        for (std::int32_t first = 0; first < slots; first += 16) {
            unsigned some = flagged[static_cast<std::size_t>(first) / 16];
            for (; some != 0; some &= some - 1) visit(first + std::countr_zero(some));
        }
    }
};

}  // namespace bookrag::detail

namespace bookrag {

struct PprWorkspace::State {
    detail::PprLayout layout;
    detail::PprSolver solver;
    detail::PprRestart restart;
    detail::RestartBuilder builder;
    // The loaded graph: the caller's, or `own_*`.
    std::span<const std::int32_t> begins;
    std::span<const std::int32_t> ends;
    std::span<const std::int32_t> targets;
    std::span<const float> weights;
    std::vector<std::int32_t> own_begins;
    std::vector<std::int32_t> own_ends;
    std::vector<std::int32_t> own_targets;
    std::vector<float> own_weights;
    // Rows of hubs, ascending; see load_induced.
    std::vector<std::int32_t> long_rows;
    struct Slot {
        std::int32_t row;
        std::int32_t target;
        float weight;
    };
    std::vector<Slot> turned;  // slots of long rows
    detail::Cut cut;
    // Row of each entity of the graph that is being cut from, -1: none. All -1 between calls.
    std::vector<std::int32_t> row_of;

    void load() { layout.build(begins, ends, targets, weights); }
};

}  // namespace bookrag
