// Skyline and entity resolution in Python.
#include <string>

#include "arrays.hpp"
#include "bookrag/entity_resolution.hpp"
#include "bookrag/skyline.hpp"
#include "casters.hpp"
#include "module.hpp"

namespace bookrag::python {

namespace {

void bind_skyline(py::module_& m) {
    m.def(
        "skyline",
        [](const py::object& scores) {
            const Floats s(scores, "scores", 2);
            const auto d = s.shape(1);
            return owned(without_gil([&] { return skyline(s.values(), d); }));
        },
        py::arg("scores"),
        R"(Pareto skyline (Börzsönyi et al., ICDE 2001) -> int64[k], row numbers ascending.

scores  float32[n, d], d = 2 to 4; larger is better; infinities allowed, NaN not

Rows that no other row dominates (as large in every column, larger in one). Equal rows all stay.
float64 is rounded to float32 first, which can make near values equal. n = 0 gives no row.
O(n log n) for d = 2, 3; O(n log n + n k) for d = 4.)");
}

void bind_resolution(py::module_& m) {
    m.attr("NEW") = static_cast<int>(ResolutionCase::new_entity);
    m.attr("MERGE") = static_cast<int>(ResolutionCase::merge);
    m.attr("AMBIGUOUS") = static_cast<int>(ResolutionCase::ambiguous);

    py::class_<ShapedGradientDrop>(m, "GradientDrop",
                                   "Result of gradient_drop: one decision a row.")
        .def("__len__", [](const ShapedGradientDrop& r) { return r.rows; })
        .def("__repr__",
             [](const ShapedGradientDrop& r) {
                 return "GradientDrop(rows=" + std::to_string(r.rows) +
                        ", candidates=" + std::to_string(r.columns) + ")";
             })
        .def_property_readonly(
            "case",
            [](const py::object& self) {
                const auto& r = py::cast<const ShapedGradientDrop&>(self);
                return view(values_of(r.cases), self);
            },
            "uint8[n]: NEW, MERGE or AMBIGUOUS; read-only view.")
        .def_property_readonly(
            "size",
            [](const py::object& self) {
                const auto& r = py::cast<const ShapedGradientDrop&>(self);
                return view(values_of(r.sizes), self);
            },
            "int32[n]: candidates in the high group; read-only view.")
        .def_property_readonly(
            "order",
            [](const py::object& self) {
                const auto& r = py::cast<const ShapedGradientDrop&>(self);
                return view(values_of(r.order), self).reshape({r.rows, r.columns});
            },
            "int32[n, k]: columns by descending score, ties by column; the first size[i] of row i "
            "are its\n"
            "high group; read-only view.");

    m.def(
        "gradient_drop",
        [](const py::object& scores, const py::object& g, const py::object& min_score) {
            const Floats s(scores, "scores", 2);
            const GradientDropOptions options{static_cast<float>(real(g, "g")),
                                              static_cast<float>(real(min_score, "min_score"))};
            const auto n = s.shape(0);
            const auto k = s.shape(1);
            if (n > std::numeric_limits<std::int32_t>::max()) {  // before memory is taken
                throw Error(ErrorCode::too_large, "scores has " + std::to_string(n) + " rows");
            }
            ShapedGradientDrop result(n, k);
            const GradientDropView out = result.view();
            without_gil([&] { gradient_drop_into(s.values(), n, k, options, out); });
            return result;
        },
        py::arg("scores"), py::kw_only(), py::arg("g") = 0.6, py::arg("min_score") = 0.5,
        R"(Gradient-based entity resolution (BookRAG, arXiv 2512.03413, Algorithm 1) -> GradientDrop.

scores     float32[n, k]  k candidates of each of n new entities, in any order; -inf: no candidate
g          (0, 1]         the next score stays in the high group while it is >= g * the one before
min_score  >= 0           a best score below this makes the row NEW

A row is NEW with size 0 if it has no candidate or its best is below min_score; NEW with size k if all k
candidates lie in the high group; else MERGE if the group holds one, AMBIGUOUS if it holds several.
Fewer than k candidates that never drop are no NEW: running out counts as the drop. So does k = 1.
Compared in float32. O(n k log k). Raises InvalidArgumentError for NaN or +inf, with its place.)");

    py::class_<MergePlan>(m, "MergePlan", "Result of merge_plan: who is the same entity as whom.")
        .def("__repr__",
             [](const MergePlan& p) {
                 return "MergePlan(entities=" + std::to_string(p.representative.size()) +
                        ", sets=" + std::to_string(p.num_sets) +
                        ", skipped=" + std::to_string(p.skipped.size()) + ")";
             })
        .def_readonly("num_sets", &MergePlan::num_sets, "Entities left after merging.")
        .def_property_readonly(
            "representative",
            [](const py::object& self) {
                const auto& p = py::cast<const MergePlan&>(self);
                return view(std::span<const EntityId>(p.representative), self);
            },
            "int32[num_entities]: smallest id of each entity's set; read-only view.")
        .def_property_readonly(
            "skipped",
            [](const py::object& self) {
                const auto& p = py::cast<const MergePlan&>(self);
                return view(std::span<const std::int64_t>(p.skipped), self);
            },
            "int64[s]: numbers of the pairs that `incompatible` kept apart, ascending; read-only "
            "view.");

    m.def(
        "merge_plan",
        [](const py::object& num_entities, const py::object& left, const py::object& right,
           const py::object& incompatible) {
            const auto n = integer(num_entities, "num_entities");
            const auto a = integers<EntityId>(left, "left");
            const auto b = integers<EntityId>(right, "right");
            std::vector<EntityId> apart;
            if (!incompatible.is_none()) {
                const auto pairs = as_array(incompatible, "incompatible", 2);
                if (pairs.shape(1) != 2) {
                    refuse("incompatible",
                           "has " + std::to_string(pairs.shape(1)) + " columns, but must have 2");
                }
                apart = integers<EntityId>(pairs, "incompatible", 2);
            }
            return without_gil([&] { return merge_plan(n, a, b, apart); });
        },
        py::arg("num_entities"), py::arg("left"), py::arg("right"),
        py::arg("incompatible") = py::none(),
        R"(Union of the pairs (left[i], right[i]) -> MergePlan (union-find; Tarjan, JACM 1975).

left, right   int32[m]            pairs that are one entity
incompatible  int32[q, 2] or None  pairs that must stay apart

Without `incompatible` the plan does not depend on the order of the pairs. With it, pairs are taken in
the order given, and one that would join an incompatible pair, directly or through earlier merges, is
skipped and reported: put the surest first.)");
}

}  // namespace

void bind_algorithms(py::module_& m) {
    bind_skyline(m);
    bind_resolution(m);
}

}  // namespace bookrag::python
