#include "kernels/bounds.hpp"

#include "kernels/bytes.hpp"

BOOKRAG_KERNELS_BEGIN

namespace {

typedef std::int32_t I4 __attribute__((vector_size(16)));
typedef std::int32_t I4u __attribute__((vector_size(16), aligned(4)));

constexpr auto kStep = static_cast<std::int64_t>(sizeof(Bytes));
constexpr int kBlocks = 4 / kParts;  // at once: as many sums as stay in registers

BOOKRAG_INLINE void fill_query(Bytes& to, const std::int8_t* query) {
    std::int32_t four;
    __builtin_memcpy(&four, query, sizeof four);
    fill_part(to, four);
}

BOOKRAG_INLINE void write_bounds(const Bytes (&sums)[kBlocks * kParts], const BoundTerms& terms,
                                 const float* scales, const float* errors, float* out) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kBlocks * kParts; ++p) {
        IntPart sum;
        __builtin_memcpy(&sum, &sums[p], sizeof sum);
        const FloatPart scale = *reinterpret_cast<const FloatPartU*>(scales + kLanes * p);
        const FloatPart error = *reinterpret_cast<const FloatPartU*>(errors + kLanes * p);
        const FloatPart product =
            __builtin_convertvector(sum + sum - terms.shift, FloatPart) * terms.scale;
        *reinterpret_cast<FloatPartU*>(out + kLanes * p) =
            product * scale + (terms.base + terms.factor * error);
    }
}

void of_bytes(const std::int8_t* query, const std::uint8_t* blocks, std::int64_t n,
              std::int64_t width, const BoundTerms& terms, const float* scales, const float* errors,
              float* out) {
    for (std::int64_t i = 0; i < n; i += 16 * kBlocks) {
        Bytes sums[kBlocks * kParts] = {};
        const std::uint8_t* rows = blocks + i * width;
        for (std::int64_t c = 0; c < width; c += 4) {
            Bytes q;
            fill_query(q, query + c);
            BOOKRAG_UNROLL
            for (int p = 0; p < kBlocks * kParts; ++p) {
                Bytes x;
                load_part(x, rows + (p / kParts) * 16 * width + 16 * c + (p % kParts) * kStep);
                sums[p] = add_pairs(sums[p], pair_products(x, q));
            }
        }
        write_bounds(sums, terms, scales + i, errors + i, out + i);
    }
}

void of_nibbles(const std::int8_t* query, const std::uint8_t* blocks, std::int64_t n,
                std::int64_t width, const BoundTerms& terms, const float* scales,
                const float* errors, float* out) {
    for (std::int64_t i = 0; i < n; i += 16 * kBlocks) {
        Bytes sums[kBlocks * kParts] = {};
        const std::uint8_t* rows = blocks + i * width / 2;
        for (std::int64_t first = 0; first < width; first += 32) {
            // 8 pairs of products of at most 2 * 15 * 127 still fit 16 bits.
            Bytes words[kBlocks * kParts] = {};
            for (std::int64_t c = first; c < first + 32; c += 8) {
                Bytes low, high;
                fill_query(low, query + c);
                fill_query(high, query + c + 4);
                BOOKRAG_UNROLL
                for (int p = 0; p < kBlocks * kParts; ++p) {
                    Bytes x;
                    load_part(x, rows + (p / kParts) * 8 * width + 8 * c + (p % kParts) * kStep);
                    words[p] = add16(words[p], add16(pair_products(low_nibbles(x), low),
                                                     pair_products(high_nibbles(x), high)));
                }
            }
            BOOKRAG_UNROLL
            for (int p = 0; p < kBlocks * kParts; ++p) sums[p] = add_pairs(sums[p], words[p]);
        }
        write_bounds(sums, terms, scales + i, errors + i, out + i);
    }
}

// Sums of four products at once, so that their additions overlap.
BOOKRAG_INLINE void nibble_products(const std::int8_t* query, const std::uint8_t* const (&rows)[4],
                                    std::int64_t width, I4& out) {
    Bytes sums[4] = {};
    for (std::int64_t c = 0; c < width; c += 128) {
        BOOKRAG_UNROLL
        for (int p = 0; p < kParts; ++p) {
            Bytes low, high;
            load_part(low, query + c + p * kStep);
            load_part(high, query + c + 64 + p * kStep);
            BOOKRAG_UNROLL
            for (int r = 0; r < 4; ++r) {
                Bytes x;
                load_part(x, rows[r] + c / 2 + p * kStep);
                sums[r] = add_pairs(sums[r], add16(pair_products(low_nibbles(x), low),
                                                   pair_products(high_nibbles(x), high)));
            }
        }
    }
    std::int32_t lanes[4 * kLanes];
    BOOKRAG_UNROLL
    for (int r = 0; r < 4; ++r) store_part(lanes + kLanes * r, sums[r]);
    I4 row[4];
    BOOKRAG_UNROLL
    for (int r = 0; r < 4; ++r) {
        row[r] = *reinterpret_cast<const I4u*>(lanes + kLanes * r);
        for (int l = 4; l < kLanes; l += 4) {
            row[r] += *reinterpret_cast<const I4u*>(lanes + kLanes * r + l);
        }
    }
    // Turned and added: lane r becomes the sum of row r.
    const I4 even01 = __builtin_shufflevector(row[0], row[1], 0, 4, 2, 6) +
                      __builtin_shufflevector(row[0], row[1], 1, 5, 3, 7);
    const I4 even23 = __builtin_shufflevector(row[2], row[3], 0, 4, 2, 6) +
                      __builtin_shufflevector(row[2], row[3], 1, 5, 3, 7);
    out = __builtin_shufflevector(even01, even23, 0, 1, 4, 5) +
          __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
}

