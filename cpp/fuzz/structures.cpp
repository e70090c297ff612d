// Arrays of any content into Tree, KnowledgeGraph and GTLink. Each must be refused with an Error
// exactly when its header's contract says so; what is made must hold together.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "bookrag/error.hpp"
#include "bookrag/gt_link.hpp"
#include "bookrag/knowledge_graph.hpp"
#include "bookrag/pagerank.hpp"
#include "bookrag/tree.hpp"

using namespace bookrag;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

namespace {

#define REQUIRE(condition)                                                       \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                        \
        }                                                                        \
    } while (false)

constexpr std::size_t kMost = 64;  // values an array: enough for any shape, and fast

std::size_t idx(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

// Mostly ids that exist, or nearly.
std::int32_t id(FuzzedDataProvider& data, std::int64_t count) {
    if (data.ConsumeProbability<float>() > 0.98F) return data.ConsumeIntegral<std::int32_t>();
    return data.ConsumeIntegralInRange(
        -1, static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, kMost)));
}

Ids ids(FuzzedDataProvider& data, std::size_t size, std::int64_t count) {
    Ids out(size);
    for (auto& value : out) value = id(data, count);
    return out;
}

// Of an array that ought to be as long as another.
std::size_t beside(FuzzedDataProvider& data, std::size_t size) {
    return data.ConsumeProbability<float>() > 0.98F
               ? data.ConsumeIntegralInRange(std::size_t{0}, kMost)
               : size;
}

// One that takes little memory, or none because it is refused.
std::int64_t count(FuzzedDataProvider& data, std::int64_t limit) {
    if (data.ConsumeProbability<float>() < 0.98F) {
        return data.ConsumeIntegralInRange<std::int64_t>(0, kMost);
    }
    return data.ConsumeBool()
               ? data.ConsumeIntegralInRange(limit + 1, std::numeric_limits<std::int64_t>::max())
               : data.ConsumeIntegralInRange(std::numeric_limits<std::int64_t>::min(),
                                             std::int64_t{-1});
}

bool all_known(const Ids& values, std::int64_t count) {
    for (const auto value : values) {
        if (value < 0 || value >= count) return false;
    }
    return true;
}

// What `make` returns, which it must exactly if the arguments are valid.
template <typename Made, typename Make>
std::optional<Made> made(bool valid, Make make) {
    try {
        std::optional<Made> out{make()};
        REQUIRE(valid);
        return out;
    } catch (const Error&) {
        REQUIRE(!valid);
        return std::nullopt;
    }
}

bool is_tree(const Ids& parents) {
    const auto n = std::ssize(parents);
    std::int64_t roots = 0;
    for (std::int64_t v = 0; v < n; ++v) {
        auto at = v;
        for (std::int64_t steps = 0; at != kNoNode; ++steps) {
            if (at < 0 || at >= n || steps == n) return false;
            at = parents[idx(at)];
        }
        roots += parents[idx(v)] == kNoNode ? 1 : 0;
    }
    return roots == 1;
}

void tree(FuzzedDataProvider& data) {
    const auto n = data.ConsumeIntegralInRange(std::size_t{0}, kMost);
    Ids parents(n);
    const bool orderly = data.ConsumeBool();  // chance alone makes hardly any tree
    for (std::size_t v = 0; v < n; ++v) {
        if (!orderly || data.ConsumeProbability<float>() > 0.98F) {
            parents[v] = id(data, std::ssize(parents));
        } else if (v == 0) {
            parents[v] = kNoNode;
        } else {
            parents[v] = data.ConsumeIntegralInRange(0, static_cast<std::int32_t>(v) - 1);
        }
    }
    std::vector<std::uint8_t> kinds(beside(data, n));
    for (auto& kind : kinds) kind = data.ConsumeIntegral<std::uint8_t>();
    Ids first(beside(data, n));
    Ids last(beside(data, n));
    for (auto& page : first) page = data.ConsumeIntegralInRange(0, 9);
    for (std::size_t v = 0; v < last.size(); ++v) {
        const auto page = v < first.size() ? first[v] : 0;
        last[v] =
            data.ConsumeProbability<float>() > 0.98F ? id(data, 9) : page + (page > 0 ? 1 : 0);
    }
    bool valid = is_tree(parents) && kinds.size() == n && first.size() == n && last.size() == n;
    for (std::size_t v = 0; valid && v < n; ++v) {
        valid = (first[v] == 0 && last[v] == 0) || (first[v] >= 1 && first[v] <= last[v]);
    }
    const auto t = made<Tree>(valid, [&] { return Tree(parents, kinds, first, last); });
    if (!t) return;

    const auto order = t->document_order();
    REQUIRE(order.size() == n);
    std::size_t below = 0;
    for (NodeId v = 0; v < t->num_nodes(); ++v) {
        const auto parent = parents[idx(v)];
        REQUIRE(order[idx(t->positions()[idx(v)])] == v);
        REQUIRE(t->ancestors(v).size() == idx(t->depths()[idx(v)]));
        REQUIRE(t->ancestor_at_depth(v, 0) == t->root());
        REQUIRE(parent == kNoNode || t->contains(parent, v));
        REQUIRE(parent == kNoNode || t->positions()[idx(parent)] < t->positions()[idx(v)]);
        REQUIRE(t->subtree(v).size() == idx(t->subtree_sizes()[idx(v)]));
        for (const auto u : t->subtree(v)) REQUIRE(t->contains(v, u));
        NodeId before = kNoNode;
        for (const auto child : t->children(v)) {
            REQUIRE(parents[idx(child)] == v && child > before);
            before = child;
            ++below;
        }
    }
    REQUIRE(below == n - 1);
    REQUIRE(t->subtree_union(order).size() == n);
    std::size_t of_kinds = 0;
    for (int kind = 0; kind < 256; ++kind) {
        of_kinds += t->nodes_of_kind(static_cast<std::uint8_t>(kind)).size();
    }
    REQUIRE(of_kinds == n);
    for (const auto v : t->nodes_in_pages(2, 5)) {
        REQUIRE(first[idx(v)] <= 5 && last[idx(v)] >= 2);
    }
}

