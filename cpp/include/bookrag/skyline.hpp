// Pareto skyline: Börzsönyi, Kossmann, Stocker, "The Skyline Operator" (ICDE 2001); BookRAG
// (arXiv 2512.03413) ranks retrieved nodes with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bookrag {

// Rows of `scores` (n rows of d values, row after row) that no other row dominates: at least as
// large in every column and larger in one. Larger is better. Equal rows do not dominate each other:
// all stay. -0 equals +0; infinities are ordinary values.
//
// Returns row numbers, ascending; none for n = 0.
//
// d = 2: sort and sweep, O(n log n). d = 3: sweep over a staircase (Kung, Luccio, Preparata, "On
// Finding the Maxima of a Set of Vectors", JACM 1975), O(n log n). d = 4: sort-filter-skyline
// (Chomicki et al., ICDE 2003), O(n log n + n k) for k rows kept. O(n) memory. Thread safe.
// Throws Error: d other than 2, 3, 4; a size that d does not divide; a NaN (with its
// place).
[[nodiscard]] std::vector<std::int64_t> skyline(std::span<const float> scores, std::int64_t d);

}  // namespace bookrag
