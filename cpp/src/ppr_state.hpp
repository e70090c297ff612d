// What a PprWorkspace holds. Not installed.
#pragma once

#include <algorithm>
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
    std::span<const double> sums;  // of the weights of each row, or empty
    std::span<const std::int32_t> targets;
    std::span<const float> weights;
    std::vector<std::int32_t> own_begins;
    std::vector<std::int32_t> own_ends;
    std::vector<double> own_sums;
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
    // Row of each entity of the graph that is being cut from, -1: none. All -1 between calls.
    std::vector<std::int32_t> row_of;

    void load() { layout.build(begins, ends, targets, weights, sums, false); }

    // Solves for `restart`; the exact weights are laid out only when a tolerance needs them.
    void solve(const PageRankOptions& options, std::int64_t passes, bool exact) {
        for (const bool with_weights : {exact, true}) {
            if (with_weights && !layout.exact()) {
                layout.build(begins, ends, targets, weights, sums, true);
            }
            solver.begin(layout, restart, options.damping, passes);
            if (solver.reach(options.tol, exact)) return;
        }
    }
};

}  // namespace bookrag
