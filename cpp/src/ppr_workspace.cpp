#include "bookrag/ppr_workspace.hpp"

#include <algorithm>
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
    const auto rows = static_cast<std::int32_t>(state.begins.size());
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

// Rows longer than this are put together from the other end, at most so many: about what a
// bisection of every other such row costs.
constexpr std::int64_t kLong = 128;
constexpr std::size_t kLongRows = 64;
// Marks the row of such an entity while a graph is cut out; beyond any row (kMaxEntities = 2^28).
constexpr std::int32_t kFlag = std::int32_t{1} << 29;

// Fills the long rows behind the `filled` slots of the short ones, from the `turned` slots that
// those have with them. Returns the slots then filled.
template <typename State>
std::int32_t fill_long_rows(State& s, const KnowledgeGraph& graph,
                            std::span<const EntityId> entities, std::int32_t filled,
                            std::size_t turned) {
    s.turned.resize(turned);
    for (std::size_t l = 0; l < s.long_rows.size(); ++l) {
        const auto row = graph.neighbours(entities[idx(s.long_rows[l])]);
        auto from = row.entities.begin();
        for (std::size_t o = l; o < s.long_rows.size(); ++o) {  // ascending, as the neighbours are
            const EntityId wanted = entities[idx(s.long_rows[o])];
            from = std::lower_bound(from, row.entities.end(), wanted);
            for (; from != row.entities.end() && *from == wanted; ++from) {
                const float weight = row.weights[idx(from - row.entities.begin())];
                s.turned.push_back({s.long_rows[l], s.long_rows[o], weight});
                if (o != l) s.turned.push_back({s.long_rows[o], s.long_rows[l], weight});
            }
        }
    }
    const std::size_t needed = idx(filled) + s.turned.size() + 1;
    if (s.own_targets.size() < needed) {
        s.own_targets.resize(needed);
        s.own_weights.resize(needed);
    }
    for (const std::int32_t row : s.long_rows) {
        s.own_ends[idx(row)] = 0;
        s.own_sums[idx(row)] = 0.0;
    }
    for (const auto& slot : s.turned) {
        ++s.own_ends[idx(slot.row)];
        s.own_sums[idx(slot.row)] += double{slot.weight};
    }
    for (const std::int32_t row : s.long_rows) {
        s.own_begins[idx(row)] = filled;
        filled += s.own_ends[idx(row)];
        s.own_ends[idx(row)] = s.own_begins[idx(row)];
    }
    for (const auto& slot : s.turned) {
        const auto to = idx(s.own_ends[idx(slot.row)]++);
        s.own_targets[to] = slot.target;
        s.own_weights[to] = slot.weight;
    }
    return filled;
}

}  // namespace

PprWorkspace::PprWorkspace() : state_(std::make_unique<State>()) {}
PprWorkspace::~PprWorkspace() = default;
PprWorkspace::PprWorkspace(PprWorkspace&&) noexcept = default;
PprWorkspace& PprWorkspace::operator=(PprWorkspace&&) noexcept = default;

void PprWorkspace::load(std::span<const std::int32_t> offsets,
                        std::span<const std::int32_t> targets, std::span<const float> weights) {
    const std::size_t rows = offsets.empty() ? 0 : offsets.size() - 1;
    state_->begins = offsets.first(rows);
    state_->ends = offsets.last(rows);
    state_->sums = {};
    state_->targets = targets;
    state_->weights = weights;
    state_->load();
}

void PprWorkspace::load_induced(const KnowledgeGraph& graph, std::span<const EntityId> entities) {
    State& s = *state_;
    const CsrView rows = graph.adjacency();
    const auto weights = graph.weights();
    if (s.row_of.size() < idx(graph.num_entities())) s.row_of.resize(idx(graph.num_entities()), -1);
    // A hub's row may be longer than all others together, yet most of it leads outside: hubs' rows
    // are put together from the other end of their relations, and hub to hub by bisection.
    s.long_rows.clear();
    std::int64_t slots = 0;
    for (std::size_t i = 0; i < entities.size(); ++i) {
        const auto row = static_cast<std::int32_t>(i);
        const auto length = rows.offsets[idx(entities[i]) + 1] - rows.offsets[idx(entities[i])];
        const bool is_long = length > kLong && s.long_rows.size() < kLongRows;
        s.row_of[idx(entities[i])] = is_long ? row | kFlag : row;
        if (is_long) s.long_rows.push_back(row);
        slots += is_long ? 0 : length;
    }
    // Room for all slots, so that the loop can write first and decide after: whether a neighbour
    // is inside is a coin toss that no branch predictor wins.
    if (s.own_targets.size() < idx(slots) + 1) {
        s.own_targets.resize(idx(slots) + 1);
        s.own_weights.resize(idx(slots) + 1);
    }
    if (s.turned.size() < idx(slots) + 1) s.turned.resize(idx(slots) + 1);
    s.own_begins.resize(entities.size());
    s.own_ends.resize(entities.size());
    s.own_sums.resize(entities.size());
    std::int32_t* const targets = s.own_targets.data();
    float* const kept = s.own_weights.data();
    auto* const turned = s.turned.data();
    std::int32_t next = 0;
    std::size_t turns = 0;
    for (std::size_t i = 0; i < entities.size(); ++i) {
        if (s.row_of[idx(entities[i])] >= kFlag) continue;
        s.own_begins[i] = next;
        double sum = 0.0;
        const auto end = idx(rows.offsets[idx(entities[i]) + 1]);
        for (auto slot = idx(rows.offsets[idx(entities[i])]); slot < end; ++slot) {
            const std::int32_t row = s.row_of[idx(rows.targets[slot])];
            const std::int32_t target = row & (kFlag - 1);
            targets[next] = target;
            kept[next] = weights[slot];
            turned[turns] = {target, static_cast<std::int32_t>(i), weights[slot]};
            next += row >= 0;
            turns += row >= kFlag;
            sum += row >= 0 ? double{weights[slot]} : 0.0;
        }
        s.own_ends[i] = next;
        s.own_sums[i] = sum;
    }
    if (!s.long_rows.empty()) next = fill_long_rows(s, graph, entities, next, turns);
    for (const EntityId e : entities) s.row_of[idx(e)] = -1;
    s.begins = s.own_begins;
    s.ends = s.own_ends;
    s.sums = s.own_sums;
    s.targets = std::span(s.own_targets).first(idx(next));
    s.weights = std::span(s.own_weights).first(idx(next));
    s.load();
}

std::int32_t PprWorkspace::rows() const noexcept {
    return static_cast<std::int32_t>(state_->begins.size());
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
