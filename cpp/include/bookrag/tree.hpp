// The document tree T of a BookIndex (BookRAG, arXiv 2512.03413, section 4): nodes with a parent, a
// kind and a page span, stored with pre-order intervals so that a subtree is one contiguous slice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag {

// Immutable after construction; every member function is const and safe to call from any number of
// threads. Returned spans live as long as the Tree. Node ids are the positions in the input arrays
// and may come in any order; document order is the pre-order in which siblings come by ascending
// id.
class Tree {
  public:
    // parents[i] is the parent of node i, or -1 for the root; exactly one root.
    // kinds[i] is the caller's code for what the node is (text, table, ...).
    // page_first[i] .. page_last[i] is the physical page span, 1-based, both ends included; 0, 0 is
    // "on no page".
    // O(n) time and memory, no recursion: a chain of 1e6 nodes is fine.
    // Throws Error: arrays of unequal length, no node, no or several roots, an unknown or self
    // parent, a cycle (each names a node), an impossible page span.
    Tree(std::span<const NodeId> parents, std::span<const std::uint8_t> kinds,
         std::span<const std::int32_t> page_first, std::span<const std::int32_t> page_last);

    [[nodiscard]] std::int32_t num_nodes() const noexcept {
        return static_cast<std::int32_t>(parents_.size());
    }
    [[nodiscard]] NodeId root() const noexcept { return order_.front(); }
    [[nodiscard]] std::int32_t max_depth() const noexcept {
        return static_cast<std::int32_t>(depth_offsets_.size()) - 2;
    }

    // Per-node arrays, indexed by node id.
    [[nodiscard]] std::span<const NodeId> parents() const noexcept { return parents_; }
    [[nodiscard]] std::span<const std::uint8_t> kinds() const noexcept { return kinds_; }
    [[nodiscard]] std::span<const std::int32_t> page_first() const noexcept { return page_first_; }
    [[nodiscard]] std::span<const std::int32_t> page_last() const noexcept { return page_last_; }
    [[nodiscard]] std::span<const std::int32_t> depths() const noexcept { return depths_; }
    [[nodiscard]] std::span<const std::int32_t> subtree_sizes() const noexcept { return sizes_; }
    // positions()[v] is v's rank in document order; v's subtree is the ranks
    // positions()[v] .. positions()[v] + subtree_sizes()[v].
    [[nodiscard]] std::span<const std::int32_t> positions() const noexcept { return positions_; }

    // All nodes in document order. O(1).
    [[nodiscard]] std::span<const NodeId> document_order() const noexcept { return order_; }

    // Children of `node` by ascending id. O(1). Throws out_of_range.
    [[nodiscard]] std::span<const NodeId> children(NodeId node) const;

    // `node` and everything below it, in document order. O(1). Throws out_of_range.
    [[nodiscard]] std::span<const NodeId> subtree(NodeId node) const;

    // Parent first, root last; empty for the root. O(depth). Throws out_of_range.
    [[nodiscard]] std::vector<NodeId> ancestors(NodeId node) const;

    // The node at `depth` on the way from the root to `node`: `node` itself where it lies at that
    // depth, -1 where it is shallower. O(log n). Throws out_of_range, or invalid_argument for a
    // negative depth.
    [[nodiscard]] NodeId ancestor_at_depth(NodeId node, std::int32_t depth) const;

    // The same for many nodes, in their order. O(k log n).
    [[nodiscard]] std::vector<NodeId> ancestors_at_depth(std::span<const NodeId> nodes,
                                                         std::int32_t depth) const;

    // Whether `ancestor` is `node` or above it. O(1). Throws out_of_range.
    [[nodiscard]] bool contains(NodeId ancestor, NodeId node) const;

    // Union of the subtrees of `nodes` (any order, repeats allowed): ids ascending, each once.
    // O(k log k + s log s) for s ids in the result. Throws out_of_range naming the position.
    [[nodiscard]] std::vector<NodeId> subtree_union(std::span<const NodeId> nodes) const;

    // Nodes of a kind, in document order. O(1).
    [[nodiscard]] std::span<const NodeId> nodes_of_kind(std::uint8_t kind) const noexcept;

    // Nodes whose page span meets first .. last (1-based, both included), in document order. Nodes
    // on no page never match. O(n). Throws invalid_argument unless 1 <= first <= last.
    [[nodiscard]] std::vector<NodeId> nodes_in_pages(std::int32_t first, std::int32_t last) const;

  private:
    void check_parents() const;
    void build_children();
    void build_order();
    void build_depth_and_kind_lists();
    void check_node(NodeId node) const;
    [[nodiscard]] NodeId ancestor_unchecked(NodeId node, std::int32_t depth) const noexcept;

    std::vector<NodeId> parents_;
    std::vector<std::uint8_t> kinds_;
    std::vector<std::int32_t> page_first_;
    std::vector<std::int32_t> page_last_;
    std::vector<std::int32_t> depths_;
    std::vector<std::int32_t> positions_;
    std::vector<std::int32_t> sizes_;
    std::vector<NodeId> order_;                // document order
    std::vector<std::int32_t> child_offsets_;  // n + 1
    std::vector<NodeId> children_;             // n - 1
    std::vector<std::int32_t> depth_offsets_;  // max_depth + 2
    std::vector<NodeId> by_depth_;             // document order within a depth
    std::vector<std::int32_t> kind_offsets_;   // 257
    std::vector<NodeId> by_kind_;              // document order within a kind
};

}  // namespace bookrag
