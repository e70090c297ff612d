// Fused retrieval in Python.
#include "bookrag/retrieval.hpp"

#include <memory>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "casters.hpp"
#include "module.hpp"

namespace pybind11::detail {

template <>
class type_caster<bookrag::Retriever>
    : public bookrag::python::ConstructedCaster<bookrag::Retriever> {};
template <>
class type_caster<bookrag::Retrieval>
    : public bookrag::python::ConstructedCaster<bookrag::Retrieval> {};

}  // namespace pybind11::detail

namespace bookrag::python {

namespace {

std::vector<float> copy_of(const py::object& value, const char* name, py::ssize_t ndim = 1) {
    const Floats floats(value, name, ndim);
    const auto values = floats.values();
    return {values.begin(), values.end()};
}

std::vector<std::uint8_t> flags(const py::object& value, const char* name) {
    const auto array = as_array(value, name, 1);
    const char kind = array.dtype().kind();
    if (array.size() == 0 && (kind == 'f' || kind == 'O')) return {};  // [] is floats
    if (kind != 'b') {
        refuse(name, "has dtype " + dtype_name(array) + ", but must hold bools");
    }
    const auto bytes = converted<std::uint8_t>(array, name);
    return {bytes.data(), bytes.data() + bytes.size()};
}

// Where a walk starts: private copies, since they are checked before they are used.
struct Seeds {
    Seeds(const py::object& seeds, const py::object& seed_weights)
        : ids(integers<EntityId>(seeds, "seeds")), weights(copy_of(seed_weights, "seed_weights")) {}
    std::vector<EntityId> ids;
    std::vector<float> weights;
};

GraphOptions graph_options(const py::object& damping, const py::object& percentile,
                           const py::object& tol) {
    return {{real(damping, "damping"), real(tol, "tol")}, real(percentile, "percentile")};
}

py::object scores_or_none(bool linked, std::vector<float>&& scores) {
    return linked ? py::object(owned(std::move(scores))) : py::none();
}

template <typename T, typename Get>
auto result_view(Get get) {
    return [get](const py::object& self) {
        return view(std::span<const T>(get(py::cast<const Retrieval&>(self))), self);
    };
}

void bind_retrieval_result(py::module_& m) {
    py::class_<Retrieval>(m, "Retrieval",
                          "Result of Retriever.retrieve: content nodes, best first, and how they "
                          "were found.")
        .def("__len__", [](const Retrieval& r) { return r.nodes.size(); })
        .def("__repr__",
             [](const Retrieval& r) {
                 return "Retrieval(nodes=" + std::to_string(r.nodes.size()) +
                        ", kept=" + std::to_string(r.kept) +
                        ", selected=" + std::to_string(r.selected) +
                        ", linked=" + (r.linked ? "True" : "False") + ")";
             })
        .def_property_readonly(
            "nodes", result_view<NodeId>([](const Retrieval& r) { return std::span(r.nodes); }),
            "int32[c], best first: what the skyline keeps, the rest of the selection, the rest of "
            "the book,\n"
            "each by relevance; read-only view.")
        .def_property_readonly(
            "relevance",
            result_view<float>([](const Retrieval& r) { return std::span(r.relevance); }),
            "float32[c]: text + bonus + graph_weight * graph / its largest; read-only view.")
        .def_property_readonly(
            "graph",
            [](const py::object& self) -> py::object {
                const auto& r = py::cast<const Retrieval&>(self);
                if (!r.linked) return py::none();
                return view(std::span<const float>(r.graph), self);
            },
            "float32[c], score of each by the graph, or None where no seed lies in G'; read-only "
            "view.")
        .def_readonly("linked", &Retrieval::linked, "Whether a seed lies in G'.")
        .def_readonly("kept", &Retrieval::kept, "Nodes that Skyline_Ranker keeps.")
        .def_readonly("selected", &Retrieval::selected, "Content nodes of the selection.")
        .def_readonly("by_entity", &Retrieval::by_entity, "Nodes that Select_by_Entity selects.")
        .def_readonly("by_section", &Retrieval::by_section, "Nodes that Select_by_Section selects.")
        .def_readonly("entities", &Retrieval::entities, "Entities of G'.")
        .def_readonly("relations", &Retrieval::relations, "Relations of G' before augmentation.")
        .def_readonly("new_relations", &Retrieval::new_relations, "Relations that augment G'.")
        .def_property_readonly(
            "micros",
            [](const Retrieval& r) {
                py::dict stages;
                stages["by_entity"] = r.micros.by_entity;
                stages["by_section"] = r.micros.by_section;
                stages["augment"] = r.micros.augment;
                stages["pagerank"] = r.micros.pagerank;
                stages["project"] = r.micros.project;
                stages["skyline"] = r.micros.skyline;
                stages["order"] = r.micros.order;
                return stages;
            },
            "Microseconds of each stage: by_entity, by_section, augment (with the making of G'), "
            "pagerank,\n"
            "project, skyline, order.");
}

}  // namespace

void bind_retrieval(py::module_& m) {
    bind_retrieval_result(m);
    py::class_<Retriever> retriever(
        m, "Retriever",
        R"(One book, opened for questions: BookRAG (arXiv 2512.03413), section 5, in one call.

Retriever(tree, graph, link, neighbours, neighbour_cosines, relation_cosines, content, *, chapter_depth=2)

neighbours         int32[entities, k]    nearest entities of each, -1 (last) where there are fewer
neighbour_cosines  float32[entities, k]  descending; finite
relation_cosines   float32[relations]    of the vectors of the two ends of each relation; finite
content            bool[nodes]           nodes that can be evidence
chapter_depth                            where sections are selected: root 0, title 1, chapters 2

Keeps the tree, the graph and the link alive and copies none of them. Never changes; threads share it, and
each call takes its memory from the calls before. Building takes O(nodes + links + relations log relations).
Raises InvalidArgumentError for sizes that do not go together, an unknown neighbour, an entity as its
own neighbour, a repeat, cosines that do not descend.)");
    retriever.def(py::init([](const Tree& tree, const KnowledgeGraph& graph, const GTLink& link,
                              const py::object& neighbours, const py::object& neighbour_cosines,
                              const py::object& relation_cosines, const py::object& content,
                              const py::object& chapter_depth) {
                      const auto near = as_array(neighbours, "neighbours", 2);
                      const auto ids = integers<EntityId>(near, "neighbours", 2);
                      const auto cosines = copy_of(neighbour_cosines, "neighbour_cosines", 2);
                      const auto edges = copy_of(relation_cosines, "relation_cosines");
                      const auto mask = flags(content, "content");
                      const auto depth = integer32(chapter_depth, "chapter_depth");
                      const std::int64_t width = near.shape(1);
                      return without_gil([&] {
                          return std::make_unique<Retriever>(tree, graph, link,
                                                             NeighbourLists{ids, cosines, width},
                                                             edges, mask, depth);
                      });
                  }),
                  py::arg("tree"), py::arg("graph"), py::arg("link"), py::arg("neighbours"),
                  py::arg("neighbour_cosines"), py::arg("relation_cosines"), py::arg("content"),
                  py::kw_only(), py::arg("chapter_depth") = 2, py::keep_alive<1, 2>(),
                  py::keep_alive<1, 3>(), py::keep_alive<1, 4>());
    retriever
        .def("__repr__",
             [](const Retriever& r) {
                 return "Retriever(nodes=" + std::to_string(r.num_nodes()) +
                        ", entities=" + std::to_string(r.num_entities()) +
                        ", chapters=" + std::to_string(r.num_chapters()) + ")";
             })
        .def_property_readonly("num_nodes", &Retriever::num_nodes)
        .def_property_readonly("num_entities", &Retriever::num_entities)
        .def_property_readonly("num_chapters", &Retriever::num_chapters, "Nodes at chapter_depth.");
    retriever.def(
        "retrieve",
        [](const Retriever& self, const py::object& seeds, const py::object& seed_weights,
           const py::object& text_scores, const py::object& named, const py::object& bonus,
           const py::object& added_sections, const py::object& damping,
           const py::object& percentile, const py::object& minimum, const py::object& graph_weight,
           const py::object& limit, const py::object& tol) {
            const Seeds from(seeds, seed_weights);
            const Floats text(text_scores, "text_scores", 1);
            std::vector<NodeId> ids;
            std::vector<float> extra;
            if (!named.is_none()) {
                ids = integers<NodeId>(named, "named");
                extra = bonus.is_none() ? std::vector<float>(ids.size(), 0.0F)
                                        : copy_of(bonus, "bonus");
            } else if (!bonus.is_none()) {
                refuse("bonus", "is given, but not the nodes it belongs to (named)");
            }
            RetrievalOptions options;
            options.graph = graph_options(damping, percentile, tol);
            options.added_sections = integer32(added_sections, "added_sections");
            options.minimum = integer32(minimum, "minimum");
            options.graph_weight = static_cast<float>(real(graph_weight, "graph_weight"));
            if (!limit.is_none()) {
                options.limit = integer(limit, "limit", 0);
            }
            auto result = std::make_unique<Retrieval>();
            without_gil([&] {
                self.retrieve({from.ids, from.weights, text.values(), ids, extra}, options,
                              *result);
            });
            return result;
        },
        py::arg("seeds"), py::arg("seed_weights"), py::arg("text_scores"), py::kw_only(),
        py::arg("named") = py::none(), py::arg("bonus") = py::none(), py::arg("added_sections") = 4,
        py::arg("damping") = 0.5, py::arg("percentile") = 85.0, py::arg("minimum") = 10,
        py::arg("graph_weight") = 0.15, py::arg("limit") = py::none(), py::arg("tol") = 1e-6,
        R"(Select_by_Entity and Select_by_Section, Graph_Reasoning, Skyline_Ranker -> Retrieval.

seeds         int32[s]          entities of the question; repeats add up
seed_weights  float32[s]        finite, >= 0; those of weight 0 select, but start no walk
text_scores   float32[nodes]    relevance to the question's words, finite
named         int32[m] or None  nodes that the question names outright: selected wherever they are
bonus         float32[m]        what being named adds to their relevance; None: nothing

added_sections  chapters that the best text scores add
damping, tol    of the personalized PageRank
percentile      of the cosines over G's relations from which near entities are joined
minimum         nodes that the skyline is filled up to
graph_weight    share of the graph's score, relative to its largest, in the relevance
limit           nodes in the result; None: all content nodes

O(content nodes + (links + relations of G') * sweeps); the same whatever the number of threads.
Raises InvalidArgumentError for an unknown id, unequal lengths, NaN, an option outside its domain.)");
    retriever.def(
        "graph_reasoning",
        [](const Retriever& self, const py::object& nodes, const py::object& seeds,
           const py::object& seed_weights, const py::object& damping, const py::object& percentile,
           const py::object& tol) {
            const auto ids = integers<NodeId>(nodes, "nodes");
            const Seeds from(seeds, seed_weights);
            const auto options = graph_options(damping, percentile, tol);
            std::vector<float> scores(static_cast<std::size_t>(self.num_nodes()));
            const bool linked = without_gil(
                [&] { return self.graph_reasoning(ids, from.ids, from.weights, options, scores); });
            return scores_or_none(linked, std::move(scores));
        },
        py::arg("nodes"), py::arg("seeds"), py::arg("seed_weights"), py::kw_only(),
        py::arg("damping") = 0.5, py::arg("percentile") = 85.0, py::arg("tol") = 1e-6,
        R"(float32[nodes]: score of every node of the tree by the graph; None if no seed lies in G'.

G' are the entities of `nodes` int32[k], augmented; PageRank runs on it from the seeds, and a node's
score is the sum over its entities.)");
    retriever.def(
        "augmented_pagerank",
        [](const Retriever& self, const py::object& entities, const py::object& seeds,
           const py::object& seed_weights, const py::object& damping, const py::object& percentile,
           const py::object& tol) {
            const auto ids = integers<EntityId>(entities, "entities");
            const Seeds from(seeds, seed_weights);
            const auto options = graph_options(damping, percentile, tol);
            std::vector<float> scores(static_cast<std::size_t>(self.num_entities()));
            const bool linked = without_gil([&] {
                return self.augmented_pagerank(ids, from.ids, from.weights, options, scores);
            });
            return scores_or_none(linked, std::move(scores));
        },
        py::arg("entities"), py::arg("seeds"), py::arg("seed_weights"), py::kw_only(),
        py::arg("damping") = 0.5, py::arg("percentile") = 85.0, py::arg("tol") = 1e-6,
        "float32[entities]: personalized PageRank on the augmented graph of `entities` int32[k], 0 "
        "outside;\n"
        "None if no seed lies in it.");
}

}  // namespace bookrag::python
