// Refuses objects whose __init__ never ran, as `Tree.__new__(Tree)` makes them. pybind11 would hand
// out uninitialised memory for such an object; here the call is a TypeError instead. Include this
// in every file that takes one of these types from Python.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bookrag/entity_resolution.hpp"
#include "bookrag/gt_link.hpp"
#include "bookrag/knowledge_graph.hpp"
#include "bookrag/similarity.hpp"
#include "bookrag/tree.hpp"

namespace bookrag::python {

// The result with its shape, in NumPy's memory: not cleared before it is written, and of huge pages
// where it is large. Fresh small ones would take several times as long to fault in as the
// computation takes.
struct ShapedGradientDrop {
    ShapedGradientDrop(std::int64_t n, std::int64_t k)
        : rows(n), columns(k), cases(n), sizes(n), order(n * k) {}

    [[nodiscard]] GradientDropView view() {
        const auto n = static_cast<std::size_t>(rows);
        return {{cases.mutable_data(), n},
                {sizes.mutable_data(), n},
                {order.mutable_data(), static_cast<std::size_t>(order.size())}};
    }

    std::int64_t rows;
    std::int64_t columns;
    pybind11::array_t<std::uint8_t> cases;
    pybind11::array_t<std::int32_t> sizes;
    pybind11::array_t<std::int32_t> order;  // flat
};

template <typename T>
class ConstructedCaster : public pybind11::detail::type_caster_base<T> {
  public:
    bool load(pybind11::handle source, bool convert) {
        const auto* type = this->typeinfo;
        if (type != nullptr && source && PyType_IsSubtype(Py_TYPE(source.ptr()), type->type) != 0) {
            auto* instance = reinterpret_cast<pybind11::detail::instance*>(source.ptr());
            const auto part = instance->get_value_and_holder(type, false);
            if (part.inst == nullptr || !part.holder_constructed()) return false;
        }
        return pybind11::detail::type_caster_base<T>::load(source, convert);
    }
};

}  // namespace bookrag::python

namespace pybind11::detail {

template <>
class type_caster<bookrag::Tree> : public bookrag::python::ConstructedCaster<bookrag::Tree> {};
template <>
class type_caster<bookrag::KnowledgeGraph>
    : public bookrag::python::ConstructedCaster<bookrag::KnowledgeGraph> {};
template <>
class type_caster<bookrag::GTLink> : public bookrag::python::ConstructedCaster<bookrag::GTLink> {};
template <>
class type_caster<bookrag::VectorIndex>
    : public bookrag::python::ConstructedCaster<bookrag::VectorIndex> {};
template <>
class type_caster<bookrag::MergePlan>
    : public bookrag::python::ConstructedCaster<bookrag::MergePlan> {};
template <>
class type_caster<bookrag::python::ShapedGradientDrop>
    : public bookrag::python::ConstructedCaster<bookrag::python::ShapedGradientDrop> {};

}  // namespace pybind11::detail
