#include "kernels/skyline.hpp"

#include "kernels/lanes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

BOOKRAG_KERNELS_BEGIN

namespace {

constexpr float kLow = -__builtin_inff();

// One bit a lane.
BOOKRAG_INLINE std::uint32_t bits_of(const I16& mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask));
#elif defined(__AVX2__)
    const auto* half = reinterpret_cast<const __m256*>(&mask);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(half[0]) | _mm256_movemask_ps(half[1])
                                                                        << 8);
#elif defined(__SSE2__)
    const auto* part = reinterpret_cast<const __m128*>(&mask);
    return static_cast<std::uint32_t>(_mm_movemask_ps(part[0]) | _mm_movemask_ps(part[1]) << 4 |
                                      _mm_movemask_ps(part[2]) << 8 |
                                      _mm_movemask_ps(part[3]) << 12);
#else
    // A lane is 0 or -1: keep bit i of lane i and add up.
    const I16 bit = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    const I16 some = mask & bit;
    std::int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum |= some[i];
    return static_cast<std::uint32_t>(sum);
#endif
}

BOOKRAG_INLINE void splat(F16& to, float value) {
    to = F16{} + value;
}

// 16 rows of D values, row after row, into D columns of 16. Lane l of a column is row order(l).
template <int D>
BOOKRAG_INLINE void columns_of(const float* rows, F16 (&column)[D]) {
#if defined(__AVX512F__)
    if constexpr (D == 2) {
        F16 a, b;
        load(a, rows);
        load(b, rows + 16);
        column[0] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                            28, 30);
        column[1] = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                            29, 31);
        return;
    }
    if constexpr (D == 3) {
        F16 a, b, c;
        load(a, rows);
        load(b, rows + 16);
        load(c, rows + 32);
        const F16 x =
            __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
        const F16 y =
            __builtin_shufflevector(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);
        const F16 z =
            __builtin_shufflevector(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
        column[0] =
            __builtin_shufflevector(x, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
        column[1] =
            __builtin_shufflevector(y, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30);
        column[2] =
            __builtin_shufflevector(z, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);
        return;
    }
    if constexpr (D == 4) {
        F16 a, b, c, d;
        load(a, rows);
        load(b, rows + 16);
        load(c, rows + 32);
        load(d, rows + 48);
        const F16 p =
            __builtin_shufflevector(a, b, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
        const F16 q =
            __builtin_shufflevector(c, d, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
        const F16 r = __builtin_shufflevector(a, b, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19,
                                              23, 27, 31);
        const F16 s = __builtin_shufflevector(c, d, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19,
                                              23, 27, 31);
        column[0] =
            __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        column[1] = __builtin_shufflevector(p, q, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                            29, 30, 31);
        column[2] =
            __builtin_shufflevector(r, s, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        column[3] = __builtin_shufflevector(r, s, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                            29, 30, 31);
        return;
    }
#endif
    for (int c = 0; c < D; ++c) {
        float values[16];
        for (int i = 0; i < 16; ++i) values[i] = rows[i * D + c];
        load(column[c], values);
    }
}

// Lanes at which `point` (one value a column) dominates the 16 rows.
template <int D>
BOOKRAG_INLINE void dominated_by(const float* point, const F16 (&column)[D], I16& result) {
    F16 p;
    splat(p, point[0]);
    I16 all = p >= column[0];
    I16 any = p > column[0];
    for (int c = 1; c < D; ++c) {
        splat(p, point[c]);
        all &= p >= column[c];
        any |= p > column[c];
    }
    result = all & any;
}

// Lanes whose 16 points (groups of D columns) dominate `point`, one splat a column.
template <int D>
BOOKRAG_INLINE std::uint32_t dominators(const float* group, const F16 (&point)[D]) {
    F16 q;
    load(q, group);
    I16 all = q >= point[0];
    I16 any = q > point[0];
    for (int c = 1; c < D; ++c) {
        load(q, group + c * 16);
        all &= q >= point[c];
        any |= q > point[c];
    }
    return bits_of(all & any);
}

template <int D>
bool find_nan(const float* scores, std::int64_t n, std::int64_t* best_row) {
    I16 bad{};
    F16 best;
    splat(best, kLow);
    I16 where{};
    I16 row = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        F16 column[D];
        columns_of<D>(scores + i * D, column);
        F16 sum = column[0];
        bad |= column[0] != column[0];
        for (int c = 1; c < D; ++c) {
            bad |= column[c] != column[c];
            sum += column[c];
        }
        const I16 better = sum > best;
        best = better ? sum : best;
        where = better ? row : where;
        row += 16;
    }
    bool nan = bits_of(bad) != 0;
    float top = kLow;
    *best_row = 0;
    for (int lane = 0; lane < 16; ++lane) {
        if (best[lane] > top) {
            top = best[lane];
            *best_row = where[lane];
        }
    }
    for (; i < n; ++i) {
        float sum = 0.0F;
        for (int c = 0; c < D; ++c) {
            nan |= scores[i * D + c] != scores[i * D + c];
            sum += scores[i * D + c];
        }
        if (sum > top) {
            top = sum;
            *best_row = i;
        }
    }
    return nan;
}

template <int D>
std::int64_t discard(const float* scores, std::int64_t n, const float* filters, std::int32_t count,
                     std::int32_t* kept) {
    std::int32_t* out = kept;
    for (std::int64_t i = 0; i < n; i += 16) {
        F16 column[D];
        std::uint32_t alive = 0xFFFF;
        if (i + 16 <= n) {
            columns_of<D>(scores + i * D, column);
        } else {
            float last[16 * D] = {};
            for (std::int64_t j = 0; j < (n - i) * D; ++j) last[j] = scores[i * D + j];
            columns_of<D>(last, column);
            alive = (1U << (n - i)) - 1;
        }
        for (std::int32_t f = 0; f < count && alive != 0; ++f) {
            I16 gone;
            dominated_by<D>(filters + f * D, column, gone);
            alive &= ~bits_of(gone);
        }
#if defined(__AVX512F__)
        const __m512i lanes =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i rows = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(i)));
        // Into a register first: a compressing store to memory is slow on some CPUs.
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(alive), rows));
        out += __builtin_popcount(alive);
#else
        for (; alive != 0; alive &= alive - 1) {
            *out++ = static_cast<std::int32_t>(i) + __builtin_ctz(alive);
        }
#endif
    }
    return out - kept;
}

