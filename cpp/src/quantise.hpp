// Floats as small integers times a scale. Not installed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace bookrag::detail {

// Rounded to integers of at most `most` times a scale; how far off, in norm, is returned. Rounds by
// adding 0.5: exact rounding is not needed, since what is off is measured.
inline double quantise(std::span<const float> values, float most, std::int8_t* out, float& scale) {
    float largest = 0.0F;
    for (const float v : values) largest = std::max(largest, std::abs(v));
    scale = largest / most;
    const float inverse = most / largest;
    if (!(scale > 0.0F) || !std::isfinite(inverse)) {
        scale = 0.0F;
        std::fill_n(out, values.size(), std::int8_t{0});
        return std::sqrt(static_cast<double>(values.size())) * double{largest};
    }
    double error = 0.0;
    for (std::size_t c = 0; c < values.size(); ++c) {
        const float scaled = std::clamp(values[c] * inverse, -most, most);
        const auto integer = static_cast<int>(scaled + (scaled < 0.0F ? -0.5F : 0.5F));
        out[c] = static_cast<std::int8_t>(integer);
        const double off = double{values[c]} - integer * double{scale};
        error += off * off;
    }
    return std::sqrt(error) * (1.0 + 1e-6);
}

}  // namespace bookrag::detail
