// One right-hand side. Rows of a group are gathered 16 at a time; see ppr.hpp for the layout.
#include "kernels/ppr.hpp"

#include "kernels/lanes.hpp"
#include "kernels/ppr_rows.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

// Gathering by 16 scalar loads beats the gather instruction while values lie in the nearest cache
// (Zen 5: 0.21 against 0.36 ns a slot at 1e3 rows), loses beyond (1e6 rows: 0.55 against 0.7 and
// more). Only AVX-512 has one that is worth it.
struct Near {
    BOOKRAG_INLINE void gather(F16& to, const float* x, const std::int32_t* i) {
        to = F16{x[i[0]], x[i[1]], x[i[2]],  x[i[3]],  x[i[4]],  x[i[5]],  x[i[6]],  x[i[7]],
                 x[i[8]], x[i[9]], x[i[10]], x[i[11]], x[i[12]], x[i[13]], x[i[14]], x[i[15]]};
    }
};
#if defined(__AVX512F__)
struct Far {
    BOOKRAG_INLINE void gather(F16& to, const float* x, const std::int32_t* i) {
        to =
            (F16)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, _mm512_loadu_si512(i), x, 4);
    }
};
#else
using Far = Near;
#endif
constexpr std::int64_t kNear = 262144;  // positions; 1 MiB of values, a nearest-but-one cache

BOOKRAG_INLINE float sum16(const F16& v) {
    float a[16];
    store(a, v);
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) a[i] += a[i + half];
    }
    return a[0];
}

BOOKRAG_INLINE void absolute(F16& v) {
    v = (F16)((I16)v & 0x7fffffff);
}

BOOKRAG_INLINE double absolute(double v) {
    return v < 0.0 ? -v : v;
}

template <typename Gather>
BOOKRAG_INLINE float hub_sum(const PprMatrix& m, std::int64_t hub, const float* x) {
    F16 total{};
    for (std::int64_t s = m.hub_slots[hub]; s < m.hub_slots[hub + 1]; s += 16) {
        F16 v;
        F16 p;
        Gather::gather(v, x, m.index + s);
        load(p, m.p + s);
        total += p * v;
    }
    return sum16(total);
}

// Rows of a run whose width the compiler knows (or 0: takes it from the run).
template <typename Gather, int kWidth>
BOOKRAG_INLINE void sweep_run(const PprMatrix& m, const PprRun& run, const float* b, float* x,
                              float alpha, float omega, float sure, F16& changes) {
    const int width = kWidth > 0 ? kWidth : run.width;
    const std::int32_t* index = m.index + run.first_slot;
    const float* weights = m.p + run.first_slot;
    for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
        F16 total{};
        for (int k = 0; k < width; ++k) {
            F16 v;
            F16 p;
            Gather::gather(v, x, index);
            load(p, weights);
            total += p * v;
            index += 16;
            weights += 16;
        }
        const float step = group_step(omega, sure, alpha, m.coupling[g]);
        F16 old;
        F16 right;
        load(old, x + g * 16);
        load(right, b + g * 16);
        F16 change = right + alpha * total - old;
        store(x + g * 16, old + step * change);
        absolute(change);
        changes += change;
    }
}

