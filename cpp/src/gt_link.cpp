#include "bookrag/gt_link.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "check.hpp"
#include "csr.hpp"

namespace bookrag {

namespace {

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

struct Rows {
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> values;
};

// Pairs (row, value) to rows, values of a row in the order given.
Rows group(std::int64_t rows, std::span<const std::int32_t> row_of,
           std::span<const std::int32_t> value_of) {
    Rows out;
    out.offsets.assign(idx(rows) + 1, 0);
    for (const auto r : row_of) ++out.offsets[idx(r) + 1];
    detail::counts_to_offsets(out.offsets);
    out.values.resize(row_of.size());
    auto next = detail::row_cursors(out.offsets);
    for (std::size_t i = 0; i < row_of.size(); ++i) {
        out.values[idx(next[idx(row_of[i])]++)] = value_of[i];
    }
    return out;
}

// Rows turned round; values of a row ascending, since the old rows are walked ascending. With
// `distinct`, a repeated pair is dropped.
Rows transpose(const Rows& in, std::int64_t rows, bool distinct) {
    const auto in_rows = static_cast<std::int64_t>(in.offsets.size()) - 1;
    std::vector<std::int32_t> last(idx(rows), -1);
    const auto each = [&](auto&& visit) {
        std::fill(last.begin(), last.end(), -1);
        for (std::int64_t r = 0; r < in_rows; ++r) {
            for (auto s = in.offsets[idx(r)]; s < in.offsets[idx(r) + 1]; ++s) {
                const auto v = in.values[idx(s)];
                if (distinct && last[idx(v)] == r) continue;
                last[idx(v)] = static_cast<std::int32_t>(r);
                visit(v, static_cast<std::int32_t>(r));
            }
        }
    };
    Rows out;
    out.offsets.assign(idx(rows) + 1, 0);
    each([&](std::int32_t v, std::int32_t) { ++out.offsets[idx(v) + 1]; });
    detail::counts_to_offsets(out.offsets);
    out.values.resize(idx(out.offsets.back()));
    auto next = detail::row_cursors(out.offsets);
    each([&](std::int32_t v, std::int32_t r) { out.values[idx(next[idx(v)]++)] = r; });
    return out;
}

std::vector<std::int32_t> union_of_rows(CsrView rows, std::span<const std::int32_t> which) {
    std::vector<std::int32_t> out;
    for (const auto r : which) {
        const auto row = rows.row(r);
        out.insert(out.end(), row.begin(), row.end());
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

// Sorted distinct copy, so that a row asked for many times is gathered once.
std::vector<std::int32_t> distinct(std::span<const std::int32_t> ids) {
    std::vector<std::int32_t> out(ids.begin(), ids.end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace

GTLink::GTLink(std::int64_t num_entities, std::int64_t num_nodes,
               std::span<const EntityId> entities, std::span<const NodeId> nodes) {
    detail::check_count(num_entities, kMaxEntities, "num_entities");
    detail::check_count(num_nodes, kMaxNodes, "num_nodes");
    detail::check_count(static_cast<std::int64_t>(entities.size()), kMaxRelations,
                        "number of links");
    detail::check_same_length(entities.size(), "entities", nodes.size(), "nodes");
    detail::check_ids(entities, num_entities, "entities", "entities");
    detail::check_ids(nodes, num_nodes, "nodes", "nodes");

    Rows by_node = transpose(group(num_entities, entities, nodes), num_nodes, true);
    Rows by_entity = transpose(by_node, num_entities, false);
    node_offsets_ = std::move(by_entity.offsets);
    nodes_ = std::move(by_entity.values);
    entity_offsets_ = std::move(by_node.offsets);
    entities_ = std::move(by_node.values);
}

std::span<const NodeId> GTLink::nodes_of(EntityId entity) const {
    detail::check_id(entity, num_entities(), "entity", "entities");
    return entity_to_nodes().row(entity);
}

std::span<const EntityId> GTLink::entities_of(NodeId node) const {
    detail::check_id(node, num_nodes(), "node", "nodes");
    return node_to_entities().row(node);
}

std::vector<NodeId> GTLink::nodes_of_many(std::span<const EntityId> entities) const {
    detail::check_ids(entities, num_entities(), "entities", "entities");
    return union_of_rows(entity_to_nodes(), distinct(entities));
}

std::vector<EntityId> GTLink::entities_of_many(std::span<const NodeId> nodes) const {
    detail::check_ids(nodes, num_nodes(), "nodes", "nodes");
    return union_of_rows(node_to_entities(), distinct(nodes));
}

std::vector<float> GTLink::project(std::span<const float> scores) const {
    if (std::ssize(scores) != num_entities()) {
        detail::invalid("scores has " + std::to_string(scores.size()) + " values, but " +
                        detail::known(num_entities(), "entities"));
    }
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (!std::isfinite(scores[i])) {
            detail::invalid(detail::at("scores", i) + " is " + detail::text(double{scores[i]}) +
                            ", but scores must be finite");
        }
    }
    std::vector<float> out(idx(num_nodes()));
    const CsrView rows = node_to_entities();
    for (std::size_t n = 0; n < out.size(); ++n) {
        double sum = 0.0;
        for (const EntityId e : rows.row(static_cast<std::int64_t>(n)))
            sum += double{scores[idx(e)]};
        out[n] = static_cast<float>(sum);
    }
    return out;
}

}  // namespace bookrag
