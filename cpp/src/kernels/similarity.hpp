// Kernels of vector similarity. Rows of d values follow each other `stride` values apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/select.hpp"

namespace bookrag::kernels {

struct SimilarityKernels {
    // Dot products with n rows. Each is 16 partial sums over every 16th value, then a tree.
    void (*dots)(const float* query, const float* rows, std::int64_t n, std::int64_t d,
                 std::int64_t stride, float* out);

    // Squared norms, summed in float64. Not finite if, and only if, a value is not.
    void (*squared_norms)(const float* rows, std::int64_t n, std::int64_t d, std::int64_t stride,
                          double* out);

    // IEEE binary16 to float32, exactly; infinities and NaN become infinities.
    void (*widen)(const std::uint16_t* half, std::int64_t count, float* out);

    // out[i] = (integer dot product of row i with the query) * query_scale * scales[i]. `width`,
    // a multiple of 64, is the rows' length and distance; no sum may leave 32 bits.
    void (*scan)(const std::int16_t* query, const std::int8_t* rows, std::int64_t n,
                 std::int64_t width, float query_scale, const float* scales, float* out);

    // Of values[i] - (base + factor * errors[i]) the k-th largest; 1 <= k <= n. `heap` has room
    // for k values.
    float (*kth_lower_bound)(const float* values, const float* errors, std::int64_t n, float base,
                             float factor, std::int64_t k, float* heap);

    // The i, ascending, whose values[i] + base + factor * errors[i] >= least. Returns how many.
    std::int64_t (*at_least)(const float* values, const float* errors, std::int64_t n, float base,
                             float factor, float least, std::int32_t* out);

    // Largest dot product of every query token with one document's tokens (n rows of d values).
    // `columns` holds the query turned: for each value the query's tokens, padded to a multiple of
    // 32; `best`, as long, receives the maxima.
    void (*best_matches)(const float* columns, std::int64_t padded, const float* tokens,
                         std::int64_t n, std::int64_t d, float* best);

    bool (*all_finite)(const float* values, std::int64_t count);
};

}  // namespace bookrag::kernels
