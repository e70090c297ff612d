#include "bookrag/tree.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "check.hpp"

namespace bookrag {

namespace {

std::size_t idx(std::int32_t i) noexcept {
    return static_cast<std::size_t>(i);
}

}  // namespace

Tree::Tree(std::span<const NodeId> parents, std::span<const std::uint8_t> kinds,
           std::span<const std::int32_t> page_first, std::span<const std::int32_t> page_last) {
    detail::check_count(static_cast<std::int64_t>(parents.size()), kMaxNodes, "number of nodes");
    detail::check_same_length(parents.size(), "parents", kinds.size(), "kinds");
    detail::check_same_length(parents.size(), "parents", page_first.size(), "page_first");
    detail::check_same_length(parents.size(), "parents", page_last.size(), "page_last");
    if (parents.empty()) detail::invalid("a tree needs at least one node, its root");

    // Copy first, check the copies: a caller that writes to its arrays meanwhile cannot get past.
    parents_.assign(parents.begin(), parents.end());
    kinds_.assign(kinds.begin(), kinds.end());
    page_first_.assign(page_first.begin(), page_first.end());
    page_last_.assign(page_last.begin(), page_last.end());

    check_parents();
    build_children();
    build_order();
    build_depth_and_kind_lists();
}

void Tree::check_parents() const {
    const std::int32_t n = num_nodes();
    NodeId root = kNoNode;
    for (NodeId v = 0; v < n; ++v) {
        const NodeId parent = parents_[idx(v)];
        if (parent == kNoNode) {
            if (root != kNoNode) {
                detail::invalid("nodes " + std::to_string(root) + " and " + std::to_string(v) +
                                " are both roots (parent -1), but a tree has one");
            }
            root = v;
        } else if (parent == v) {
            detail::invalid("node " + std::to_string(v) + " is its own parent");
        } else if (parent < 0 || parent >= n) {
            detail::fail(ErrorCode::out_of_range, "node " + std::to_string(v) + " has parent " +
                                                      std::to_string(parent) + ", but " +
                                                      detail::known(n, "nodes"));
        }
        const std::int32_t first = page_first_[idx(v)];
        const std::int32_t last = page_last_[idx(v)];
        const bool no_page = first == 0 && last == 0;
        if (!no_page && (first < 1 || last < first)) {
            detail::invalid("node " + std::to_string(v) + " has pages " + std::to_string(first) +
                            " to " + std::to_string(last) +
                            ", but pages count from 1 and first <= last (0, 0 for no page)");
        }
    }
    if (root == kNoNode) detail::invalid("no node is the root (parent -1)");
}

void Tree::build_children() {
    const std::size_t n = parents_.size();
    child_offsets_.assign(n + 1, 0);
    for (const NodeId parent : parents_) {
        if (parent != kNoNode) ++child_offsets_[idx(parent) + 1];
    }
    for (std::size_t i = 0; i < n; ++i) child_offsets_[i + 1] += child_offsets_[i];
    children_.resize(n - 1);
    std::vector<std::int32_t> next(child_offsets_.begin(), child_offsets_.end() - 1);
    for (NodeId v = 0; v < num_nodes(); ++v) {
        const NodeId parent = parents_[idx(v)];
        if (parent != kNoNode) children_[idx(next[idx(parent)]++)] = v;
    }
}

void Tree::build_order() {
    const std::size_t n = parents_.size();
    depths_.assign(n, 0);
    positions_.assign(n, -1);
    order_.reserve(n);

    const auto root = std::find(parents_.begin(), parents_.end(), kNoNode);
    std::vector<NodeId> stack{static_cast<NodeId>(root - parents_.begin())};
    while (!stack.empty()) {
        const NodeId v = stack.back();
        stack.pop_back();
        positions_[idx(v)] = static_cast<std::int32_t>(order_.size());
        order_.push_back(v);
        const auto below = children(v);
        for (const NodeId child : below) depths_[idx(child)] = depths_[idx(v)] + 1;
        stack.insert(stack.end(), below.rbegin(), below.rend());
    }

    if (order_.size() !=
        n) {  // whoever the root does not reach hangs on a cycle: name a node of it
        const auto lost = std::find(positions_.begin(), positions_.end(), -1);
        auto v = static_cast<NodeId>(lost - positions_.begin());
        for (std::size_t step = 0; step < n; ++step) v = parents_[idx(v)];
        detail::invalid("node " + std::to_string(v) +
                        " is its own ancestor (a cycle through node " +
                        std::to_string(parents_[idx(v)]) + ")");
    }

    sizes_.assign(n, 1);
    for (std::size_t i = n - 1; i > 0; --i) {
        const NodeId v = order_[i];
        sizes_[idx(parents_[idx(v)])] += sizes_[idx(v)];
    }
}

void Tree::build_depth_and_kind_lists() {
    const std::size_t n = parents_.size();
    const std::int32_t deepest = *std::max_element(depths_.begin(), depths_.end());
    depth_offsets_.assign(idx(deepest) + 2, 0);
    kind_offsets_.assign(257, 0);
    for (std::size_t v = 0; v < n; ++v) {
        ++depth_offsets_[idx(depths_[v]) + 1];
        ++kind_offsets_[std::size_t{kinds_[v]} + 1];
    }
    for (std::size_t d = 1; d < depth_offsets_.size(); ++d)
        depth_offsets_[d] += depth_offsets_[d - 1];
    for (std::size_t c = 1; c < kind_offsets_.size(); ++c) kind_offsets_[c] += kind_offsets_[c - 1];

    by_depth_.resize(n);
    by_kind_.resize(n);
    std::vector<std::int32_t> next_depth(depth_offsets_.begin(), depth_offsets_.end() - 1);
    std::vector<std::int32_t> next_kind(kind_offsets_.begin(), kind_offsets_.end() - 1);
    for (const NodeId v : order_) {
        by_depth_[idx(next_depth[idx(depths_[idx(v)])]++)] = v;
        by_kind_[idx(next_kind[std::size_t{kinds_[idx(v)]}]++)] = v;
    }
}

void Tree::check_node(NodeId node) const {
    detail::check_id(node, num_nodes(), "node", "nodes");
}

std::span<const NodeId> Tree::children(NodeId node) const {
    check_node(node);
    const auto begin = child_offsets_[idx(node)];
    return std::span(children_).subspan(idx(begin), idx(child_offsets_[idx(node) + 1] - begin));
}

std::span<const NodeId> Tree::subtree(NodeId node) const {
    check_node(node);
    return std::span(order_).subspan(idx(positions_[idx(node)]), idx(sizes_[idx(node)]));
}

std::vector<NodeId> Tree::ancestors(NodeId node) const {
    check_node(node);
    std::vector<NodeId> out;
    out.reserve(idx(depths_[idx(node)]));
    for (NodeId v = parents_[idx(node)]; v != kNoNode; v = parents_[idx(v)]) out.push_back(v);
    return out;
}

NodeId Tree::ancestor_unchecked(NodeId node, std::int32_t depth) const noexcept {
    if (depths_[idx(node)] < depth) return kNoNode;
    // The subtrees of the nodes at one depth are disjoint and in document order, so the ancestor is
    // the last of them that starts at or before `node`.
    const auto begin = by_depth_.begin() + depth_offsets_[idx(depth)];
    const auto end = by_depth_.begin() + depth_offsets_[idx(depth) + 1];
    const auto after = std::upper_bound(
        begin, end, positions_[idx(node)],
        [this](std::int32_t position, NodeId v) { return position < positions_[idx(v)]; });
    return *(after - 1);
}

NodeId Tree::ancestor_at_depth(NodeId node, std::int32_t depth) const {
    check_node(node);
    if (depth < 0)
        detail::invalid("depth is " + std::to_string(depth) + ", but the root has depth 0");
    return ancestor_unchecked(node, depth);
}

std::vector<NodeId> Tree::ancestors_at_depth(std::span<const NodeId> nodes,
                                             std::int32_t depth) const {
    if (depth < 0)
        detail::invalid("depth is " + std::to_string(depth) + ", but the root has depth 0");
    detail::check_ids(nodes, num_nodes(), "nodes", "nodes");
    std::vector<NodeId> out(nodes.size());
    std::transform(nodes.begin(), nodes.end(), out.begin(),
                   [this, depth](NodeId v) { return ancestor_unchecked(v, depth); });
    return out;
}

bool Tree::contains(NodeId ancestor, NodeId node) const {
    detail::check_id(ancestor, num_nodes(), "ancestor", "nodes");
    check_node(node);
    const std::int32_t offset = positions_[idx(node)] - positions_[idx(ancestor)];
    return offset >= 0 && offset < sizes_[idx(ancestor)];
}

std::vector<NodeId> Tree::subtree_union(std::span<const NodeId> nodes) const {
    detail::check_ids(nodes, num_nodes(), "nodes", "nodes");
    std::vector<std::int32_t> starts(nodes.size());
    std::transform(nodes.begin(), nodes.end(), starts.begin(),
                   [this](NodeId v) { return positions_[idx(v)]; });
    std::sort(starts.begin(), starts.end());

    std::vector<NodeId> out;
    std::int32_t done = 0;  // every position before this is in `out` or outside all subtrees
    for (const std::int32_t start : starts) {
        if (start < done) continue;  // nested in the subtree before it
        done = start + sizes_[idx(order_[idx(start)])];
        out.insert(out.end(), order_.begin() + start, order_.begin() + done);
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::span<const NodeId> Tree::nodes_of_kind(std::uint8_t kind) const noexcept {
    const auto begin = kind_offsets_[kind];
    return std::span(by_kind_).subspan(idx(begin),
                                       idx(kind_offsets_[std::size_t{kind} + 1] - begin));
}

std::vector<NodeId> Tree::nodes_in_pages(std::int32_t first, std::int32_t last) const {
    if (first < 1 || last < first) {
        detail::invalid("pages " + std::to_string(first) + " to " + std::to_string(last) +
                        " are no range: pages count from 1 and first <= last");
    }
    std::vector<NodeId> out;
    for (const NodeId v : order_) {
        // Nodes on no page have page_last 0 < first.
        if (page_first_[idx(v)] <= last && page_last_[idx(v)] >= first) out.push_back(v);
    }
    return out;
}

}  // namespace bookrag
