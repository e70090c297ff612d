#include "kernels/entity_resolution.hpp"

#include "kernels/candidates.hpp"
#include "kernels/lanes.hpp"

BOOKRAG_KERNELS_BEGIN

namespace {

typedef std::uint8_t Bytes __attribute__((vector_size(kRows)));

constexpr int kMost = ResolutionKernels::kMaxColumns;
// Columns whose network is written out: more would be carried to and fro by the compiler.
#if defined(__AVX2__)
constexpr int kInRegisters = 16;
#else
constexpr int kInRegisters = 11;
#endif

// ---------------------------------------------------------------- network

// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, Algorithm M) of kMost
// columns. Its exchanges among the first k, in their order, are a network for k: one with a column
// that is not there would find the best already first.
struct Network {
    int count = 0;
    std::uint8_t first[543] = {};
    std::uint8_t second[543] = {};
};

constexpr Network network(int columns) {
    Network out;
    for (int p = kMost / 2; p > 0; p /= 2) {
        int q = kMost / 2;
        int r = 0;
        int d = p;
        while (true) {
            for (int i = 0; i < columns - d; ++i) {
                if ((i & p) != r) continue;
                out.first[out.count] = static_cast<std::uint8_t>(i);
                out.second[out.count++] = static_cast<std::uint8_t>(i + d);
            }
            if (q == p) break;
            d = q - p;
            q /= 2;
            r = p;
        }
    }
    return out;
}

// Best first. Written out exchange by exchange, so that all candidates stay in registers.
template <int K, int Step = 0>
BOOKRAG_INLINE void sort(Candidates (&c)[K]) {
    constexpr Network steps = network(K);
    if constexpr (Step < steps.count) {
        exchange(c[steps.first[Step]], c[steps.second[Step]]);
        sort<K, Step + 1>(c);
    }
}

// ---------------------------------------------------------------- rule

struct Output {
    std::uint8_t* cases;
    std::int32_t* sizes;
    std::int32_t* order;
};

struct Thresholds {
    float g;
    float min_score;
};

// Of 16 rows of k sorted candidates, a part at a time: gcc compares longer vectors lane by lane.
BOOKRAG_INLINE void decide(const Candidates* c, int k, Thresholds least, Output out) {
    for (int part = 0; part < 16 / kRows; ++part) {
        Floats previous;
        scores_of(c[0], part, previous);
        Ints alive = previous >= least.min_score;  // lanes are 0 or -1
        Ints size = -alive;
        for (int j = 1; j < k; ++j) {
            Floats score;
            scores_of(c[j], part, score);
            alive &= score >= least.g * previous;
            size -= alive;
            previous = score;
        }
        __builtin_memcpy(out.sizes + part * kRows, &size, sizeof(size));
        const Ints kind = ((size == 1) & 1) | ((size > 1) & (size < k) & 2);
        const Bytes narrow = __builtin_convertvector(kind, Bytes);
        __builtin_memcpy(out.cases + part * kRows, &narrow, sizeof(narrow));
    }
    write_order(c, k, out.order);
}

// ---------------------------------------------------------------- blocks of 16 rows

template <int K>
struct InRegisters {
    Thresholds least;

    [[gnu::always_inline]] inline void operator()(const float* rows, Ints& good, Output out) const {
        Candidates c[K];
        read(rows, K, good, c);
        sort<K>(c);
        decide(c, K, least, out);
    }
};

// More columns than registers hold: exchanged in the first-level cache.
struct InCache {
    Thresholds least;
    int k;
    Network steps;

    [[gnu::always_inline]] inline void operator()(const float* rows, Ints& good, Output out) const {
        Candidates c[kMost];
        read(rows, k, good, c);
        for (int step = 0; step < steps.count; ++step) {
            exchange(c[steps.first[step]], c[steps.second[step]]);
        }
        decide(c, k, least, out);
    }
};

template <typename Block>
BOOKRAG_INLINE bool in_blocks(const float* scores, std::int64_t n, int k, const Block& block,
                              Output out) {
    Ints good = Ints{} - 1;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        block(scores + i * k, good, {out.cases + i, out.sizes + i, out.order + i * k});
    }
    if (i < n) {
        float rows[16 * kMost];
        std::uint8_t cases[16];
        std::int32_t sizes[16];
        std::int32_t order[16 * kMost];
        const auto left = static_cast<std::size_t>(n - i);
        const auto width = static_cast<std::size_t>(k);
        __builtin_memset(rows, 0, 16 * width * sizeof(float));
        __builtin_memcpy(rows, scores + i * k, left * width * sizeof(float));
        block(rows, good, {cases, sizes, order});
        __builtin_memcpy(out.cases + i, cases, left);
        __builtin_memcpy(out.sizes + i, sizes, left * sizeof(std::int32_t));
        __builtin_memcpy(out.order + i * k, order, left * width * sizeof(std::int32_t));
    }
    std::int32_t every = -1;
    for (int lane = 0; lane < kRows; ++lane) every &= good[lane];
    return every != 0;
}

template <int K>
bool drop(const float* scores, std::int64_t n, int k, Thresholds least, Output out) {
    if constexpr (K > kInRegisters) {
        return in_blocks(scores, n, k, InCache{least, k, network(k)}, out);
    } else {
        return k == K ? in_blocks(scores, n, K, InRegisters<K>{least}, out)
                      : drop<K + 1>(scores, n, k, least, out);
    }
}

bool gradient_drop(const float* scores, std::int64_t n, std::int32_t k, float g, float min_score,
                   std::uint8_t* cases, std::int32_t* sizes, std::int32_t* order) {
    return drop<ResolutionKernels::kMinColumns>(scores, n, k, {g, min_score},
                                                {cases, sizes, order});
}

}  // namespace

extern const ResolutionKernels resolution_kernels{gradient_drop};

BOOKRAG_KERNELS_END