template <int D>
void coverage(const float* blocks, std::int32_t num_blocks, const float* points, std::int32_t count,
              std::uint16_t* bits) {
    for (std::int32_t p = 0; p < count; ++p) {
        for (std::int32_t b = 0; b < num_blocks; ++b) {
            F16 column[D];
            for (int c = 0; c < D; ++c) load(column[c], blocks + (b * D + c) * 16);
            I16 gone;
            dominated_by<D>(points + p * D, column, gone);
            *bits++ = static_cast<std::uint16_t>(bits_of(gone));
        }
    }
}

template <int D>
std::int64_t sort_filter(const float* points, std::int64_t n, float* window, std::int32_t* kept) {
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        F16 point[D];
        for (int c = 0; c < D; ++c) splat(point[c], points[i * D + c]);
        bool gone = false;
        for (std::int64_t b = 0; b * 16 < size && !gone; ++b) {
            gone = dominators<D>(window + b * 16 * D, point) != 0;
        }
        if (gone) continue;
        float* block = window + size / 16 * 16 * D;
        if (size % 16 == 0) {
            for (int c = 0; c < D * 16; ++c) block[c] = kLow;  // dominates nothing
        }
        for (int c = 0; c < D; ++c) block[c * 16 + size % 16] = points[i * D + c];
        kept[size++] = static_cast<std::int32_t>(i);
    }
    return size;
}

