#include "bookrag/ppr_workspace.hpp"

#include <algorithm>
#include <string>

#include "check.hpp"
#include "kernels/ppr_build.hpp"
#include "kernels/select.hpp"
#include "long_rows.hpp"
#include "ppr_state.hpp"

namespace bookrag::kernels {
BOOKRAG_SELECT(PprBuildKernels, ppr_build_kernels)
}

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
    state.solver.begin(state.layout, state.restart, options.damping, passes);
    state.solver.reach(options.tol, sizeof(T) == sizeof(double));
    detail::write_scores(state.layout, state.solver, state.restart, scores);
}

// Offsets of a graph that is cut out are 32-bit.
constexpr std::int64_t kMostSlots = std::int64_t{1} << 30;
// Marks the row of a hub while a graph is cut out; beyond any row (kMaxEntities = 2^28).
constexpr std::int32_t kFlag = std::int32_t{1} << 29;

// Unmarks the entities that were cut out, also if memory ran out on the way: the next cut would
// take rows left marked for its own.
template <typename State>
class Unmark {
  public:
    Unmark(State& state, std::span<const EntityId> entities) noexcept
        : row_of_(state.row_of), entities_(entities) {}
    ~Unmark() {
        for (const EntityId e : entities_) row_of_[idx(e)] = -1;
    }
    Unmark(const Unmark&) = delete;
    Unmark& operator=(const Unmark&) = delete;

  private:
    std::vector<std::int32_t>& row_of_;
    std::span<const EntityId> entities_;
};

