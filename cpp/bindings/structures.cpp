// Tree, KnowledgeGraph and GTLink in Python.
#include <memory>
#include <string>

#include "arrays.hpp"
#include "bookrag/gt_link.hpp"
#include "bookrag/knowledge_graph.hpp"
#include "bookrag/tree.hpp"
#include "casters.hpp"
#include "module.hpp"

namespace bookrag::python {

namespace {

// A read-only property that is a view of a per-element array of T.
template <typename T, typename Get>
auto view_property(Get get) {
    return [get](const py::object& self) {
        return view(std::span(get(py::cast<const T&>(self))), self);
    };
}

void bind_tree(py::module_& m) {
    py::class_<Tree> tree(m, "Tree",
                          R"(The document tree of a book (BookRAG, arXiv 2512.03413, section 4).

Tree(parents, kinds, page_first, page_last)

parents     int32[n]  parent of each node, -1 for the root; exactly one root, any order of nodes
kinds       uint8[n]  the caller's code for what a node is
page_first  int32[n]  first physical page, 1-based
page_last   int32[n]  last physical page, included; 0, 0 is "on no page"

Document order is the pre-order in which siblings come by ascending id. Building takes O(n).
Raises InvalidArgumentError for arrays of unequal length, no node, no or several roots, an unknown
parent, a cycle, an impossible page span; the message names the node.)");
    tree.def(py::init([](const py::object& parents, const py::object& kinds,
                         const py::object& page_first, const py::object& page_last) {
                 const auto p = integers<NodeId>(parents, "parents");
                 const auto k = integers<std::uint8_t>(kinds, "kinds");
                 const auto first = integers<std::int32_t>(page_first, "page_first");
                 const auto last = integers<std::int32_t>(page_last, "page_last");
                 return without_gil([&] { return std::make_unique<Tree>(p, k, first, last); });
             }),
             py::arg("parents"), py::arg("kinds"), py::arg("page_first"), py::arg("page_last"));
    tree.def("__len__", &Tree::num_nodes)
        .def("__repr__",
             [](const Tree& t) {
                 return "Tree(nodes=" + std::to_string(t.num_nodes()) +
                        ", max_depth=" + std::to_string(t.max_depth()) + ")";
             })
        .def_property_readonly("num_nodes", &Tree::num_nodes)
        .def_property_readonly("root", &Tree::root)
        .def_property_readonly("max_depth", &Tree::max_depth,
                               "Depth of the deepest node; the root has 0.")
        .def_property_readonly("parents",
                               view_property<Tree>([](const Tree& t) { return t.parents(); }),
                               "int32[n], -1 at the root; read-only view.")
        .def_property_readonly("kinds",
                               view_property<Tree>([](const Tree& t) { return t.kinds(); }),
                               "uint8[n]; read-only view.")
        .def_property_readonly("page_first",
                               view_property<Tree>([](const Tree& t) { return t.page_first(); }),
                               "int32[n], 1-based, 0 on no page; read-only view.")
        .def_property_readonly("page_last",
                               view_property<Tree>([](const Tree& t) { return t.page_last(); }),
                               "int32[n], included, 0 on no page; read-only view.")
        .def_property_readonly("depths",
                               view_property<Tree>([](const Tree& t) { return t.depths(); }),
                               "int32[n], 0 at the root; read-only view.")
        .def_property_readonly("subtree_sizes",
                               view_property<Tree>([](const Tree& t) { return t.subtree_sizes(); }),
                               "int32[n], nodes of each subtree, itself included; read-only view.")
        .def_property_readonly("positions",
                               view_property<Tree>([](const Tree& t) { return t.positions(); }),
                               "int32[n], rank of each node in document order; read-only view.")
        .def_property_readonly(
            "document_order", view_property<Tree>([](const Tree& t) { return t.document_order(); }),
            "int32[n], all nodes in document order; read-only view.");
    tree.def(
            "children",
            [](const py::object& self, const py::object& node) {
                return view(py::cast<const Tree&>(self).children(integer32(node, "node")), self);
            },
            py::arg("node"), "int32[c], children by ascending id; read-only view. O(1).")
        .def(
            "subtree",
            [](const py::object& self, const py::object& node) {
                return view(py::cast<const Tree&>(self).subtree(integer32(node, "node")), self);
            },
            py::arg("node"),
            "int32[s], the node and all below it in document order; read-only view. O(1).")
        .def(
            "ancestors",
            [](const Tree& t, const py::object& node) {
                return owned(t.ancestors(integer32(node, "node")));
            },
            py::arg("node"), "int32[depth], parent first, root last; empty for the root.")
        .def(
            "ancestor_at_depth",
            [](const Tree& t, const py::object& node, const py::object& depth) {
                return t.ancestor_at_depth(integer32(node, "node"), integer32(depth, "depth"));
            },
            py::arg("node"), py::arg("depth"),
            "The node at `depth` between the root and `node`: `node` itself where it lies at that\n"
            "depth, -1 where it is shallower. O(log n).")
        .def(
            "ancestors_at_depth",
            [](const Tree& t, const py::object& nodes, const py::object& depth) {
                const auto ids = integers<NodeId>(nodes, "nodes");
                const auto d = integer32(depth, "depth");
                return owned(without_gil([&] { return t.ancestors_at_depth(ids, d); }));
            },
            py::arg("nodes"), py::arg("depth"),
            "int32[k]: ancestor_at_depth of each of nodes int32[k]. O(k log n).")
        .def(
            "contains",
            [](const Tree& t, const py::object& ancestor, const py::object& node) {
                return t.contains(integer32(ancestor, "ancestor"), integer32(node, "node"));
            },
            py::arg("ancestor"), py::arg("node"),
            "Whether `ancestor` is `node` or lies above it. O(1).")
        .def(
            "subtree_union",
            [](const Tree& t, const py::object& nodes) {
                const auto ids = integers<NodeId>(nodes, "nodes");
                return owned(without_gil([&] { return t.subtree_union(ids); }));
            },
            py::arg("nodes"),
            "int32[s]: ids in the subtrees of nodes int32[k], ascending, each once.")
        .def(
            "nodes_of_kind",
            [](const py::object& self, const py::object& kind) {
                const auto k = static_cast<std::uint8_t>(integer(kind, "kind", 0, 255));
                return view(py::cast<const Tree&>(self).nodes_of_kind(k), self);
            },
            py::arg("kind"), "int32[k], nodes of a kind in document order; read-only view. O(1).")
        .def(
            "nodes_in_pages",
            [](const Tree& t, const py::object& first, const py::object& last) {
                const auto from = integer32(first, "first");
                const auto to = integer32(last, "last");
                return owned(without_gil([&] { return t.nodes_in_pages(from, to); }));
            },
            py::arg("first"), py::arg("last"),
            "int32[k], nodes whose pages meet first..last (1-based, both included), in document\n"
            "order; nodes on no page never do. O(n).");
}

void bind_graph(py::module_& m) {
    py::class_<KnowledgeGraph> graph(
        m, "KnowledgeGraph",
        R"(The knowledge graph of a book: an undirected weighted multigraph (BookRAG, arXiv 2512.03413).

KnowledgeGraph(num_entities, sources, targets, weights)

sources, targets  int32[m]    relation i joins sources[i] and targets[i]
weights           float32[m]  finite and > 0; only their ratios matter

Parallel relations are kept, each with its id, and their weights add up in a random walk. A self-loop
is its entity's neighbour once and counts its weight once (igraph counts it twice). Building takes O(num_entities + m).
Raises InvalidArgumentError for unequal lengths, an unknown entity, a weight that is NaN, infinite or
<= 0, with the position; TooLargeError beyond MAX_ENTITIES or MAX_RELATIONS.)");
    graph.def(
        py::init([](const py::object& num_entities, const py::object& sources,
                    const py::object& targets, const py::object& weights) {
            const auto n = integer(num_entities, "num_entities");
            const auto from = integers<EntityId>(sources, "sources");
            const auto to = integers<EntityId>(targets, "targets");
            const Floats w(weights, "weights", 1);
            const std::vector<float> own(w.values().begin(), w.values().end());
            return without_gil([&] { return std::make_unique<KnowledgeGraph>(n, from, to, own); });
        }),
        py::arg("num_entities"), py::arg("sources"), py::arg("targets"), py::arg("weights"));
    graph.def("__len__", &KnowledgeGraph::num_entities)
        .def("__repr__",
             [](const KnowledgeGraph& g) {
                 return "KnowledgeGraph(entities=" + std::to_string(g.num_entities()) +
                        ", relations=" + std::to_string(g.num_relations()) + ")";
             })
        .def_property_readonly("num_entities", &KnowledgeGraph::num_entities)
        .def_property_readonly("num_relations", &KnowledgeGraph::num_relations)
        .def_property_readonly("offsets",
                               view_property<KnowledgeGraph>(
                                   [](const KnowledgeGraph& g) { return g.adjacency().offsets; }),
                               "int64[num_entities + 1]: slots of entity e are offsets[e] to "
                               "offsets[e + 1]; read-only view.")
        .def_property_readonly(
            "targets", view_property<KnowledgeGraph>([](const KnowledgeGraph& g) {
                return g.adjacency().targets;
            }),
            "int32[slots], neighbour of each slot, ascending within an entity; read-only view.")
        .def_property_readonly(
            "weights",
            view_property<KnowledgeGraph>([](const KnowledgeGraph& g) { return g.weights(); }),
            "float32[slots]; read-only view.")
        .def_property_readonly(
            "relation_ids",
            view_property<KnowledgeGraph>([](const KnowledgeGraph& g) { return g.relation_ids(); }),
            "int32[slots], the relation each slot came from; read-only view.")
        .def_property_readonly(
            "degrees", [](const KnowledgeGraph& g) { return owned(g.degrees()); },
            "int32[num_entities], slots of each entity: parallel relations each, a self-loop once.")
        .def_property_readonly("weighted_degrees",
                               view_property<KnowledgeGraph>(
                                   [](const KnowledgeGraph& g) { return g.weighted_degrees(); }),
                               "float64[num_entities], sum of the slots' weights; read-only view.");
    graph
        .def(
            "neighbours",
            [](const py::object& self, const py::object& entity) {
                const auto n =
                    py::cast<const KnowledgeGraph&>(self).neighbours(integer32(entity, "entity"));
                return py::make_tuple(view(n.entities, self), view(n.weights, self),
                                      view(n.relations, self));
            },
            py::arg("entity"),
            "(ids int32[d], weights float32[d], relation ids int32[d]) by neighbour, then "
            "relation;\n"
            "read-only views. O(1).")
        .def(
            "induced",
            [](const KnowledgeGraph& g, const py::object& entities) {
                const auto ids = integers<EntityId>(entities, "entities");
                auto part = without_gil([&] { return g.induced(ids); });
                return py::make_tuple(std::move(part.graph), owned(std::move(part.entities)));
            },
            py::arg("entities"),
            "(graph, ids): the graph of `entities` int32[k] (any order, repeats allowed) and the "
            "relations\n"
            "among them. Its entity i is ids[i], ascending; its relation ids are this graph's.");
}

void bind_link(py::module_& m) {
    py::class_<GTLink> link(
        m, "GTLink",
        R"(Which tree nodes an entity was extracted from (BookRAG, arXiv 2512.03413, GT-Link).

GTLink(num_entities, num_nodes, entities, nodes)

entities, nodes  int32[l]  pair i ties entities[i] to nodes[i]; repeated pairs count once

Both directions are kept. Building takes O(num_entities + num_nodes + l).
Raises InvalidArgumentError for unequal lengths or an unknown entity or node, with the position;
TooLargeError beyond MAX_ENTITIES, MAX_NODES or MAX_RELATIONS.)");
    link.def(py::init([](const py::object& num_entities, const py::object& num_nodes,
                         const py::object& entities, const py::object& nodes) {
                 const auto ne = integer(num_entities, "num_entities");
                 const auto nn = integer(num_nodes, "num_nodes");
                 const auto e = integers<EntityId>(entities, "entities");
                 const auto v = integers<NodeId>(nodes, "nodes");
                 return without_gil([&] { return std::make_unique<GTLink>(ne, nn, e, v); });
             }),
             py::arg("num_entities"), py::arg("num_nodes"), py::arg("entities"), py::arg("nodes"));
    link.def("__len__", &GTLink::num_links)
        .def("__repr__",
             [](const GTLink& l) {
                 return "GTLink(entities=" + std::to_string(l.num_entities()) +
                        ", nodes=" + std::to_string(l.num_nodes()) +
                        ", links=" + std::to_string(l.num_links()) + ")";
             })
        .def_property_readonly("num_entities", &GTLink::num_entities)
        .def_property_readonly("num_nodes", &GTLink::num_nodes)
        .def_property_readonly("num_links", &GTLink::num_links, "Distinct pairs.");
    link.def(
            "nodes_of",
            [](const py::object& self, const py::object& entity) {
                return view(py::cast<const GTLink&>(self).nodes_of(integer32(entity, "entity")),
                            self);
            },
            py::arg("entity"), "int32[k], nodes of an entity, ascending; read-only view. O(1).")
        .def(
            "entities_of",
            [](const py::object& self, const py::object& node) {
                return view(py::cast<const GTLink&>(self).entities_of(integer32(node, "node")),
                            self);
            },
            py::arg("node"), "int32[k], entities of a node, ascending; read-only view. O(1).")
        .def(
            "nodes_of_many",
            [](const GTLink& l, const py::object& entities) {
                const auto ids = integers<EntityId>(entities, "entities");
                return owned(without_gil([&] { return l.nodes_of_many(ids); }));
            },
            py::arg("entities"), "int32[k]: nodes of any of `entities`, ascending, each once.")
        .def(
            "entities_of_many",
            [](const GTLink& l, const py::object& nodes) {
                const auto ids = integers<NodeId>(nodes, "nodes");
                return owned(without_gil([&] { return l.entities_of_many(ids); }));
            },
            py::arg("nodes"), "int32[k]: entities of any of `nodes`, ascending, each once.")
        .def(
            "project",
            [](const GTLink& l, const py::object& scores) {
                const Floats s(scores, "scores", 1);
                return owned(without_gil([&] { return l.project(s.values()); }));
            },
            py::arg("scores"),
            "float32[num_nodes]: sum of scores float32[num_entities] over the entities of each "
            "node.\n"
            "Scores must be finite. Added in float64.");
}

}  // namespace

void bind_structures(py::module_& m) {
    bind_tree(m);
    bind_graph(m);
    bind_link(m);
}

}  // namespace bookrag::python
