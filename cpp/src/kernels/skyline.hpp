// Kernels of the skyline: one pass that discards most rows, exact tests for the rest.
#pragma once

#include <cstdint>

#include "kernels/select.hpp"

namespace bookrag::kernels {

// Points in blocks of 16, each block one column after the other (structure of arrays), and above
// them the maxima of every 16 groups, level by level, up to one group. Level 0 are the points.
struct DominanceTree {
    static constexpr int kMaxLevels = 10;
    const float* groups[kMaxLevels];  // of a level: groups of d times 16 floats
    std::int32_t levels;
};

struct SkylineKernels {
    // Whether any of the `count` values is NaN, and the row with the largest sum of its d values
    // (row 0 if no sum is a number; for finding a strong filter, not for a result).
    bool (*find_nan)(const float* scores, std::int64_t n, std::int32_t d, std::int64_t* best_row);

    // Writes the rows that none of the filter points (count rows of d values) dominates; not in
    // order. `kept` has room for n + 15. Returns how many.
    std::int64_t (*discard)(const float* scores, std::int64_t n, std::int32_t d,
                            const float* filters, std::int32_t count, std::int32_t* kept);

    // Of each of `count` filter points: one bit a row of the sample (n of them, blocks of 16 as in
    // DominanceTree, the last one padded) that it dominates; words of 16 bits.
    void (*coverage)(const float* blocks, std::int32_t num_blocks, std::int32_t d,
                     const float* points, std::int32_t count, std::uint16_t* bits);

    // Sort-filter: points (n rows of d values) come with sums descending, so that nothing later
    // dominates anything earlier. Writes the positions not dominated, ascending. `window` has room
    // for n + 15 points of d values in blocks of 16. Returns how many.
    std::int64_t (*sort_filter)(const float* points, std::int64_t n, std::int32_t d, float* window,
                                std::int32_t* kept);

    // The maxima of num_groups groups of 16, into groups of the next level; the last one padded.
    void (*next_level)(const float* groups, std::int64_t num_groups, std::int32_t d, float* above);

    // Positions of points of level 0 (n of them) that no point of the tree dominates, ascending.
    std::int64_t (*undominated)(const DominanceTree* tree, std::int64_t n, std::int32_t d,
                                std::int32_t* kept);
};

}  // namespace bookrag::kernels
