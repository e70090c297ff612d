// Cosine top-k and late interaction in Python.
#include "bookrag/similarity.hpp"

#include "arrays.hpp"
#include "casters.hpp"
#include "module.hpp"

namespace bookrag::python {

namespace {

bool is_half(const py::array& array) {
    return array.dtype().kind() == 'f' && array.itemsize() == 2;
}

py::tuple one_query(Neighbours&& found) {
    return py::make_tuple(owned(std::move(found.ids)), owned(std::move(found.cosines)));
}

py::tuple many_queries(Neighbours&& found, py::ssize_t queries) {
    const std::vector<py::ssize_t> shape{queries, static_cast<py::ssize_t>(found.k)};
    return py::make_tuple(owned(std::move(found.ids), shape),
                          owned(std::move(found.cosines), shape));
}

py::tuple topk(const py::object& queries, const py::object& rows, const py::object& k) {
    const Floats q(queries, "queries", 2);
    const auto count = integer(k, "k");
    const py::array given = as_array(rows, "rows", 2);
    if (q.shape(1) != given.shape(1)) {
        refuse("queries", "has " + std::to_string(q.shape(1)) + " columns, but rows has " +
                              std::to_string(given.shape(1)));
    }
    if (is_half(given)) {
        const py::array half = py::module_::import("numpy").attr("require")(
            given, py::dtype("e"), py::make_tuple("C", "A"));
        const std::span values(static_cast<const std::uint16_t*>(half.data()),
                               static_cast<std::size_t>(half.size()));
        return many_queries(without_gil([&] {
                                return cosine_topk(q.values(), values, given.shape(0),
                                                   given.shape(1), count);
                            }),
                            q.shape(0));
    }
    const Floats r(given, "rows", 2);
    return many_queries(
        without_gil(
            [&] { return cosine_topk(q.values(), r.values(), r.shape(0), r.shape(1), count); }),
        q.shape(0));
}

void bind_index(py::module_& m) {
    py::class_<VectorIndex>(
        m, "VectorIndex",
        R"(Rows kept for many exact cosine searches: float32 and, beside it, bytes with a scale a row.

A search reads the bytes' high nibbles and bounds the error of every cosine (Cauchy-Schwarz, from what
rounding took away); rows that can still be among the k best are bounded again with the low nibbles, and
those left are computed in float32. Where rows lie near a subspace, projections onto 48 directions (Halko,
Martinsson, Tropp, arXiv 0909.4061) discard most rows before, by a bound as well. Same result as
cosine_topk, always. Immutable; any number of threads may share one.)")
        .def(py::init([](const py::object& rows) {
                 const Floats r(rows, "rows", 2);
                 return without_gil([&] {
                     return std::make_unique<VectorIndex>(r.values(), r.shape(0), r.shape(1));
                 });
             }),
             py::arg("rows"),
             "rows: float32[n, d] (float16 widens exactly), finite, d <= 65,536; copied. O(n d).")
        .def("__len__", &VectorIndex::size)
        .def("__repr__",
             [](const VectorIndex& i) {
                 return "VectorIndex(rows=" + std::to_string(i.size()) +
                        ", dimensions=" + std::to_string(i.dimensions()) + ")";
             })
        .def_property_readonly("dimensions", &VectorIndex::dimensions, "Values of a row.")
        .def_property_readonly("memory_bytes", &VectorIndex::memory_bytes,
                               "Bytes of all copies of the rows.")
        .def(
            "search",
            [](const VectorIndex& index, const py::object& query, const py::object& k) {
                const Floats q(query, "query", 1);
                const auto count = integer(k, "k");
                return one_query(without_gil([&] { return index.search(q.values(), count); }));
            },
            py::arg("query"), py::arg("k") = 10,
            R"(The k rows nearest to query float32[d] -> (ids int32[k'], cosines float32[k']).

k' is the smaller of k and the number of rows; descending cosine, ties by lower id. A row or query of
zeros has cosine 0 to everything. O(n d) bytes read.)")
        .def(
            "candidates",
            [](const VectorIndex& index, const py::object& query, const py::object& k) {
                const Floats q(query, "query", 1);
                const auto count = integer(k, "k");
                return without_gil([&] { return index.candidates(q.values(), count); });
            },
            py::arg("query"), py::arg("k") = 10,
            "How many rows search computes in full for this query, some perhaps twice; for "
            "measurements.");
}

}  // namespace

void bind_similarity(py::module_& m) {
    bind_index(m);
    m.attr("HNSW_CROSSOVER") = kHnswCrossover;
    m.def("cosine_topk", &topk, py::arg("queries"), py::arg("rows"), py::arg("k") = 10,
          R"(Exact nearest rows by cosine -> (ids int32[q, k'], cosines float32[q, k']).

queries  float32[q, d]
rows     float32[n, d] or float16[n, d], finite; float16 is read as it is, half the memory traffic
k        >= 1; k' is the smaller of k and n

Descending cosine, ties by lower id; cosines in float32 with one order of additions on every CPU. A row
or query of zeros has cosine 0. O(q n d). For rows asked more than once see VectorIndex.)");
    m.def(
        "maxsim",
        [](const py::object& query, const py::object& tokens, const py::object& offsets) {
            const Floats q(query, "query", 2);
            const Floats t(tokens, "tokens", 2);
            const auto bounds = integers<std::int64_t>(offsets, "offsets");
            if (q.shape(1) != t.shape(1)) {
                refuse("query", "has " + std::to_string(q.shape(1)) + " columns, but tokens has " +
                                    std::to_string(t.shape(1)));
            }
            return owned(
                without_gil([&] { return maxsim(q.values(), t.values(), q.shape(1), bounds); }));
        },
        py::arg("query"), py::arg("tokens"), py::arg("offsets"),
        R"(Late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020) -> float32[n].

query    float32[t, d]   one vector a token; unit vectors make cosines
tokens   float32[m, d]   the documents' tokens, one document after the other
offsets  int64[n + 1]    document i holds tokens offsets[i] to offsets[i + 1]; from 0 to m, ascending

Of each document the sum, over the query's tokens, of the largest dot product with one of its own. An
empty document scores -inf: it ranks last; with an empty query every score is 0. O(t m d).)");
}

}  // namespace bookrag::python
