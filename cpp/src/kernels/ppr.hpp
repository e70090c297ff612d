// Kernels of personalized PageRank: passes over a walk matrix laid out for vectors.
#pragma once

#include <cstdint>

namespace bookrag::kernels {

// Lanes of a group, and so the unit in which positions are padded.
inline constexpr std::int32_t kLanes = 16;

// Neighbouring groups of one width: slot k of lane l of the i-th group lies at
// first_slot + (i * width + k) * 16 + l.
struct PprRun {
    std::int64_t first_slot;
    std::int32_t first_group;
    std::int32_t groups;
    std::int32_t width;
};

// The column-stochastic walk matrix P of an undirected graph, P[u, v] = w(u, v) / degree(v), its
// rows renumbered: first the hubs, each with slots of its own, padded to 16; from position
// first_group * 16 of the first run on, groups of 16 rows of nearly equal length, their slots
// interleaved (SELL-C-sigma: Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014). Padding points at
// position 0 with p = 0. All arrays are aligned to 64 bytes.
struct PprMatrix {
    std::int64_t positions;         // a multiple of 16; what arrays of values must hold
    std::int64_t hubs;              // positions 0 .. hubs - 1
    const std::int64_t* hub_slots;  // hubs + 1 values, multiples of 16
    std::int64_t runs;
    const PprRun* run;
    const std::int32_t* index;  // position of each slot's neighbour
    const float* p;
    const float* weight;    // w itself, exact
    const float* coupling;  // of each group (position / 16): largest share of a row's
                            // weight that stays inside the group
    const float* rounding;  // by position: what rounding its column of p to float32 moved, in L1
    const float* degree;    // by position: weighted degree, relative to the largest
};

struct PprResidual {
    double norm;   // |r|_1
    double sum;    // of the next iterate
    double moved;  // by the rounding of p: sum of rounding |x|
};

struct PprKernels {
    // One sweep of successive over-relaxation in place: x += omega (b + alpha P x - x), row by row
    // of hubs and group by group. Returns the sum of |changes| / omega.
    float (*sweep)(const PprMatrix&, const float* b, float* x, float alpha, float omega);
    // Adds to x, in proportion to degree, what its sum lacks of `total`, if that is more than
    // `least`; where x is 0, it stays 0.
    void (*spread)(const PprMatrix&, double total, double least, float* x);
    // r = b + alpha P x - x in float64, next = x + r.
    PprResidual (*certify)(const PprMatrix&, const float* b, const float* x, float* next,
                           double alpha);
    // The same with weights instead of the rounded p, on float64 values; y = x / degree. r is
    // rounded to float32, next may be x.
    PprResidual (*residual)(const PprMatrix&, const double* b, const double* x, const double* y,
                            float* r, double alpha);
};

// 16 right-hand sides at once, values of a position side by side: x and next hold 16 floats a
// position; b holds 16 for each of the positions `seeded` (ascending, closed by -1), those
// elsewhere being 0.
struct PprBatchKernels {
    // change: 16 values, as sweep() returns.
    void (*sweep16)(const PprMatrix&, const std::int32_t* seeded, const float* b, float* x,
                    float alpha, float omega, float* change);
    // norm, sum, moved: 16 values each.
    void (*certify16)(const PprMatrix&, const std::int32_t* seeded, const float* b, const float* x,
                      float* next, double alpha, double* norm, double* sum, double* moved);
};

}  // namespace bookrag::kernels
