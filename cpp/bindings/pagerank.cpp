// Personalized PageRank and projection in Python.
#include "bookrag/pagerank.hpp"

#include <optional>
#include <string>

#include "arrays.hpp"
#include "bookrag/gt_link.hpp"
#include "bookrag/knowledge_graph.hpp"
#include "casters.hpp"
#include "module.hpp"

namespace bookrag::python {

namespace {

// Weights of `seeds`: checked, then used, so a private copy; empty where None was given.
std::vector<float> seed_weights(const py::object& weights, std::size_t seeds) {
    if (weights.is_none()) return {};
    const Floats given(weights, "weights", 1);
    std::vector<float> own(given.values().begin(), given.values().end());
    if (own.size() != seeds) {
        refuse("weights", "has " + std::to_string(own.size()) + " values, but seeds has " +
                              std::to_string(seeds));
    }
    return own;
}

bool wants_double(const py::object& dtype) {
    if (PyUnicode_Check(dtype.ptr())) {  // a microsecond faster than asking NumPy
        if (PyUnicode_CompareWithASCIIString(dtype.ptr(), "float32") == 0) return false;
        if (PyUnicode_CompareWithASCIIString(dtype.ptr(), "float64") == 0) return true;
    }
    try {
        const auto wanted = py::dtype::from_args(dtype);
        if (wanted.equal(py::dtype::of<float>())) return false;
        if (wanted.equal(py::dtype::of<double>())) return true;
    } catch (py::error_already_set&) {  // no dtype at all: refused like a wrong one
    }
    refuse("dtype",
           "is " + py::repr(dtype).cast<std::string>() + ", but must be float32 or float64");
}

template <typename T>
py::object pair(EntityScores<T>&& found) {
    return py::make_tuple(owned(std::move(found.entities)), owned(std::move(found.scores)));
}

py::object pagerank(const KnowledgeGraph& graph, const py::object& seeds, const py::object& weights,
                    const py::object& damping, const py::object& tol, const py::object& entities,
                    const py::object& dtype, const py::object& top_k, bool compact) {
    const auto ids = integers<EntityId>(seeds, "seeds");
    const auto own = seed_weights(weights, ids.size());
    const PageRankOptions options{real(damping, "damping"), real(tol, "tol")};
    const bool exact = wants_double(dtype);
    const bool whole = entities.is_none();
    const auto within = whole ? std::vector<EntityId>{} : integers<EntityId>(entities, "entities");
    if (!top_k.is_none()) {
        if (exact) refuse("dtype", "is float64, but top_k works in float32");
        const std::int64_t k = integer(top_k, "top_k", 1, kMaxEntities);
        const std::span<const EntityId> confined(within);
        return pair(without_gil([&] {
            return personalized_pagerank_top(graph, k, ids, own, options,
                                             whole ? nullptr : &confined);
        }));
    }
    if (compact) {
        if (whole) refuse("compact", "is True, but only entities=... can be compact");
        if (exact) {
            return pair(without_gil(
                [&] { return personalized_pagerank_induced64(graph, within, ids, own, options); }));
        }
        return pair(without_gil(
            [&] { return personalized_pagerank_induced(graph, within, ids, own, options); }));
    }
    if (exact) {
        return owned(without_gil([&] {
            return whole ? personalized_pagerank64(graph, ids, own, options)
                         : personalized_pagerank_within64(graph, within, ids, own, options);
        }));
    }
    return owned(without_gil([&] {
        return whole ? personalized_pagerank(graph, ids, own, options)
                     : personalized_pagerank_within(graph, within, ids, own, options);
    }));
}

// A sequence with a length; NumPy calls an array without dimensions one, too.
bool is_sequence(const py::object& value) {
    if (py::isinstance<py::str>(value) || !PySequence_Check(value.ptr())) return false;
    if (PySequence_Size(value.ptr()) >= 0) return true;
    PyErr_Clear();
    return false;
}

py::object batch(const KnowledgeGraph& graph, const py::object& seeds, const py::object& weights,
                 const py::object& damping, const py::object& tol, const py::object& offsets) {
    std::vector<std::int64_t> starts{0};
    std::vector<EntityId> ids;
    std::vector<float> own;
    const PageRankOptions options{real(damping, "damping"), real(tol, "tol")};
    if (!offsets.is_none()) {
        starts = integers<std::int64_t>(offsets, "offsets");
        ids = integers<EntityId>(seeds, "seeds");
        own = seed_weights(weights, ids.size());
    } else {
        if (!is_sequence(seeds)) {
            refuse("seeds", "must be a sequence of arrays, one a walk");
        }
        const auto walks = py::reinterpret_borrow<py::sequence>(seeds);
        const auto many = walks.size();
        if (!weights.is_none() && (!is_sequence(weights) ||
                                   py::reinterpret_borrow<py::sequence>(weights).size() != many)) {
            refuse("weights", "must be a sequence as long as seeds, or None");
        }
        for (std::size_t w = 0; w < many; ++w) {
            const auto mine = integers<EntityId>(walks[w], "seeds");
            if (!weights.is_none()) {
                const auto masses =
                    seed_weights(py::reinterpret_borrow<py::sequence>(weights)[w], mine.size());
                own.insert(own.end(), masses.begin(), masses.end());
                own.resize(ids.size() + mine.size(), 1.0F);  // a walk whose weights are None
            }
            ids.insert(ids.end(), mine.begin(), mine.end());
            if (mine.empty())
                refuse("seeds", "of walk " + std::to_string(w) +
                                    " is empty, but the "
                                    "walk must start somewhere");
            starts.push_back(static_cast<std::int64_t>(ids.size()));
        }
    }
    auto scores =
        without_gil([&] { return personalized_pagerank_batch(graph, starts, ids, own, options); });
    const auto walks = static_cast<py::ssize_t>(starts.size()) - 1;
    return owned(std::move(scores), {walks, graph.num_entities()});
}

}  // namespace

void bind_pagerank(py::module_& m) {
    m.def("personalized_pagerank", &pagerank, py::arg("graph"), py::arg("seeds"),
          py::arg("weights") = py::none(), py::kw_only(), py::arg("damping") = 0.5,
          py::arg("tol") = 1e-6, py::arg("entities") = py::none(), py::arg("dtype") = "float32",
          py::arg("top_k") = py::none(), py::arg("compact") = false,
          R"(Personalized PageRank -> float32[num_entities], summing to 1 (Page, Brin et al. 1999).

seeds     int32[k], k > 0      where the walk (re)starts; repeats add up
weights   float32[k] or None   finite, >= 0, sum > 0; only ratios matter; None: all alike
damping   [0, 1)               probability that the walk goes on; with 1 - damping it restarts
tol       [1e-12, 1]           bound on the L1 distance to the exact solution, before rounding to float32;
                               below about 1e-14 / (1 - damping), float64 gives no more than that
entities  int32[j] or None     confine the walk to these entities and the relations among them;
                               seeds outside are left out, entities outside score 0
dtype     float32 or float64   of the result, by name or NumPy's; with float64 use tol=1e-10 for what igraph gives
top_k     int or None          return (ids int32[k], scores float32[k]) of the k best instead, best
                               first, ties by id, none that scores 0; stops as soon as the error
                               bound proves their order, at the latest at tol
compact   bool                 with entities: return (ids int32[j'], scores [j']) of the distinct
                               entities, ascending, in time that does not depend on num_entities

At an entity without relations the walk restarts at the seeds at once (as igraph and networkx do).
Successive over-relaxation (Young 1954) in float32, certified by a residual in float64; iterative
refinement for finer tolerances. The matrix is laid out at a graph's first use, O(entities + relations),
and kept. The same bits from any thread and instruction set.
O(log(tol) / log(damping) * (entities + relations)) at most.
Raises InvalidArgumentError for no seed, an unknown one, bad weights, an option outside its domain, or
no seed within `entities`.)");
    m.def("personalized_pagerank_batch", &batch, py::arg("graph"), py::arg("seeds"),
          py::arg("weights") = py::none(), py::kw_only(), py::arg("damping") = 0.5,
          py::arg("tol") = 1e-6, py::arg("offsets") = py::none(),
          R"(Many walks of personalized_pagerank at once -> float32[b, num_entities].

seeds    sequence of b arrays int32[k_i], k_i > 0, or int32[k] with offsets
weights  None, or as seeds: a sequence of arrays (or None) or float32[k] with offsets
offsets  int64[b + 1] or None: walk i has seeds[offsets[i]:offsets[i + 1]]

16 walks share each pass over the matrix, as long as the caches hold 64 bytes an entity; larger graphs
are walked one by one. Each walk's error is within tol; its last bits depend on its companions.)");
    m.def(
        "_pagerank_passes",  // for benchmarks
        [](const KnowledgeGraph& graph, const py::object& seeds, const py::object& damping,
           const py::object& tol) {
            const auto ids = integers<EntityId>(seeds, "seeds");
            return personalized_pagerank_passes(graph, ids,
                                                {real(damping, "damping"), real(tol, "tol")});
        },
        py::arg("graph"), py::arg("seeds"), py::arg("damping") = 0.5, py::arg("tol") = 1e-6);
    m.def(
        "project",
        [](const GTLink& link, const py::object& scores) {
            const Floats s(scores, "scores", 1);
            return owned(without_gil([&] { return link.project(s.values()); }));
        },
        py::arg("link"), py::arg("scores"),
        "float32[num_nodes]: for each node the sum of scores float32[num_entities] over the "
        "entities that\n"
        "GTLink ties to it (BookRAG, arXiv 2512.03413, graph reasoning). Same as "
        "link.project(scores).");
}

}  // namespace bookrag::python
