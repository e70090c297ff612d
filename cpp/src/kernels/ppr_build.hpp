// Kernels that build a walk matrix (PprMatrix of ppr.hpp) from weights that are in their places.
#pragma once

#include <cstdint>

#include "kernels/ppr.hpp"

namespace bookrag::kernels {

// The parts of a PprMatrix in the making: `index` and `weight` are filled in (padding: 0 and 0),
// the others are to be. inverse: 1 / weighted degree by position, 0 where there is no row.
struct PprRows {
    std::int64_t hubs;
    const std::int64_t* hub_slots;
    std::int64_t runs;
    const PprRun* run;
    const std::int32_t* index;
    const float* weight;
    double* inverse;
    float* p;
    float* coupling;
    float* rounding;
    float* degree;
};

struct PprBuildKernels {
    // Writes `inverse` of hubs and of groups. Returns the least that is not 0, infinity if none is.
    double (*invert)(const PprRows&);
    // Writes p, coupling, rounding and degree (relative to 1 / least).
    void (*normalise)(const PprRows&, double least);
    // Moves the slots whose row is not negative to the front of `targets` and `kept` (with room for
    // 16 more than there are), in order; `unflag` is and-ed to the rows. slots: a multiple of 16.
    // For each 16 of them: `before`, how many come before, and `in`, a bit for each that is moved;
    // `flagged`, a bit for each that has bits beyond `unflag`. Returns how many were moved.
    std::int32_t (*pack)(std::int32_t slots, const std::int32_t* rows, const float* weights,
                         std::int32_t unflag, std::int32_t* targets, float* kept,
                         std::int32_t* before, std::uint16_t* in, std::uint16_t* flagged);
};

}  // namespace bookrag::kernels
