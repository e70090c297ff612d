// What the binding's files offer to module.cpp.
#pragma once

#include <pybind11/pybind11.h>

namespace bookrag::python {

void bind_structures(pybind11::module_& m);
void bind_pagerank(pybind11::module_& m);
void bind_algorithms(pybind11::module_& m);
void bind_similarity(pybind11::module_& m);
void bind_page_text(pybind11::module_& m);
void bind_retrieval(pybind11::module_& m);

}  // namespace bookrag::python
