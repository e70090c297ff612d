#include "bookrag/ppr_workspace.hpp"

#include <string>

#include "check.hpp"
#include "ppr_state.hpp"

namespace bookrag {

namespace {

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

template <typename State, typename T>
void solve_into(State& state, std::span<const std::int32_t> seeds, std::span<const float> weights,
                const PageRankOptions& options, std::span<T> scores) {
    const auto rows =
        static_cast<std::int32_t>(state.offsets.empty() ? 0 : state.offsets.size() - 1);
    if (std::ssize(scores) != rows) {
        detail::invalid("scores has room for " + std::to_string(scores.size()) + " values, but " +
                        detail::known(rows, "rows"));
    }
    const std::int64_t passes = detail::max_passes(options);
    detail::check_seeds(rows, seeds, weights);
    state.builder.clear();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        state.builder.add(seeds[i], weights.empty() ? 1.0 : double{weights[i]});
    }
    (void)state.builder.finish(state.restart);
    state.solve(options, passes, sizeof(T) == sizeof(double));
    detail::write_scores(state.layout, state.solver, state.restart, scores);
}

}  // namespace

PprWorkspace::PprWorkspace() : state_(std::make_unique<State>()) {}
PprWorkspace::~PprWorkspace() = default;
PprWorkspace::PprWorkspace(PprWorkspace&&) noexcept = default;
PprWorkspace& PprWorkspace::operator=(PprWorkspace&&) noexcept = default;

void PprWorkspace::load(std::span<const std::int32_t> offsets,
                        std::span<const std::int32_t> targets, std::span<const float> weights) {
    state_->load(offsets, targets, weights);
}

void PprWorkspace::load_induced(const KnowledgeGraph& graph, std::span<const EntityId> entities) {
    State& s = *state_;
    const CsrView rows = graph.adjacency();
    const auto weights = graph.weights();
    if (s.row_of.size() < idx(graph.num_entities())) s.row_of.resize(idx(graph.num_entities()), -1);
    std::int64_t slots = 0;
    for (std::size_t i = 0; i < entities.size(); ++i) {
        s.row_of[idx(entities[i])] = static_cast<std::int32_t>(i);
        slots += rows.offsets[idx(entities[i]) + 1] - rows.offsets[idx(entities[i])];
    }
    // Room for all slots, so that the loop can write first and decide after: whether a neighbour
    // is inside is a coin toss that no branch predictor wins.
    if (s.own_targets.size() < idx(slots) + 1) {
        s.own_targets.resize(idx(slots) + 1);
        s.own_weights.resize(idx(slots) + 1);
    }
    s.own_offsets.resize(entities.size() + 1);
    std::int32_t* const targets = s.own_targets.data();
    float* const kept = s.own_weights.data();
    std::int32_t next = 0;
    for (std::size_t i = 0; i < entities.size(); ++i) {
        s.own_offsets[i] = next;
        const auto end = idx(rows.offsets[idx(entities[i]) + 1]);
        for (auto slot = idx(rows.offsets[idx(entities[i])]); slot < end; ++slot) {
            const std::int32_t row = s.row_of[idx(rows.targets[slot])];
            targets[next] = row;
            kept[next] = weights[slot];
            next += row >= 0;
        }
    }
    s.own_offsets[entities.size()] = next;
    for (const EntityId e : entities) s.row_of[idx(e)] = -1;
    s.load(s.own_offsets, std::span(s.own_targets).first(idx(next)),
           std::span(s.own_weights).first(idx(next)));
}

std::int32_t PprWorkspace::rows() const noexcept {
    return static_cast<std::int32_t>(state_->offsets.empty() ? 0 : state_->offsets.size() - 1);
}

void PprWorkspace::solve(std::span<const std::int32_t> seeds, std::span<const float> weights,
                         const PageRankOptions& options, std::span<float> scores) {
    solve_into(*state_, seeds, weights, options, scores);
}

void PprWorkspace::solve(std::span<const std::int32_t> seeds, std::span<const float> weights,
                         const PageRankOptions& options, std::span<double> scores) {
    solve_into(*state_, seeds, weights, options, scores);
}

}  // namespace bookrag
