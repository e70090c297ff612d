#include "bookrag/similarity.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "check.hpp"
#include "cosines.hpp"

namespace bookrag {

namespace {

using namespace detail;

// The best k of what is offered, in ascending order of rows.
class Best {
  public:
    explicit Best(std::int64_t k) : k_(idx(k)) { words_.reserve(k_); }

    void offer(std::span<const float> cosines, std::int64_t first) {
        for (std::size_t i = 0; i < cosines.size(); ++i) {
            if (words_.size() == k_ && !(cosines[i] > least_)) continue;
            if (words_.size() == k_) {
                std::pop_heap(words_.begin(), words_.end(), std::greater<>());
                words_.pop_back();
            }
            const auto row = static_cast<std::int32_t>(first + static_cast<std::int64_t>(i));
            words_.push_back(ranked(cosines[i], row));
            std::push_heap(words_.begin(), words_.end(), std::greater<>());
            least_ = cosine_of(words_.front());
        }
    }

    void write(std::int32_t* ids, float* cosines) {
        std::sort(words_.begin(), words_.end(), std::greater<>());
        std::transform(words_.begin(), words_.end(), ids, row_of);
        std::transform(words_.begin(), words_.end(), cosines, cosine_of);
    }

  private:
    std::size_t k_;
    float least_ = 0.0F;
    std::vector<std::uint64_t> words_;
};

void dots(const float* query, const float* rows, std::int64_t n, std::int64_t d, float* out,
          float* squares) {
    similarity_kernels().dots(query, rows, n, d, out, squares);
}

void dots(const float* query, const std::uint16_t* rows, std::int64_t n, std::int64_t d, float* out,
          float* squares) {
    similarity_kernels().dots_of_halves(query, rows, n, d, out, squares);
}

double squared_norm(std::span<const float> row) {
    double squared = 0.0;
    similarity_kernels().squared_norms(row.data(), 1, std::ssize(row), &squared);
    return squared;
}

double squared_norm(std::span<const std::uint16_t> row) {
    std::vector<float> wide(row.size());
    similarity_kernels().widen(row.data(), std::ssize(row), wide.data());
    return squared_norm(std::span<const float>(wide));
}

// Rows a tile at a time, so that one stays in the cache while all queries pass over it. The first
// query's pass gives the rows' norms too.
template <typename Value>
Neighbours topk_by_tiles(std::span<const float> queries, std::span<const Value> rows,
                         std::int64_t n, std::int64_t d, std::int64_t k) {
    constexpr std::int64_t kTile = 128;
    const std::int64_t q = std::ssize(queries) / d;
    Neighbours out;
    out.k = std::min(k, n);
    // Without queries, one of zeros: the rows are checked all the same.
    std::vector<float> units(idx(std::max<std::int64_t>(q, 1) * d));
    for (std::int64_t i = 0; i < q; ++i) {
        const auto one = unit(queries.subspan(idx(i * d), idx(d)), i, similarity_kernels());
        std::copy(one.begin(), one.end(), units.begin() + i * d);
    }
    std::vector<Best> best(idx(q), Best(out.k));
    float squares[kTile];
    float inverse[kTile];
    float cosines[kTile];
    for (std::int64_t first = 0; first < n; first += kTile) {
        const std::int64_t count = std::min(kTile, n - first);
        const Value* const tile = rows.data() + first * d;
        dots(units.data(), tile, count, d, cosines, squares);
        inverse_norms(
            {squares, idx(count)}, first,
            [&](std::int64_t i) { return squared_norm(std::span(tile + i * d, idx(d))); }, inverse);
        for (std::int64_t query = 0; query < q; ++query) {
            if (query > 0) dots(&units[idx(query * d)], tile, count, d, cosines, nullptr);
            for (std::int64_t i = 0; i < count; ++i) cosines[i] *= inverse[i];
            best[idx(query)].offer({cosines, idx(count)}, first);
        }
    }
    out.ids.resize(idx(q * out.k));
    out.cosines.resize(idx(q * out.k));
    for (std::int64_t i = 0; i < q; ++i) {
        best[idx(i)].write(out.ids.data() + i * out.k, out.cosines.data() + i * out.k);
    }
    return out;
}

void check_queries(std::span<const float> queries, std::int64_t d) {
    if (queries.size() % idx(d) != 0) {
        detail::invalid("queries has " + std::to_string(queries.size()) +
                        " values, which do not fill rows of " + std::to_string(d));
    }
}

}  // namespace

Neighbours cosine_topk(std::span<const float> queries, std::span<const float> rows, std::int64_t n,
                       std::int64_t d, std::int64_t k) {
    check_shape(rows.size(), n, d, "rows");
    check_queries(queries, d);
    check_k(k);
    return topk_by_tiles(queries, rows, n, d, k);
}

Neighbours cosine_topk(std::span<const float> queries, std::span<const std::uint16_t> rows,
                       std::int64_t n, std::int64_t d, std::int64_t k) {
    check_shape(rows.size(), n, d, "rows");
    check_queries(queries, d);
    check_k(k);
    return topk_by_tiles(queries, rows, n, d, k);
}

// ---------------------------------------------------------------- late interaction

std::vector<float> maxsim(std::span<const float> query, std::span<const float> tokens,
                          std::int64_t d, std::span<const std::int64_t> offsets) {
    detail::check_count(d, kMaxDimensions, "number of dimensions");
    if (d == 0 || query.size() % idx(d) != 0 || tokens.size() % idx(d) != 0) {
        detail::invalid("query has " + std::to_string(query.size()) + " values and tokens " +
                        std::to_string(tokens.size()) + ", which do not fill rows of " +
                        std::to_string(d));
    }
    const std::int64_t m = std::ssize(tokens) / d;
    const std::int64_t t = std::ssize(query) / d;
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != m) {
        detail::invalid("offsets must begin with 0 and end with the number of tokens, " +
                        std::to_string(m));
    }
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] < offsets[i - 1]) {
            detail::invalid(detail::at("offsets", i) + " is " + std::to_string(offsets[i]) +
                            ", below the one before");
        }
    }
    const auto& kernel = similarity_kernels();
    if (!kernel.all_finite(query.data(), std::ssize(query))) {
        detail::invalid("query holds NaN or an infinity");
    }
    if (!kernel.all_finite(tokens.data(), std::ssize(tokens))) {
        detail::invalid("tokens holds NaN or an infinity");
    }
    const std::int64_t padded = (t + 31) / 32 * 32;
    std::vector<float> columns(idx(padded * d));
    for (std::int64_t token = 0; token < t; ++token) {
        for (std::int64_t c = 0; c < d; ++c) {
            columns[idx(c * padded + token)] = query[idx(token * d + c)];
        }
    }
    std::vector<float> best(idx(padded));
    std::vector<float> out(offsets.size() - 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        kernel.best_matches(columns.data(), padded, tokens.data() + offsets[i] * d,
                            offsets[i + 1] - offsets[i], d, best.data());
        double sum = 0.0;
        for (std::int64_t token = 0; token < t; ++token) sum += double{best[idx(token)]};
        out[i] = static_cast<float>(sum);
    }
    return out;
}

}  // namespace bookrag