template <typename Gather>
BOOKRAG_INLINE float sweep_all(const PprMatrix& m, const float* b, float* x, float alpha,
                               float omega) {
    float hubs = 0.0F;
    for (std::int64_t h = 0; h < m.hubs; ++h) {
        const float change = b[h] + alpha * hub_sum<Gather>(m, h, x) - x[h];
        x[h] += omega * change;
        hubs += change < 0.0F ? -change : change;
    }
    F16 changes{};
    const float sure = omega > 1.0F ? __builtin_sqrtf(omega - 1.0F) : 0.0F;
    for (std::int64_t r = 0; r < m.runs; ++r) {
        const PprRun& run = m.run[r];
        switch (run.width) {
            case 1:
                sweep_run<Gather, 1>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 2:
                sweep_run<Gather, 2>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 3:
                sweep_run<Gather, 3>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 4:
                sweep_run<Gather, 4>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 5:
                sweep_run<Gather, 5>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 6:
                sweep_run<Gather, 6>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 7:
                sweep_run<Gather, 7>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 8:
                sweep_run<Gather, 8>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 9:
                sweep_run<Gather, 9>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 10:
                sweep_run<Gather, 10>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 11:
                sweep_run<Gather, 11>(m, run, b, x, alpha, omega, sure, changes);
                break;
            case 12:
                sweep_run<Gather, 12>(m, run, b, x, alpha, omega, sure, changes);
                break;
            default:
                sweep_run<Gather, 0>(m, run, b, x, alpha, omega, sure, changes);
                break;
        }
    }
    return hubs + sum16(changes);
}

float sweep(const PprMatrix& m, const float* b, float* x, float alpha, float omega) {
    return m.positions <= kNear ? sweep_all<Near>(m, b, x, alpha, omega)
                                : sweep_all<Far>(m, b, x, alpha, omega);
}

void spread(const PprMatrix& m, double total, double least, float* x) {
    // float32 sums of few terms, gathered in float64.
    constexpr std::int64_t kFew = 16 * 64;
    D8 sums{};
    D8 degrees{};
    const auto gather = [](D8& to, const F16& from) __attribute__((always_inline)) {
        D8 low, high;
        widen(low, high, from);
        to += low + high;
    };
    for (std::int64_t begin = 0; begin < m.positions; begin += kFew) {
        const std::int64_t end = begin + kFew < m.positions ? begin + kFew : m.positions;
        F16 sum{};
        F16 degree{};
        for (std::int64_t at = begin; at < end; at += 16) {
            F16 v;
            F16 d;
            load(v, x + at);
            load(d, m.degree + at);
            sum += v;
            degree += (F16)((I16)d & (v != 0.0F));
        }
        gather(sums, sum);
        gather(degrees, degree);
    }
    const double missing = total - sum8(sums);
    const double exact = missing / sum8(degrees);
    // Steps beyond would overflow times a degree, or come from degrees that are all 0 in float32.
    constexpr double kLongest = 1e30;
    if (!(absolute(missing) > least && absolute(exact) < kLongest)) return;
    const auto step = static_cast<float>(exact);
    for (std::int64_t at = 0; at < m.positions; at += 16) {
        F16 v;
        F16 d;
        load(v, x + at);
        load(d, m.degree + at);
        store(x + at, v + step * (F16)((I16)d & (v != 0.0F)));
    }
}

