// What the PageRank kernels share.
#pragma once

#include "kernels/lanes.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

BOOKRAG_INLINE double sum8(const D8& v) {
    double a[8];
    *reinterpret_cast<D8u*>(a) = v;
    for (int half = 4; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) a[i] += a[i + half];
    }
    return a[0];
}

BOOKRAG_INLINE void widen(D8& low, D8& high, const F16& v) {
    const F8 a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    const F8 b = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    low = __builtin_convertvector(a, D8);
    high = __builtin_convertvector(b, D8);
}

// How far the rows of a group may be over-relaxed. They are updated at once, from each other's old
// values, so their mutual coupling c (a bound on the spectral radius of the group's block of P) is
// not relaxed away: it shrinks by |1 - step (1 + alpha c)| a sweep. That is held below what the
// sweep as a whole is sure of, sqrt(omega - 1), or below alpha c, which step = 1 gives. It also
// keeps (2 / step - 1) I + alpha (the blocks) positive definite, hence the sweep convergent
// (Ostrowski-Reich). Uncoupled groups, which are most, take omega as it is.
BOOKRAG_INLINE float group_step(float omega, float sure, float alpha, float coupling) {
    const float inner = alpha * coupling;
    const float limit = (1.0F + (inner > sure ? inner : sure)) / (1.0F + inner);
    return omega < limit ? omega : limit;
}

}  // namespace
BOOKRAG_KERNELS_END