template <int D>
void next_level(const float* groups, std::int64_t num_groups, float* above) {
    for (std::int64_t g = 0; g < num_groups; ++g) {
        for (int c = 0; c < D; ++c) {
            const float* values = groups + (g * D + c) * 16;
            float most = values[0];
            for (int i = 1; i < 16; ++i) most = values[i] > most ? values[i] : most;
            above[(g / 16 * D + c) * 16 + g % 16] = most;
        }
    }
    for (std::int64_t g = num_groups; g % 16 != 0; ++g) {
        for (int c = 0; c < D; ++c) above[(g / 16 * D + c) * 16 + g % 16] = kLow;
    }
}

template <int D>
bool is_dominated(const DominanceTree& tree, const F16 (&point)[D]) {
    struct Visit {
        std::int32_t level;
        std::int64_t group;
    };
    Visit stack[16 * DominanceTree::kMaxLevels];
    int depth = 0;
    stack[depth++] = {tree.levels - 1, 0};
    while (depth > 0) {
        const Visit at = stack[--depth];
        // Of a box, its upper corner: only if that dominates the point can one within do.
        std::uint32_t hit = dominators<D>(tree.groups[at.level] + at.group * 16 * D, point);
        if (at.level == 0) {
            if (hit != 0) return true;
            continue;
        }
        for (; hit != 0; hit &= hit - 1) {
            stack[depth++] = {at.level - 1, at.group * 16 + __builtin_ctz(hit)};
        }
    }
    return false;
}

template <int D>
std::int64_t undominated(const DominanceTree& tree, std::int64_t n, std::int32_t* kept) {
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const float* block = tree.groups[0] + i / 16 * 16 * D + i % 16;
        F16 point[D];
        for (int c = 0; c < D; ++c) splat(point[c], block[c * 16]);
        if (!is_dominated<D>(tree, point)) kept[size++] = static_cast<std::int32_t>(i);
    }
    return size;
}

// ---------------------------------------------------------------- d at run time

bool find_nan_any(const float* scores, std::int64_t n, std::int32_t d, std::int64_t* best_row) {
    return d == 2   ? find_nan<2>(scores, n, best_row)
           : d == 3 ? find_nan<3>(scores, n, best_row)
                    : find_nan<4>(scores, n, best_row);
}

std::int64_t discard_any(const float* scores, std::int64_t n, std::int32_t d, const float* filters,
                         std::int32_t count, std::int32_t* kept) {
    return d == 2   ? discard<2>(scores, n, filters, count, kept)
           : d == 3 ? discard<3>(scores, n, filters, count, kept)
                    : discard<4>(scores, n, filters, count, kept);
}

void coverage_any(const float* blocks, std::int32_t num_blocks, std::int32_t d, const float* points,
                  std::int32_t count, std::uint16_t* bits) {
    d == 3 ? coverage<3>(blocks, num_blocks, points, count, bits)
           : coverage<4>(blocks, num_blocks, points, count, bits);
}

std::int64_t sort_filter_any(const float* points, std::int64_t n, std::int32_t d, float* window,
                             std::int32_t* kept) {
    return d == 3 ? sort_filter<3>(points, n, window, kept)
                  : sort_filter<4>(points, n, window, kept);
}

void next_level_any(const float* groups, std::int64_t num_groups, std::int32_t d, float* above) {
    d == 3 ? next_level<3>(groups, num_groups, above) : next_level<4>(groups, num_groups, above);
}

std::int64_t undominated_any(const DominanceTree* tree, std::int64_t n, std::int32_t d,
                             std::int32_t* kept) {
    return d == 3 ? undominated<3>(*tree, n, kept) : undominated<4>(*tree, n, kept);
}

}  // namespace

extern const SkylineKernels skyline_kernels{find_nan_any,    discard_any,    coverage_any,
                                            sort_filter_any, next_level_any, undominated_any};

BOOKRAG_KERNELS_END