void graph(FuzzedDataProvider& data) {
    const auto entities = count(data, kMaxEntities);
    const auto m = data.ConsumeIntegralInRange(std::size_t{0}, kMost);
    const Ids sources = ids(data, m, entities);
    const Ids targets = ids(data, beside(data, m), entities);
    Floats weights(beside(data, m));
    for (auto& weight : weights) {
        weight = data.ConsumeProbability<float>() > 0.95F
                     ? data.ConsumeFloatingPoint<float>()
                     : data.ConsumeFloatingPointInRange(1e-3F, 1e3F);
    }
    bool valid = entities >= 0 && entities <= kMaxEntities && targets.size() == m &&
                 weights.size() == m && all_known(sources, entities) &&
                 all_known(targets, entities);
    for (const float weight : weights) valid = valid && std::isfinite(weight) && weight > 0.0F;
    const auto g = made<KnowledgeGraph>(
        valid, [&] { return KnowledgeGraph(entities, sources, targets, weights); });
    if (!g) return;

    REQUIRE(g->num_entities() == entities && g->num_relations() == std::ssize(sources));
    std::size_t slots = 0;
    std::size_t loops = 0;
    for (EntityId e = 0; e < entities; ++e) {
        const auto row = g->neighbours(e);
        slots += row.entities.size();
        for (std::size_t i = 0; i < row.entities.size(); ++i) {
            const auto r = idx(row.relations[i]);
            const auto other = row.entities[i];
            REQUIRE((sources[r] == e && targets[r] == other) ||
                    (sources[r] == other && targets[r] == e));
            REQUIRE(row.weights[i] == weights[r]);
            REQUIRE(i == 0 || row.entities[i - 1] <= other);
        }
    }
    for (std::size_t r = 0; r < m; ++r) loops += sources[r] == targets[r] ? 1 : 0;
    REQUIRE(slots + loops == 2 * m);
    if (entities == 0) return;

    const Ids chosen{0, static_cast<EntityId>(entities - 1), static_cast<EntityId>(entities / 2)};
    const auto part = g->induced(chosen);
    REQUIRE(part.entities.size() == idx(part.graph.num_entities()));
    REQUIRE(part.graph.num_relations() <= g->num_relations());
    double sum = 0.0;
    for (const float score : personalized_pagerank(*g, chosen)) {
        REQUIRE(std::isfinite(score) && score >= 0.0F);
        sum += double{score};
    }
    REQUIRE(std::abs(sum - 1.0) < 1e-5);
}

void link(FuzzedDataProvider& data) {
    const auto num_entities = count(data, kMaxEntities);
    const auto num_nodes = count(data, kMaxNodes);
    const auto m = data.ConsumeIntegralInRange(std::size_t{0}, kMost);
    const Ids entities = ids(data, m, num_entities);
    const Ids nodes = ids(data, beside(data, m), num_nodes);
    const bool valid = num_entities >= 0 && num_entities <= kMaxEntities && num_nodes >= 0 &&
                       num_nodes <= kMaxNodes && nodes.size() == m &&
                       all_known(entities, num_entities) && all_known(nodes, num_nodes);
    const auto l =
        made<GTLink>(valid, [&] { return GTLink(num_entities, num_nodes, entities, nodes); });
    if (!l) return;

    std::int64_t links = 0;
    for (EntityId e = 0; e < num_entities; ++e) {
        NodeId before = kNoNode;
        for (const auto node : l->nodes_of(e)) {
            REQUIRE(node > before);
            before = node;
            const auto back = l->entities_of(node);
            REQUIRE(std::binary_search(back.begin(), back.end(), e));
            ++links;
        }
    }
    REQUIRE(links == l->num_links());
    for (std::size_t i = 0; i < m; ++i) {
        const auto of = l->nodes_of(entities[i]);
        REQUIRE(std::binary_search(of.begin(), of.end(), nodes[i]));
    }
    const auto sums = l->project(Floats(idx(num_entities), 1.0F));
    for (NodeId v = 0; v < num_nodes; ++v) {
        REQUIRE(sums[idx(v)] == static_cast<float>(l->entities_of(v).size()));
    }
    REQUIRE(std::ssize(l->nodes_of_many(entities)) <= l->num_links());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    FuzzedDataProvider data(bytes, size);
    switch (data.ConsumeIntegralInRange(0, 2)) {
        case 0:
            tree(data);
            break;
        case 1:
            graph(data);
            break;
        default:
            link(data);
    }
    return 0;
}
