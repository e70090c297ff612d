// Gradient-based entity resolution (BookRAG, arXiv 2512.03413, Algorithm 1), batched, and the
// union-find plan that turns its decisions into merges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag {

enum class ResolutionCase : std::uint8_t {
    new_entity = 0,  // nothing near enough, or every candidate alike: a new entity
    merge = 1,       // one candidate stands out: the same entity
    ambiguous = 2,   // several stand out: somebody must choose among them
};

struct GradientDropOptions {
    float g = 0.6F;  // 0 < g <= 1: the next score stays in the high group while >= g * previous
    float min_score = 0.5F;  // >= 0: a best score below this is a new entity
};

struct GradientDrop {
    std::vector<std::uint8_t> cases;  // ResolutionCase, one a row
    std::vector<std::int32_t> sizes;  // candidates in the high group, one a row
    std::vector<std::int32_t> order;  // n rows of k columns: candidates by descending score, ties
                                      // by column; the first sizes[i] of row i are its high group
};

// Decides every row of `scores` (n rows of k candidates, in any order) on its own:
//   1. no candidate, or best < min_score       -> new_entity, size 0
//   2. walk down from the best; a candidate is in the high group while score >= g * previous score;
//      the first larger drop ends the group
//   3. all k candidates in the group (no drop) -> new_entity, size k ("every candidate is alike")
//   4. one in the group -> merge; several -> ambiguous
// -inf stands for "no candidate", so that rows may have fewer than k. Running out of candidates is
// a drop, not its absence: rule 3 needs k real ones. k = 1 cannot show a gradient and is treated as
// running out: one candidate that passes min_score -> merge. k = 0: every row is new.
// Comparisons are made in float32, so that a score written 0.7 passes a threshold written 0.7.
//
// O(n k log k) time, O(n k) memory for the order; 4 to 64 candidates go through a sorting network,
// 16 rows at once. Thread safe. Throws Error: a bad option, a size that is not n * k, a score that
// is NaN or +inf (with its place).
[[nodiscard]] GradientDrop gradient_drop(std::span<const float> scores, std::int64_t n,
                                         std::int64_t k, const GradientDropOptions& options = {});

// Where to write the same without allocating: n, n and n * k values.
struct GradientDropView {
    std::span<std::uint8_t> cases;
    std::span<std::int32_t> sizes;
    std::span<std::int32_t> order;
};

// As gradient_drop, into memory of the caller; after an Error its values mean nothing.
void gradient_drop_into(std::span<const float> scores, std::int64_t n, std::int64_t k,
                        const GradientDropOptions& options, const GradientDropView& out);

struct MergePlan {
    std::vector<EntityId> representative;  // of each entity: the smallest id of its set
    std::vector<std::int64_t> skipped;     // pairs not merged because of `incompatible`; ascending
    std::int32_t num_sets = 0;             // entities left after merging
};

// Union of the pairs (left[i], right[i]): who is the same entity as whom. Representatives are the
// smallest ids, so without `incompatible` the result does not depend on the order of the pairs.
//
// incompatible: pairs of entities that must stay apart, as a0, b0, a1, b1, ... Pairs are then taken
// in the given order, and one that would join an incompatible pair, directly or through earlier
// merges, is skipped and reported: put the surest pairs first.
//
// O(n + m log n) without incompatible pairs (path halving, Tarjan and van Leeuwen, JACM 1984); with
// q of them O(q log q) more to keep their lists, and a union looks through the shorter of two
// lists. O(n + q) memory. Thread safe.
//
// Throws Error: unequal lengths, an unknown entity (with its position), an entity incompatible with
// itself, num_entities beyond kMaxEntities.
[[nodiscard]] MergePlan merge_plan(std::int64_t num_entities, std::span<const EntityId> left,
                                   std::span<const EntityId> right,
                                   std::span<const EntityId> incompatible = {});

}  // namespace bookrag
