// Sixteen right-hand sides at once: the values of a position fill one cache line, so that a slot
// costs one load of a line and no gather, and rows are swept one after the other.
#include "kernels/lanes.hpp"
#include "kernels/ppr.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

// Walks the rows in order: row(position, first slot, slots, stride between slots).
template <typename Row>
BOOKRAG_INLINE void each_row(const PprMatrix& m, const Row& row) {
    for (std::int64_t h = 0; h < m.hubs; ++h) {
        row(h, m.hub_slots[h], m.hub_slots[h + 1] - m.hub_slots[h], 1);
    }
    for (std::int64_t i = 0; i < m.runs; ++i) {
        const PprRun& run = m.run[i];
        std::int64_t s = run.first_slot;
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            for (int lane = 0; lane < 16; ++lane) row(g * 16 + lane, s + lane, run.width, 16);
            s += std::int64_t{run.width} * 16;
        }
    }
}

void sweep16(const PprMatrix& m, const std::int32_t* seeded, const float* b, float* x, float alpha,
             float omega, float* change_out) {
    F16 changes{};
    const auto row = [&](std::int64_t at, std::int64_t s, std::int64_t slots, std::int64_t stride)
                         __attribute__((always_inline)) {
                             F16 total{};
                             for (std::int64_t k = 0; k < slots; ++k, s += stride) {
                                 F16 v;
                                 load(v, x + std::int64_t{m.index[s]} * 16);
                                 total += m.p[s] * v;
                             }
                             F16 old;
                             F16 right{};
                             load(old, x + at * 16);
                             if (at == *seeded) {
                                 load(right, b);
                                 b += 16;
                                 ++seeded;
                             }
                             const F16 change = right + alpha * total - old;
                             store(x + at * 16, old + omega * change);
                             changes += (F16)((I16)change & 0x7fffffff);
                         };
    each_row(m, row);
    store(change_out, changes);
}

void certify16(const PprMatrix& m, const std::int32_t* seeded, const float* b, const float* x,
               float* next, double alpha, double* norm_out, double* sum_out, double* moved_out) {
    D8 norm[2] = {};
    D8 sum[2] = {};
    D8 moved[2] = {};
    const auto row = [&](std::int64_t at, std::int64_t s, std::int64_t slots,
                         std::int64_t stride) __attribute__((always_inline)) {
        D8 total[2] = {};
        for (std::int64_t k = 0; k < slots; ++k, s += stride) {
            const float* v = x + std::int64_t{m.index[s]} * 16;
            const double p = static_cast<double>(m.p[s]);
            total[0] += p * __builtin_convertvector(*reinterpret_cast<const F8u*>(v), D8);
            total[1] += p * __builtin_convertvector(*reinterpret_cast<const F8u*>(v + 8), D8);
        }
        const bool seed = at == *seeded;
        const double rounding = static_cast<double>(m.rounding[at]);
        for (int half = 0; half < 2; ++half) {
            const std::int64_t place = at * 16 + half * 8;
            const D8 old = __builtin_convertvector(*reinterpret_cast<const F8u*>(x + place), D8);
            D8 right{};
            if (seed) {
                right = __builtin_convertvector(*reinterpret_cast<const F8u*>(b + half * 8), D8);
            }
            const D8 r = right + alpha * total[half] - old;
            const D8 after = old + r;
            norm[half] += r < 0.0 ? -r : r;
            sum[half] += after;
            moved[half] += rounding * (old < 0.0 ? -old : old);
            *reinterpret_cast<F8u*>(next + place) = __builtin_convertvector(after, F8);
        }
        if (seed) {
            b += 16;
            ++seeded;
        }
    };
    each_row(m, row);
    for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<D8u*>(norm_out + half * 8) = norm[half];
        *reinterpret_cast<D8u*>(sum_out + half * 8) = sum[half];
        *reinterpret_cast<D8u*>(moved_out + half * 8) = moved[half];
    }
}

}  // namespace

extern const PprBatchKernels ppr_batch_kernels;
const PprBatchKernels ppr_batch_kernels{sweep16, certify16};
BOOKRAG_KERNELS_END
