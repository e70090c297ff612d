#include "directions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "cosines.hpp"

namespace bookrag::detail {

std::vector<float> main_directions(std::span<const float> rows, std::span<const float> inverse,
                                   std::int64_t n, std::int64_t d, std::int64_t count) {
    constexpr std::size_t kSample = 1024;
    const std::size_t width = idx(d);
    const std::size_t m = idx(count);
    std::vector<float> basis(m * width);
    std::uint32_t state = 2512;
    for (auto& v : basis) {
        state = state * 1664525U + 1013904223U;
        v = static_cast<float>(state >> 8) / 16777216.0F - 0.5F;
    }
    std::vector<float> dots(m);
    std::vector<double> sums(m * width);
    for (int round = 0; round < 3; ++round) {
        std::fill(sums.begin(), sums.end(), 0.0);
        const std::size_t sampled = std::min(kSample, idx(n));
        for (std::size_t s = 0; s < sampled; ++s) {
            const std::size_t row = s * idx(n) / sampled;
            const float* values = &rows[row * width];
            similarity_kernels().dots(values, basis.data(), count, d, dots.data(), nullptr);
            for (std::size_t j = 0; j < m; ++j) {
                const double share = double{dots[j]} * double{inverse[row]} * double{inverse[row]};
                double* sum = &sums[j * width];
                for (std::size_t c = 0; c < width; ++c) sum[c] += share * double{values[c]};
            }
        }
        for (std::size_t j = 0; j < m; ++j) {  // Gram-Schmidt, twice for the rounding of the first
            double* own = &sums[j * width];
            for (int pass = 0; pass < 2; ++pass) {
                for (std::size_t i = 0; i < j; ++i) {
                    const double* other = &sums[i * width];
                    const double dot = std::inner_product(own, own + width, other, 0.0);
                    for (std::size_t c = 0; c < width; ++c) own[c] -= dot * other[c];
                }
                const double norm = std::sqrt(std::inner_product(own, own + width, own, 0.0));
                if (!(norm > 0.0)) return {};
                for (std::size_t c = 0; c < width; ++c) own[c] /= norm;
            }
        }
        std::transform(sums.begin(), sums.end(), basis.begin(),
                       [](double v) { return static_cast<float>(v); });
    }
    for (std::size_t i = 0; i < m; ++i) {  // what the bounds below rely on
        for (std::size_t j = 0; j <= i; ++j) {
            const float* a = &basis[i * width];
            const float* b = &basis[j * width];
            const double dot = std::inner_product(a, a + width, b, 0.0, std::plus<>(),
                                                  [](float x, float y) { return double{x} * y; });
            if (!(std::abs(dot - (i == j ? 1.0 : 0.0)) <= 1e-6)) return {};
        }
    }
    return basis;
}

double residual(std::span<const float> projection) {
    const double inside =
        std::inner_product(projection.begin(), projection.end(), projection.begin(), 0.0,
                           std::plus<>(), [](float x, float y) { return double{x} * y; });
    return std::sqrt(std::max(0.0, 1.0 - inside + kNotQuiteOrthonormal));
}

}  // namespace bookrag::detail
