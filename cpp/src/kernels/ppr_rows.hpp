// What the PageRank kernels share.
#pragma once

#include "kernels/lanes.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

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
