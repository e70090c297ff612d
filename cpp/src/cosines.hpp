// What cosine_topk and VectorIndex share. Not installed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bookrag/similarity.hpp"
#include "check.hpp"
#include "kernels/bounds.hpp"
#include "kernels/similarity.hpp"

namespace bookrag {

namespace kernels {
BOOKRAG_SELECT(SimilarityKernels, similarity_kernels)
BOOKRAG_SELECT(BoundKernels, bound_kernels)
}  // namespace kernels

namespace detail {

inline const kernels::SimilarityKernels& similarity_kernels() {
    return kernels::select_similarity_kernels();
}

inline const kernels::BoundKernels& bound_kernels() {
    return kernels::select_bound_kernels();
}

inline std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

inline void check_shape(std::size_t values, std::int64_t n, std::int64_t d, const char* name) {
    check_count(n, std::numeric_limits<std::int32_t>::max(), "number of rows");
    check_count(d, kMaxDimensions, "number of dimensions");
    if (d == 0) invalid(std::string(name) + " has rows of 0 values");
    if (values != idx(n) * idx(d)) {
        invalid(std::string(name) + " has " + std::to_string(values) + " values, not " +
                std::to_string(n) + " rows of " + std::to_string(d));
    }
}

inline void check_k(std::int64_t k) {
    if (k < 1) invalid("k is " + std::to_string(k) + ", but must be at least 1");
}

// What divides a row by its norm. Below 1e-30 float32 products lose their precision to underflow:
// such a row counts as zeros, 0. Above 1e38 sums could leave float32: refused.
inline float inverse_norm(double squared, std::int64_t row, const char* name) {
    if (!(squared <= 1e76)) {
        invalid(std::string(name) + " row " + std::to_string(row) +
                (std::isfinite(squared) ? " has a norm beyond 1e38" : " holds NaN or an infinity"));
    }
    return squared < 1e-60 ? 0.0F : static_cast<float>(1.0 / std::sqrt(squared));
}

// The same of rows first, first + 1, ... from their products with themselves in float32. exactly(i)
// gives the i-th squared norm in float64, asked where float32 may not do.
template <typename Exactly>
void inverse_norms(std::span<const float> squares, std::int64_t first, const Exactly& exactly,
                   float* out) {
    similarity_kernels().inverse_roots(squares.data(), std::ssize(squares), out);
    for (std::int64_t i = 0; i < std::ssize(squares); ++i) {
        if (out[i] == 0.0F) out[i] = inverse_norm(exactly(i), first + i, "rows");
    }
}

// The query divided by its norm; zeros stay zeros.
inline std::vector<float> unit(std::span<const float> query, std::int64_t number,
                               const kernels::SimilarityKernels& kernel) {
    const auto d = std::ssize(query);
    double squared = 0.0;
    kernel.squared_norms(query.data(), 1, d, &squared);
    std::vector<float> out(query.size());
    if (inverse_norm(squared, number, "queries") == 0.0F) return out;
    const double norm = std::sqrt(squared);
    std::transform(query.begin(), query.end(), out.begin(),
                   [&](float v) { return static_cast<float>(double{v} / norm); });
    return out;
}

// A row and its cosine as one word: larger cosines and, of equal ones, lower rows are larger.
inline std::uint64_t ranked(float cosine, std::int32_t row) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(cosine + 0.0F);  // -0 becomes +0
    const std::uint32_t upper = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
    return std::uint64_t{upper} << 32 | ~static_cast<std::uint32_t>(row);
}

inline std::int32_t row_of(std::uint64_t word) noexcept {
    return static_cast<std::int32_t>(~static_cast<std::uint32_t>(word));
}

inline float cosine_of(std::uint64_t word) noexcept {
    const auto upper = static_cast<std::uint32_t>(word >> 32);
    return std::bit_cast<float>((upper >> 31) != 0 ? upper & 0x7FFFFFFFU : ~upper);
}

}  // namespace detail

}  // namespace bookrag
