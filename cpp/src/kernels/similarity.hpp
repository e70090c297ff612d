// Kernels of vector similarity. Rows of d values follow each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/select.hpp"

namespace bookrag::kernels {

struct SimilarityKernels {
    // Dot products with n rows. Each is 16 partial sums over every 16th value, then a tree.
    // squares: unless null, of each row its product with itself, bit for bit.
    void (*dots)(const float* query, const float* rows, std::int64_t n, std::int64_t d, float* out,
                 float* squares);

    // The same for IEEE binary16, widened exactly; an infinity or NaN leaves no finite square.
    void (*dots_of_halves)(const float* query, const std::uint16_t* rows, std::int64_t n,
                           std::int64_t d, float* out, float* squares);

    // Dot products with the rows of these numbers.
    void (*dots_at)(const float* query, const float* rows, const std::int32_t* ids,
                    std::int64_t count, std::int64_t d, float* out);

    // Squared norms, summed in float64. Not finite if, and only if, a value is not.
    void (*squared_norms)(const float* rows, std::int64_t n, std::int64_t d, double* out);

    // 1 / sqrt of squared norms in float32; 0 of those outside 1e-20 to 1e30 or NaN, which may have
    // lost what counts to underflow or overflow.
    void (*inverse_roots)(const float* squares, std::int64_t n, float* out);

    // IEEE binary16 to float32, exactly; infinities and NaN become one or the other.
    void (*widen)(const std::uint16_t* half, std::int64_t count, float* out);

    // Largest dot product of every query token with one document's tokens (n rows of d values).
    // `columns` holds the query turned: for each value the query's tokens, padded to a multiple of
    // 32; `best`, as long, receives the maxima.
    void (*best_matches)(const float* columns, std::int64_t padded, const float* tokens,
                         std::int64_t n, std::int64_t d, float* best);

    bool (*all_finite)(const float* values, std::int64_t count);
};

}  // namespace bookrag::kernels