std::int64_t refine(const std::int8_t* query, const std::uint8_t* rows, std::int64_t width,
                    const RefineTerms& terms, const float* scales, const float* gains,
                    const float* bounds, float least, std::int32_t* ids, std::int64_t count) {
    constexpr std::int64_t kAhead = 16;  // rows, which lie anywhere
    const std::int64_t bytes = width / 2;
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < count; i += 4) {
        std::int32_t id[4];
        const std::uint8_t* four[4];
        BOOKRAG_UNROLL
        for (int r = 0; r < 4; ++r) {
            id[r] = ids[i + r < count ? i + r : count - 1];
            four[r] = rows + id[r] * bytes;
            if (i + r + kAhead < count) {
                const std::uint8_t* next = rows + ids[i + r + kAhead] * bytes;
                for (std::int64_t c = 0; c < bytes; c += 64) __builtin_prefetch(next + c);
            }
        }
        I4 sums;
        nibble_products(query, four, width, sums);
        for (int r = 0; r < 4 && i + r < count; ++r) {
            const float more = static_cast<float>(sums[r] - terms.shift) * terms.scale;
            const float bound = bounds[id[r]] + more * scales[id[r]] - terms.factor * gains[id[r]];
            ids[size] = id[r];
            size += bound >= least ? 1 : 0;
        }
    }
    return size;
}

std::int64_t count_of(const float* values, std::int64_t n, float least) {
    IntPart counts[kParts] = {};  // -1 each
    Lanes v;
    for (std::int64_t i = 0; i < n; i += 16) {
        load(v, values + i);
        BOOKRAG_UNROLL
        for (int p = 0; p < kParts; ++p) counts[p] += v.part[p] >= least;
    }
    std::int64_t sum = 0;
    for (const auto& part : counts) {
        for (int lane = 0; lane < kLanes; ++lane) sum -= part[lane];
    }
    return sum;
}

BOOKRAG_INLINE void larger(Lanes& a, const Lanes& b) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) a.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
}

float reached_by(const float* values, std::int64_t n, std::int64_t k, float* tops) {
    Lanes all, top, v;
    load(all, values);
    for (std::int64_t i = 0; i < n; i += kRowsAtOnce) {
        load(top, values + i);
        for (std::int64_t b = 16; b < kRowsAtOnce; b += 16) {
            load(v, values + i + b);
            larger(top, v);
        }
        store(tops + i / 4, top);
        larger(all, top);
    }
    float lanes[16];
    store(lanes, all);
    float high = kLeastBound;
    for (const float lane : lanes) high = lane > high ? lane : high;
    // Tops that k rows reach, are reached by k rows, if so many are no padding.
    const bool enough = k <= (n - kRowsAtOnce) / 4;
    const float* const counted = enough ? tops : values;
    const std::int64_t size = enough ? n / 4 : n;
    float low = kLeastBound;
    for (int step = 0; step < 24; ++step) {
        const float middle = (low + high) / 2;
        const std::int64_t count = count_of(counted, size, middle);
        if (count < k) {
            high = middle;
            continue;
        }
        low = middle;
        if (count <= k + k / 2) break;
    }
    return low;
}

BOOKRAG_INLINE std::uint32_t reach(const float* values, float least) {
    Lanes v;
    load(v, values);
    std::uint32_t bits = 0;
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) bits |= lane_bits(v.part[p] >= least) << (kLanes * p);
    return bits;
}

std::int64_t within(const float* values, const float* tops, std::int64_t n, float least,
                    float below, std::int32_t* out) {
    std::int64_t size = 0;
    for (std::int64_t first = 0; first < n; first += kRowsAtOnce) {
        if (reach(tops + first / 4, least) == 0) continue;
        for (std::int64_t i = first; i < first + kRowsAtOnce; i += 16) {
            auto bits = reach(values + i, least) & ~reach(values + i, below);
#if defined(__AVX512F__)
            IntPart rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
            rows += static_cast<std::int32_t>(i);
            _mm512_storeu_si512(out + size,
                                _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits),
                                                            reinterpret_cast<__m512i>(rows)));
            size += __builtin_popcount(bits);
#else
            for (; bits != 0; bits &= bits - 1) {
                out[size++] = static_cast<std::int32_t>(i + __builtin_ctz(bits));
            }
#endif
        }
    }
    return size;
}

}  // namespace

extern const BoundKernels bound_kernels{of_bytes, of_nibbles, refine, reached_by, within};

BOOKRAG_KERNELS_END
