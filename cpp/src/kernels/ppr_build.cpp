#include "kernels/ppr_build.hpp"

#include "kernels/lanes.hpp"
#include "kernels/ppr_rows.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

constexpr double kInfinity = __builtin_inf();

// 1 / sum, 0 for 0; the least of those above 0 goes to `least`.
BOOKRAG_INLINE void invert_lanes(const D8& sum, double* to, D8& least) {
    const D8 inverse = sum > 0.0 ? 1.0 / sum : D8{};
    *reinterpret_cast<D8u*>(to) = inverse;
    const D8 candidate = inverse > 0.0 ? inverse : D8{} + kInfinity;
    least = candidate < least ? candidate : least;
}

// Weights of 16 slots in float64.
BOOKRAG_INLINE void weights16(const PprRows& m, std::int64_t s, D8& low, D8& high) {
    F16 w;
    load(w, m.weight + s);
    widen(low, high, w);
}

double invert(const PprRows& m) {
    double least = kInfinity;
    for (std::int64_t h = 0; h < m.hubs; ++h) {
        D8 low{};
        D8 high{};
        for (std::int64_t s = m.hub_slots[h]; s < m.hub_slots[h + 1]; s += 16) {
            D8 w_low, w_high;
            weights16(m, s, w_low, w_high);
            low += w_low;
            high += w_high;
        }
        m.inverse[h] = 1.0 / sum8(low + high);
        least = m.inverse[h] < least ? m.inverse[h] : least;
    }
    D8 least8 = D8{} + kInfinity;
    for (std::int64_t i = 0; i < m.runs; ++i) {
        const PprRun& run = m.run[i];
        std::int64_t s = run.first_slot;
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            D8 low{};
            D8 high{};
            for (int k = 0; k < run.width; ++k, s += 16) {
                D8 w_low, w_high;
                weights16(m, s, w_low, w_high);
                low += w_low;
                high += w_high;
            }
            invert_lanes(low, m.inverse + g * 16, least8);
            invert_lanes(high, m.inverse + g * 16 + 8, least8);
        }
    }
    double lanes[8];
    *reinterpret_cast<D8u*>(lanes) = least8;
    for (const double lane : lanes) least = lane < least ? lane : least;
    return least;
}

// p of 16 slots; `own` are the inverses of their rows. Adds what rounding the rows' own columns
// moves: those have the same weights, and are rounded like this elsewhere.
BOOKRAG_INLINE void normalise16(const PprRows& m, std::int64_t s, const D8& w_low, const D8& w_high,
                                const D8& own_low, const D8& own_high, D8& moved_low,
                                D8& moved_high) {
    const double* y = m.inverse;
    const std::int32_t* i = m.index + s;
    const D8 low = {y[i[0]], y[i[1]], y[i[2]], y[i[3]], y[i[4]], y[i[5]], y[i[6]], y[i[7]]};
    const D8 high = {y[i[8]], y[i[9]], y[i[10]], y[i[11]], y[i[12]], y[i[13]], y[i[14]], y[i[15]]};
    *reinterpret_cast<F8u*>(m.p + s) = __builtin_convertvector(w_low * low, F8);
    *reinterpret_cast<F8u*>(m.p + s + 8) = __builtin_convertvector(w_high * high, F8);
    const auto moved = [](D8& sum, const D8& exact) __attribute__((always_inline)) {
        const D8 rounded = __builtin_convertvector(__builtin_convertvector(exact, F8), D8);
        sum += rounded < exact ? exact - rounded : rounded - exact;
    };
    moved(moved_low, w_low * own_low);
    moved(moved_high, w_high * own_high);
}

constexpr double kUp = 1.000001;  // over the rounding of sums

