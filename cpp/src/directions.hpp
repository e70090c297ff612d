// Main directions of unit rows, and what lies outside the subspace they span. Not installed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bookrag::detail {

// Float32 sums of more dimensions would be off by more than 1e-5, which the bounds rely on.
inline constexpr std::int64_t kMostProjected = 2048;

// With B the directions and B B' = I + E, |E| <= 64 * 1e-6, and projections in float32 (each off by
// less than 1e-5): q.r differs from (B q).(B r) + q'.r' by less than this, and the residuals'
// squared norms from 1 - |B q|^2 and 1 - |B r|^2 by less than half of it.
inline constexpr double kNotQuiteOrthonormal = 6e-4;

// `count` orthonormal directions (rows of d, at most kMostProjected; count at most 64) that hold
// most of the rows' squares: subspace iteration over a sample, from fixed pseudo-random directions.
// inverse: of each row 1 / its norm. Empty if they came out dependent.
[[nodiscard]] std::vector<float> main_directions(std::span<const float> rows,
                                                 std::span<const float> inverse, std::int64_t n,
                                                 std::int64_t d, std::int64_t count);

// Norm of a unit row's part outside the directions, rounded up.
[[nodiscard]] double residual(std::span<const float> projection);

}  // namespace bookrag::detail