template <typename Gather>
BOOKRAG_INLINE void certify_all(const PprMatrix& m, const float* b, const float* x, float* next,
                                double alpha, PprResidual& result) {
    double hub_norm = 0.0;
    double hub_sum = 0.0;
    double hub_moved = 0.0;
    const auto slots16 = [&](std::int64_t s, D8& low, D8& high) __attribute__((always_inline)) {
        F16 v;
        F16 p;
        Gather::gather(v, x, m.index + s);
        load(p, m.p + s);
        D8 v_low, v_high, p_low, p_high;
        widen(v_low, v_high, v);
        widen(p_low, p_high, p);
        low += p_low * v_low;
        high += p_high * v_high;
    };
    for (std::int64_t h = 0; h < m.hubs; ++h) {
        D8 low{};
        D8 high{};
        for (std::int64_t s = m.hub_slots[h]; s < m.hub_slots[h + 1]; s += 16) {
            slots16(s, low, high);
        }
        const double r =
            static_cast<double>(b[h]) + alpha * sum8(low + high) - static_cast<double>(x[h]);
        const double after = static_cast<double>(x[h]) + r;
        next[h] = static_cast<float>(after);
        hub_norm += absolute(r);
        hub_sum += after;
        hub_moved += static_cast<double>(m.rounding[h]) * absolute(static_cast<double>(x[h]));
    }
    D8 norm{};
    D8 sum{};
    D8 moved{};
    const auto finish = [&](std::int64_t at, const D8& total,
                            F8& rounded) __attribute__((always_inline)) {
        const D8 old = __builtin_convertvector(*reinterpret_cast<const F8u*>(x + at), D8);
        const D8 right = __builtin_convertvector(*reinterpret_cast<const F8u*>(b + at), D8);
        const D8 r = right + alpha * total - old;
        const D8 after = old + r;
        norm += r < 0.0 ? -r : r;
        sum += after;
        moved += __builtin_convertvector(*reinterpret_cast<const F8u*>(m.rounding + at), D8) *
                 (old < 0.0 ? -old : old);
        rounded = __builtin_convertvector(after, F8);
    };
    for (std::int64_t i = 0; i < m.runs; ++i) {
        const PprRun& run = m.run[i];
        std::int64_t s = run.first_slot;
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            D8 low{};
            D8 high{};
            for (int k = 0; k < run.width; ++k, s += 16) slots16(s, low, high);
            F8 rounded;
            finish(g * 16, low, rounded);
            *reinterpret_cast<F8u*>(next + g * 16) = rounded;
            finish(g * 16 + 8, high, rounded);
            *reinterpret_cast<F8u*>(next + g * 16 + 8) = rounded;
        }
    }
    result = {hub_norm + sum8(norm), hub_sum + sum8(sum), hub_moved + sum8(moved)};
}

PprResidual certify(const PprMatrix& m, const float* b, const float* x, float* next, double alpha) {
    PprResidual result;
    if (m.positions <= kNear) {
        certify_all<Near>(m, b, x, next, alpha, result);
    } else {
        certify_all<Far>(m, b, x, next, alpha, result);
    }
    return result;
}

PprResidual residual(const PprMatrix& m, const double* b, const double* x, const double* y,
                     float* r32, double alpha) {
    double hub_norm = 0.0;
    double hub_sum = 0.0;
    const auto slots8 = [&](std::int64_t s, D8& total) __attribute__((always_inline)) {
        const std::int32_t* i = m.index + s;
        const D8 v = {y[i[0]], y[i[1]], y[i[2]], y[i[3]], y[i[4]], y[i[5]], y[i[6]], y[i[7]]};
        total += __builtin_convertvector(*reinterpret_cast<const F8u*>(m.weight + s), D8) * v;
    };
    for (std::int64_t h = 0; h < m.hubs; ++h) {
        D8 low{};
        D8 high{};
        for (std::int64_t s = m.hub_slots[h]; s < m.hub_slots[h + 1]; s += 16) {
            slots8(s, low);
            slots8(s + 8, high);
        }
        const double r = b[h] + alpha * sum8(low + high) - x[h];
        r32[h] = static_cast<float>(r);
        hub_norm += absolute(r);
        hub_sum += x[h] + r;
    }
    D8 norm{};
    D8 sum{};
    for (std::int64_t i = 0; i < m.runs; ++i) {
        const PprRun& run = m.run[i];
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            for (int half = 0; half < 16; half += 8) {
                D8 total{};
                std::int64_t s =
                    run.first_slot + (g - run.first_group) * run.width * std::int64_t{16} + half;
                for (int k = 0; k < run.width; ++k, s += 16) slots8(s, total);
                const std::int64_t at = g * 16 + half;
                const D8 old = *reinterpret_cast<const D8u*>(x + at);
                const D8 r = *reinterpret_cast<const D8u*>(b + at) + alpha * total - old;
                norm += r < 0.0 ? -r : r;
                sum += old + r;
                *reinterpret_cast<F8u*>(r32 + at) = __builtin_convertvector(r, F8);
            }
        }
    }
    return {hub_norm + sum8(norm), hub_sum + sum8(sum), 0.0};
}

}  // namespace

extern const PprKernels ppr_kernels;
const PprKernels ppr_kernels{sweep, spread, certify, residual};
BOOKRAG_KERNELS_END
