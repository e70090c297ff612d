// Graph_Reasoning: G', its augmentation, the walk and its projection onto the nodes.
#include <algorithm>
#include <bit>
#include <cmath>

#include "retrieval_book.hpp"

namespace bookrag {

namespace {

using detail::RetrievalScratch;

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// For memory that is written before it is read: grows, but neither shrinks nor clears.
template <typename T>
void at_least(std::vector<T>& values, std::size_t size) {
    if (values.size() < size) values.resize(size + size / 4);
}

}  // namespace

// Members of the set, ascending, become the rows of the walk; the set is emptied.
void Retriever::Book::collect(RetrievalScratch& s) const {
    s.entities.clear();
    const auto words = s.members.words();
    for (std::size_t w = 0; w < words.size(); ++w) {
        for (auto left = words[w]; left != 0; left &= left - 1) {
            const auto e = static_cast<EntityId>(w * 64 + idx(std::countr_zero(left)));
            s.row_of[idx(e)] = static_cast<std::int32_t>(s.entities.size());
            s.entities.push_back(e);
        }
        words[w] = 0;
    }
}

bool Retriever::Book::place_seeds(RetrievalScratch& s, std::span<const EntityId> seeds,
                                  std::span<const float> weights) const {
    s.seed_rows.clear();
    s.seed_weights.clear();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        const auto row = s.row_of[idx(seeds[i])];
        if (row < 0 || !(weights[i] > 0.0F)) continue;
        s.seed_rows.push_back(row);
        s.seed_weights.push_back(weights[i]);
    }
    return !s.seed_rows.empty();
}

// The percentile of the cosines over the relations within, as numpy.percentile(float64 values,
// percentile) to the last bit. Counts the relations. Needs at least one.
//
// No sorting: relations were ranked by cosine once, so the set of their ranks is sorted as it is.
double Retriever::Book::threshold(RetrievalScratch& s, double percentile) const {
    const bool whole = idx(std::ssize(s.entities)) == s.row_of.size();
    const auto words = s.ranks.words();
    if (!whole) {
        for (const auto e : s.entities) {
            for (const auto& r : relations_of.row(e)) {
                s.ranks.insert_if(r.rank, s.row_of[idx(r.other)] >= 0 ? 1 : 0);
            }
        }
        for (const auto word : words) s.relations += std::popcount(word);
    } else {
        s.relations = std::ssize(cosine_at);
    }
    if (s.relations == 0) return 0.0;
    const double place = static_cast<double>(s.relations - 1) * (percentile / 100.0);
    const auto below = static_cast<std::int64_t>(std::floor(place));
    const double part = place - static_cast<double>(below);
    double low = 0.0;
    double high = 0.0;
    if (whole) {
        low = cosine_at[idx(below)];
        high = cosine_at[idx(std::min(below + 1, s.relations - 1))];
    } else {
        // From the nearer end would be faster still; a bit a relation is little enough.
        std::int64_t before = 0;
        bool found_low = false;
        bool found_high = false;
        for (std::size_t w = 0; w < words.size(); ++w) {
            const auto here = std::popcount(words[w]);
            if (!found_high && before + here > below) {
                auto left = words[w];
                if (!found_low) {
                    for (std::int64_t skip = below - before; skip > 0; --skip) left &= left - 1;
                    low = cosine_at[w * 64 + idx(std::countr_zero(left))];
                    high = low;  // where there is no next one
                    found_low = true;
                    left &= left - 1;
                }
                if (left != 0) {
                    high = cosine_at[w * 64 + idx(std::countr_zero(left))];
                    found_high = true;
                }
            }
            before += here;
            words[w] = 0;
        }
    }
    const double step = high - low;  // as NumPy interpolates
    return part >= 0.5 ? high - step * (1.0 - part) : low + step * part;
}

// The new relations, each once, by the lower row that found it or else by the higher.
void Retriever::Book::find_fresh(RetrievalScratch& s, double least, std::int64_t at_most) const {
    const std::size_t rows = s.entities.size();
    std::int64_t most = 1;
    for (const auto e : s.entities) most += near.offsets[idx(e) + 1] - near.offsets[idx(e)];
    at_least(s.fresh, idx(most));
    std::fill_n(s.back_count.begin(), rows + 2, 0);
    // Each is written first and counted after, without a branch that nothing could predict. Row -1
    // stands for all that is outside.
    std::int32_t* const back_count = s.back_count.data() + 1;
    std::int32_t* const looked_at = s.looked_at.data() + 1;
    looked_at[-1] = 0;
    std::int32_t count = 0;
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(rows); ++row) {
        s.first_fresh[idx(row)] = count;
        const auto neighbours = near.row(s.entities[idx(row)]);
        std::int64_t taken = 0;
        std::size_t i = 0;
        for (; i < neighbours.size() && taken < at_most; ++i) {
            const auto& n = neighbours[i];
            if (!(double{n.cosine} >= least)) break;
            const std::int32_t other = s.row_of[idx(n.entity)];
            // A lower row took this one if it looked as far.
            const bool again = (other < row) & (n.back < looked_at[other]);
            const std::int32_t keep = ((other >= 0) & !again) ? 1 : 0;
            s.fresh[idx(count)] = {row, other, n.cosine};
            count += keep;
            back_count[other] += keep;
            taken += other >= 0 ? 1 : 0;
        }
        looked_at[row] = static_cast<std::int32_t>(i);
    }
    s.first_fresh[rows] = count;
    s.new_relations = count;
}

