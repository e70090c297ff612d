// Similarity of vectors: exact cosine top-k and late interaction. Exact means: the k rows of the
// largest cosines, ties by lower row, the cosines computed in float32 by one fixed order of
// additions. No approximation leaves this file; where bytes are read, an error bound decides which
// rows must be computed in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bookrag/types.hpp"

namespace bookrag {

// Values of a row. The bound keeps integer dot products in 32 bits at a useful precision.
inline constexpr std::int64_t kMaxDimensions = 1 << 16;

struct Neighbours {
    std::vector<std::int32_t> ids;  // of each query the best rows, by descending cosine, then id
    std::vector<float> cosines;     // theirs
    std::int64_t k = 0;             // of each query: the smaller of k and the number of rows
};

// The k best rows (n rows of d values) of each query (rows of d values). A row or query of zeros is
// near to nothing, cosine 0; so is one with a norm below 1e-30.
// cosine = (query / |query|) . row / |row|.
//
// O(q n d), every row read once; O(n + q k) memory. No index: for rows asked more than once,
// VectorIndex is several times faster. Thread safe.
// Throws Error: sizes that do not fit n and d, k < 1, a value that is NaN or infinite, a norm
// beyond 1e38, d or n beyond their limits.
[[nodiscard]] Neighbours cosine_topk(std::span<const float> queries, std::span<const float> rows,
                                     std::int64_t n, std::int64_t d, std::int64_t k);

// The same for rows of IEEE binary16 (as NumPy's float16): half the memory traffic.
[[nodiscard]] Neighbours cosine_topk(std::span<const float> queries,
                                     std::span<const std::uint16_t> rows, std::int64_t n,
                                     std::int64_t d, std::int64_t k);

// From this many rows on an HNSW graph (hnswlib 0.8, M = 16, ef 64) answers one query sooner than
// VectorIndex::search at d = 384 on clustered rows, one thread: at 10,000 rows exact search takes a
// quarter of its time, at 50,000 half (benchmarks/bench_similarity.py), which grows with the rows
// where the graph's hardly does; and it needs no building and misses nothing.
inline constexpr std::int64_t kHnswCrossover = 100'000;

// Rows kept for many searches: float32 and, a quarter of that, bytes with a scale a row, in two
// planes: the high nibbles of all rows, and the low ones.
//
// A search reads the high nibbles and bounds each cosine's error by Cauchy-Schwarz from what
// rounding took away, |r - s b| of the row (kept) and |q - t a| of the query. Rows whose bound
// reaches the exact cosines of the 2 k that look best, a quarter of random directions at d = 384,
// are bounded again with their low nibbles; the tens that are left are computed in float32.
//
// Where the rows lie near a subspace, as embeddings may do, a coarser copy comes before: bytes of
// their projection onto 48 orthonormal directions, found by subspace iteration (Halko, Martinsson,
// Tropp, SIAM Review 2011); at d = 384 a quarter of the high nibbles. What lies outside the
// subspace adds at most the product of the two residuals' norms. It is skipped for queries that
// mostly lie outside.
//
// Every step discards by a bound: the answer is that of cosine_topk, always. Immutable; any number
// of threads may search it, each keeping O(n) scratch memory for its next search.
class VectorIndex {
  public:
    // Copies the rows. O(48 n d). Throws Error as cosine_topk.
    VectorIndex(std::span<const float> rows, std::int64_t n, std::int64_t d);

    // One query of d values. O(n d) bytes read.
    [[nodiscard]] Neighbours search(std::span<const float> query, std::int64_t k) const;

    [[nodiscard]] std::int64_t size() const noexcept { return n_; }
    [[nodiscard]] std::int64_t dimensions() const noexcept { return d_; }
    [[nodiscard]] std::int64_t memory_bytes() const noexcept;
    // Rows a search for this query computes in full; for measurements.
    [[nodiscard]] std::int64_t candidates(std::span<const float> query, std::int64_t k) const;

  private:
    struct Nibbles;
    struct Projection;
    class Search;
    [[nodiscard]] std::int64_t checked(std::span<const float> query, std::int64_t k) const;
    void project();

    std::int64_t n_;
    std::int64_t d_;
    std::vector<float> rows_;           // as given
    std::vector<float> inverse_norms_;  // 0 of a row of zeros
    std::shared_ptr<const Nibbles> nibbles_;
    std::shared_ptr<const Projection> projection_;  // nothing if it would not discard enough
};

// Late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020): of each document the sum, over the
// query's tokens, of the largest dot product with one of the document's tokens.
//
// query: t rows of d values. tokens: the documents' rows of d values, one document after the other.
// offsets: document i holds tokens offsets[i] to offsets[i + 1]; ascending from 0 to all of them.
// Give unit vectors for cosines. An empty document scores -infinity (it matches nothing, and ranks
// last), unless the query is empty: then all sums are 0.
//
// O(t m d) for m tokens, O(t d) memory. Thread safe.
// Throws Error: sizes that do not fit d, bad offsets, a value that is NaN or infinite.
[[nodiscard]] std::vector<float> maxsim(std::span<const float> query, std::span<const float> tokens,
                                        std::int64_t d, std::span<const std::int64_t> offsets);

}  // namespace bookrag