// Fills the long rows behind the `filled` slots of the short ones, from the `turned` slots that
// those have with them, and from the relations among hubs. Returns the slots then filled.
template <typename State>
std::int32_t fill_long_rows(State& s, const KnowledgeGraph& graph,
                            std::span<const EntityId> entities, std::int32_t filled) {
    const auto& hubs = graph.long_rows();
    for (const std::int32_t row : s.long_rows) {
        for (const auto& relation : hubs.of(entities[idx(row)])) {
            const std::int32_t other = s.row_of[idx(relation.other)];
            if (other >= 0) s.turned.push_back({row, other & (kFlag - 1), relation.weight});
        }
        s.own_ends[idx(row)] = 0;
    }
    const std::size_t needed = idx(filled) + s.turned.size() + 1;
    if (s.own_targets.size() < needed) {  // grows last: memory may run out in between
        s.own_weights.resize(needed);
        s.own_targets.resize(needed);
    }
    for (const auto& slot : s.turned) ++s.own_ends[idx(slot.row)];
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

void detail::Cut::reserve(std::int32_t slots) {
    const std::size_t blocks = idx(slots) / 16 + 1;
    if (flagged.size() < blocks) {  // grows last: memory may run out in between
        rows.resize(blocks * 16);
        weights.resize(blocks * 16);
        before.resize(blocks);
        in.resize(blocks);
        flagged.resize(blocks);
    }
    for (std::size_t s = idx(slots); s < blocks * 16; ++s) rows[s] = -1;  // the last block
}

std::int32_t detail::Cut::pack(std::int32_t slots, std::int32_t unflag,
                               std::vector<std::int32_t>& targets, std::vector<float>& kept) {
    const std::int32_t whole = (slots / 16 + 1) * 16;
    if (targets.size() < idx(whole) + 16) {
        kept.resize(idx(whole) + 16);
        targets.resize(idx(whole) + 16);  // last, as above
    }
    return kernels::select_ppr_build_kernels().pack(whole, rows.data(), weights.data(), unflag,
                                                    targets.data(), kept.data(), before.data(),
                                                    in.data(), flagged.data());
}

PprWorkspace::PprWorkspace() : state_(std::make_unique<State>()) {}
PprWorkspace::~PprWorkspace() = default;
PprWorkspace::PprWorkspace(PprWorkspace&&) noexcept = default;
PprWorkspace& PprWorkspace::operator=(PprWorkspace&&) noexcept = default;

void PprWorkspace::load(std::span<const std::int32_t> offsets,
                        std::span<const std::int32_t> targets, std::span<const float> weights) {
    const std::size_t rows = offsets.empty() ? 0 : offsets.size() - 1;
    state_->begins = offsets.first(rows);
    state_->ends = offsets.last(rows);
    state_->targets = targets;
    state_->weights = weights;
    state_->load();
}

void PprWorkspace::load_induced(const KnowledgeGraph& graph, std::span<const EntityId> entities) {
    State& s = *state_;
    const CsrView rows = graph.adjacency();
    const auto weights = graph.weights();
    if (s.row_of.size() < idx(graph.num_entities())) s.row_of.resize(idx(graph.num_entities()), -1);
    s.own_begins.resize(entities.size());
    s.own_ends.resize(entities.size());
    // A hub's row may be longer than all others together, yet most of it leads outside: it is put
    // together from the other end of its relations.
    s.long_rows.clear();
    const Unmark unmark(s, entities);
    std::int64_t all = 0;
    for (std::size_t i = 0; i < entities.size(); ++i) {
        const auto row = static_cast<std::int32_t>(i);
        const auto length = rows.offsets[idx(entities[i]) + 1] - rows.offsets[idx(entities[i])];
        const bool is_long = length > detail::LongRows::kLong;
        s.row_of[idx(entities[i])] = is_long ? row | kFlag : row;
        if (is_long) s.long_rows.push_back(row);
        s.own_begins[i] = static_cast<std::int32_t>(all);
        all += is_long ? 0 : length;
        s.own_ends[i] = static_cast<std::int32_t>(all);
        if (all > kMostSlots) break;
    }
    if (all > kMostSlots) {
        detail::invalid(
            "entities have more than 2^30 relations, too many to cut out; "
            "walk on the whole graph instead");
    }
    const auto slots = static_cast<std::int32_t>(all);
    // All slots of the short rows, one after the other, then those that stay. In two passes: the
    // first has no branch and no address that waits for a look-up.
    s.cut.reserve(slots);
    for (std::size_t i = 0; i < entities.size(); ++i) {
        const auto from = idx(rows.offsets[idx(entities[i])]);
        const std::int32_t* const targets = rows.targets.data() + from;
        const float* const of_slot = weights.data() + from;
        const std::int32_t* const row_of = s.row_of.data();
        std::int32_t* const to_row = s.cut.rows.data() + s.own_begins[i];
        float* const to_weight = s.cut.weights.data() + s.own_begins[i];
        const std::int32_t length = s.own_ends[i] - s.own_begins[i];
        for (std::int32_t k = 0; k < length; ++k) {
            to_row[k] = row_of[targets[k]];
            to_weight[k] = of_slot[k];
        }
    }
    std::int32_t kept = s.cut.pack(slots, kFlag - 1, s.own_targets, s.own_weights);
    // Slots with hubs, by row; then the rows' new limits.
    s.turned.clear();
    s.cut.each_flagged(slots, [&, row = std::size_t{0}](std::int32_t slot) mutable {
        while (s.own_ends[row] <= slot) ++row;
        s.turned.push_back({s.cut.rows[idx(slot)] & (kFlag - 1), static_cast<std::int32_t>(row),
                            s.cut.weights[idx(slot)]});
    });
    std::int32_t filled = 0;
    for (std::size_t i = 0; i < entities.size(); ++i) {
        s.own_begins[i] = filled;
        filled = s.cut.moved(s.own_ends[i]);
        s.own_ends[i] = filled;
    }
    if (!s.long_rows.empty()) kept = fill_long_rows(s, graph, entities, kept);
    s.begins = s.own_begins;
    s.ends = s.own_ends;
    s.targets = std::span(s.own_targets).first(idx(kept));
    s.weights = std::span(s.own_weights).first(idx(kept));
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