// Rows of the walk: relations within, then the new ones.
void Retriever::Book::lay_out_walk(RetrievalScratch& s) const {
    const std::size_t rows = s.entities.size();
    // Who found each row: a counting sort, so that rows are written one after the other.
    std::int32_t* const back_end = s.back_count.data() + 1;
    std::int32_t start = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        const auto many = back_end[row];
        back_end[row] = start;  // becomes the end of the row while it is filled
        start += many;
    }
    at_least(s.back_rows, idx(start));
    at_least(s.back_cosines, idx(start));
    for (std::int64_t p = 0; p < s.new_relations; ++p) {
        const auto& pair = s.fresh[idx(p)];
        const auto at = idx(back_end[pair.other]++);
        s.back_rows[at] = pair.row;
        s.back_cosines[at] = pair.cosine;
    }
    const CsrView all = graph->adjacency();
    const auto all_weights = graph->weights();
    std::int64_t slots = 0;
    for (const auto e : s.entities) slots += all.offsets[idx(e) + 1] - all.offsets[idx(e)];
    // Room for every slot, so that each is written first and counted after: whether a neighbour is
    // inside is a coin toss that no branch predictor wins.
    const std::size_t room = idx(slots + 2 * s.new_relations + 1);
    at_least(s.targets, room);
    at_least(s.weights, room);
    std::int32_t* const targets = s.targets.data();
    float* const weights = s.weights.data();
    std::int32_t next = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        s.offsets[row] = next;
        const auto e = idx(s.entities[row]);
        const auto end = idx(all.offsets[e + 1]);
        for (auto slot = idx(all.offsets[e]); slot < end; ++slot) {
            const auto other = s.row_of[idx(all.targets[slot])];
            targets[next] = other;
            weights[next] = all_weights[slot];
            next += other >= 0 ? 1 : 0;
        }
        if (s.new_relations == 0) continue;
        for (auto p = s.first_fresh[row]; p < s.first_fresh[row + 1]; ++p) {
            const auto& pair = s.fresh[idx(p)];
            targets[next] = pair.other;
            weights[next++] = pair.cosine;
        }
        const auto from = row == 0 ? 0 : back_end[row - 1];
        for (auto b = idx(from); b < idx(back_end[row]); ++b) {
            targets[next] = s.back_rows[b];
            weights[next++] = s.back_cosines[b];
        }
    }
    s.offsets[rows] = next;
}

void Retriever::Book::augment(RetrievalScratch& s, double percentile) const {
    if (s.loaded_percentile == percentile && s.loaded == s.entities) return;
    s.loaded_percentile = -1.0;  // until it is there again
    s.relations = s.new_relations = 0;
    const std::size_t rows = s.entities.size();
    at_least(s.offsets, rows + 1);
    at_least(s.looked_at, rows + 1);
    at_least(s.first_fresh, rows + 1);
    at_least(s.back_count, rows + 2);
    const double least = threshold(s, percentile);
    if (s.relations > 0) {
        const auto mean = 2.0 * static_cast<double>(s.relations) / static_cast<double>(rows);
        const auto at_most = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(mean)));
        find_fresh(s, std::max(least, 1e-6), at_most);
    } else {
        std::fill_n(s.back_count.begin(), rows + 2, 0);
    }
    lay_out_walk(s);
    const auto slots = idx(s.offsets[rows]);
    s.walk.load(std::span(s.offsets).first(rows + 1), std::span(s.targets).first(slots),
                std::span(s.weights).first(slots));
    s.loaded.assign(s.entities.begin(), s.entities.end());
    s.loaded_percentile = percentile;
}

void Retriever::Book::solve(RetrievalScratch& s, const PageRankOptions& options) const {
    at_least(s.walk_scores, s.entities.size());
    s.walk.solve(s.seed_rows, s.seed_weights, options,
                 std::span(s.walk_scores).first(s.entities.size()));
}

// As GTLink::project of the walk's scores, to the last bit.
void Retriever::Book::project(RetrievalScratch& s, std::span<float> scores) const {
    for (std::size_t row = 0; row < s.entities.size(); ++row) {
        s.entity_scores[idx(s.entities[row])] = s.walk_scores[row];
    }
    const CsrView entities = link->node_to_entities();
    for (std::int64_t v = 0; v < entities.rows(); ++v) {
        double sum = 0.0;
        for (const auto e : entities.row(v)) sum += double{s.entity_scores[idx(e)]};
        scores[idx(v)] = static_cast<float>(sum);
    }
    for (const auto e : s.entities) s.entity_scores[idx(e)] = 0.0F;
}

void Retriever::Book::forget(RetrievalScratch& s) const {
    for (const auto e : s.entities) s.row_of[idx(e)] = -1;
    s.entities.clear();
}

}  // namespace bookrag