void normalise(const PprRows& m, double least) {
    for (std::int64_t h = 0; h < m.hubs; ++h) {
        const D8 own = D8{} + m.inverse[h];
        D8 low{};
        D8 high{};
        for (std::int64_t s = m.hub_slots[h]; s < m.hub_slots[h + 1]; s += 16) {
            D8 w_low, w_high;
            weights16(m, s, w_low, w_high);
            normalise16(m, s, w_low, w_high, own, own, low, high);
        }
        m.rounding[h] = static_cast<float>(sum8(low + high) * kUp);
        m.degree[h] = static_cast<float>(least / m.inverse[h]);
    }
    for (std::int64_t i = 0; i < m.runs; ++i) {
        const PprRun& run = m.run[i];
        std::int64_t s = run.first_slot;
        for (std::int64_t g = run.first_group; g < run.first_group + run.groups; ++g) {
            const std::int64_t at = g * 16;
            const D8 own_low = *reinterpret_cast<const D8u*>(m.inverse + at);
            const D8 own_high = *reinterpret_cast<const D8u*>(m.inverse + at + 8);
            const auto group = static_cast<std::int32_t>(g);
            D8 moved_low{};
            D8 moved_high{};
            D8 inside_low{};
            D8 inside_high{};
            for (int k = 0; k < run.width; ++k, s += 16) {
                F16 w;
                D8 w_low, w_high;
                load(w, m.weight + s);
                widen(w_low, w_high, w);
                normalise16(m, s, w_low, w_high, own_low, own_high, moved_low, moved_high);
                const I16 column = *reinterpret_cast<const I16u*>(m.index + s);
                const F16 within = (F16)((I16)w & ((column >> 4) == group));
                widen(w_low, w_high, within);
                inside_low += w_low;
                inside_high += w_high;
            }
            const auto finish = [&](std::int64_t to, const D8& own,
                                    const D8& moved) __attribute__((always_inline)) {
                *reinterpret_cast<F8u*>(m.rounding + to) = __builtin_convertvector(moved * kUp, F8);
                const D8 degree = own > 0.0 ? least / own : D8{};
                *reinterpret_cast<F8u*>(m.degree + to) = __builtin_convertvector(degree, F8);
            };
            finish(at, own_low, moved_low);
            finish(at + 8, own_high, moved_high);
            const D8 a = inside_low * own_low;
            const D8 b = inside_high * own_high;
            double lanes[8];
            *reinterpret_cast<D8u*>(lanes) = a > b ? a : b;
            double most = 0.0;
            for (const double lane : lanes) most = lane > most ? lane : most;
            m.coupling[g] = static_cast<float>(most);
        }
    }
}

std::int32_t pack(std::int32_t slots, const std::int32_t* rows, const float* weights,
                  std::int32_t unflag, std::int32_t* targets, float* kept, std::int32_t* before,
                  std::uint16_t* in, std::uint16_t* flagged) {
    std::int32_t next = 0;
    for (std::int32_t s = 0; s < slots; s += 16) {
        before[s / 16] = next;
#if defined(__AVX512F__)
        const __m512i row = _mm512_loadu_si512(rows + s);
        const __mmask16 some = _mm512_cmpge_epi32_mask(row, _mm512_setzero_si512());
        const __mmask16 marked = _mm512_cmpgt_epi32_mask(row, _mm512_set1_epi32(unflag));
        _mm512_storeu_si512(
            targets + next,
            _mm512_maskz_compress_epi32(some, _mm512_and_si512(row, _mm512_set1_epi32(unflag))));
        _mm512_storeu_ps(kept + next, _mm512_maskz_compress_ps(some, _mm512_loadu_ps(weights + s)));
        in[s / 16] = static_cast<std::uint16_t>(some);
        flagged[s / 16] = static_cast<std::uint16_t>(marked);
        next += __builtin_popcount(some);
#else
        unsigned some = 0;
        unsigned marked = 0;
        for (int lane = 0; lane < 16; ++lane) {
            // Written first, decided after: whether a slot stays is a coin toss that no branch
            // predictor wins.
            const std::int32_t row = rows[s + lane];
            const unsigned stays = row >= 0 ? 1 : 0;
            targets[next] = row & unflag;
            kept[next] = weights[s + lane];
            next += static_cast<std::int32_t>(stays);
            some |= stays << lane;
            marked |= (row > unflag ? 1U : 0U) << lane;
        }
        in[s / 16] = static_cast<std::uint16_t>(some);
        flagged[s / 16] = static_cast<std::uint16_t>(marked);
#endif
    }
    return next;
}

}  // namespace

extern const PprBuildKernels ppr_build_kernels;
const PprBuildKernels ppr_build_kernels{invert, normalise, pack};
BOOKRAG_KERNELS_END
