// Pareto skyline: Börzsönyi, Kossmann, Stocker, "The Skyline Operator" (ICDE 2001); BookRAG
// (arXiv 2512.03413) ranks retrieved nodes with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bookrag {

// More rows than any machine ranks at once; row numbers are 32-bit inside.
inline constexpr std::int64_t kMaxSkylineRows = (std::int64_t{1} << 31) - 64;

// Rows of `scores` (n rows of d values, row after row) that no other row dominates: at least as
// large in every column and larger in one. Larger is better. Equal rows do not dominate each other:
// all stay. -0 equals +0; infinities are ordinary values.
//
// Returns row numbers, ascending; none for n = 0.
//
// One pass discards what a few strong rows dominate (LESS: Godfrey, Shipley, Gryz, VLDB 2005).
// d = 2: buckets over the first value, then sort and sweep, O(n) + O(m) for the m rows left.
// d = 3, 4: sort-filter-skyline (Chomicki et al., ICDE 2003) of few rows; for many a tree of boxes
// along a Z-order curve (Lee et al., "Approaching the Skyline in Z Order", VLDB 2007), of which
// each row opens those whose upper corner dominates it: near O(m log m) on fronts, O(m^2) at worst.
// O(n) memory. Thread safe.
// Throws Error: d other than 2, 3, 4; a size that d does not divide; a NaN (with its place); more
// than kMaxSkylineRows rows.
[[nodiscard]] std::vector<std::int64_t> skyline(std::span<const float> scores, std::int64_t d);

}  // namespace bookrag
