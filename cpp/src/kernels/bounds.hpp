// Kernels of upper bounds from small integers. A query is bytes of -127 to 127; with rows of 7 or 4
// bits the products of two neighbouring pairs fit 16 bits, so every step is exact.
//
// "Blocks" hold 16 rows at a time, n a multiple of kRowsAtOnce: of each 4 (7 bits) or 8 (4 bits)
// dimensions 64 bytes, 4 a row, so that a sum stays in its lane. A byte of two nibbles holds
// dimension c + j in the low one and c + 4 + j in the high one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/select.hpp"

namespace bookrag::kernels {

inline constexpr std::int64_t kRowsAtOnce = 64;
inline constexpr std::int64_t kWidthOfNibbles = 128;  // dimensions of rows of nibbles: a multiple

inline constexpr float kLeastBound = -2.0F;  // cosines are -1 or, rounded, a little less

// (2 sum - shift) * scale * scales[i] + (base + factor * errors[i]) bounds row i's product.
struct BoundTerms {
    std::int32_t shift;
    float scale;
    float base;
    float factor;
};

// bounds[i] + (sum - shift) * scale * scales[i] - factor * gains[i]: the same with more of the row.
struct RefineTerms {
    std::int32_t shift;
    float scale;
    float factor;
};

struct BoundKernels {
    // Bounds of n rows in blocks. width: a multiple of 4.
    void (*of_bytes)(const std::int8_t* query, const std::uint8_t* blocks, std::int64_t n,
                     std::int64_t width, const BoundTerms& terms, const float* scales,
                     const float* errors, float* out);

    // The same for nibbles. width: a multiple of kWidthOfNibbles.
    void (*of_nibbles)(const std::int8_t* query, const std::uint8_t* blocks, std::int64_t n,
                       std::int64_t width, const BoundTerms& terms, const float* scales,
                       const float* errors, float* out);

    // Keeps of some rows those whose bounds, with the low nibbles, reach `least`; ids in place.
    // Returns how many. Rows lie one after the other, width / 2 bytes each: of each 128 dimensions
    // 64 bytes, the first 64 in the low nibbles.
    std::int64_t (*refine)(const std::int8_t* query, const std::uint8_t* rows, std::int64_t width,
                           const RefineTerms& terms, const float* scales, const float* gains,
                           const float* bounds, float least, std::int32_t* ids, std::int64_t count);

    // A bound that at least k of the n rows reach, and seldom many more: by bisection, since a heap
    // of the largest costs a mispredicted branch a row. All bounds but padding are above
    // kLeastBound, and these are at least k. tops, n / 4 values, receives for `within` the largest
    // of every four.
    float (*reached_by)(const float* bounds, std::int64_t n, std::int64_t k, float* tops);

    // The i, ascending, with least <= bounds[i] < below. Returns how many; `out` has room for 16
    // more.
    std::int64_t (*within)(const float* bounds, const float* tops, std::int64_t n, float least,
                           float below, std::int32_t* out);
};

}  // namespace bookrag::kernels
