// Kernel of the gradient drop: 16 rows at once through a sorting network.
#pragma once

#include <cstdint>

#include "kernels/select.hpp"

namespace bookrag::kernels {

struct ResolutionKernels {
    static constexpr std::int32_t kMinColumns = 4;  // fewer are not worth a network
    static constexpr std::int32_t kMaxColumns = 64;

    // The rule of entity_resolution.hpp for n rows of k candidates, kMinColumns <= k <=
    // kMaxColumns. False if a score is NaN or +inf; what was written until then means nothing.
    bool (*gradient_drop)(const float* scores, std::int64_t n, std::int32_t k, float g,
                          float min_score, std::uint8_t* cases, std::int32_t* sizes,
                          std::int32_t* order);
};

}  // namespace bookrag::kernels
