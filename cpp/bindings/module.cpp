// The Python module bookrag_fast._core: translation of errors, limits, and the order of the parts.
#include "module.hpp"

#include <pybind11/pybind11.h>

#include <exception>

#include "bookrag/dispatch.hpp"
#include "bookrag/error.hpp"
#include "bookrag/types.hpp"

namespace py = pybind11;

namespace {

// The one place where the core's errors become Python's. The exception classes are looked up when
// an error happens: nothing is cached across interpreters, and only the failing path pays.
void translate(std::exception_ptr thrown) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const bookrag::Error& error) {
        const char* name = "InvalidArgumentError";
        switch (error.code()) {
            case bookrag::ErrorCode::invalid_argument:
            case bookrag::ErrorCode::out_of_range:
                break;
            case bookrag::ErrorCode::too_large:
                name = "TooLargeError";
                break;
        }
        try {
            const py::object type = py::module_::import("bookrag_fast.errors").attr(name);
            py::set_error(type, error.what());
        } catch (py::error_already_set& missing) {
            missing.restore();
        }
    }
}

constexpr const char* kDoc = R"(Compiled core of bookrag_fast; use it as `bookrag_fast.core`.

Arrays go in as anything NumPy can turn into an array: integers of any width are range-checked,
floats are rounded to float32, neither contiguity nor alignment matters. Arrays come out read-only
where they are views of a structure (which they keep alive), owned and writable otherwise.

Structures never change once built. Every call that computes releases the GIL, and any number of
threads may share a structure; free-threaded Python runs the module without a GIL. Sub-interpreters
cannot import it (ImportError). Wrong values raise bookrag_fast.errors.InvalidArgumentError (a
ValueError), counts beyond the MAX_* limits bookrag_fast.errors.TooLargeError.)";

// NumPy does not support them either.
constexpr const char* kNoSubInterpreters =
    "bookrag_fast._core works in the main interpreter alone, as NumPy does: use threads or "
    "processes (mod_wsgi: WSGIApplicationGroup %{GLOBAL})";

bool in_sub_interpreter() {
    return PyInterpreterState_Get() != PyInterpreterState_Main();
}

}  // namespace

// The parts of the module. Nothing of it is mutable after import, so free-threaded Python needs no
// GIL for it.
PYBIND11_MODULE(_core_parts, m, py::mod_gil_not_used()) {
    // Since 3.13 Python calls PyInit in the main interpreter, and what follows in the right one.
    if (in_sub_interpreter()) throw py::import_error(kNoSubInterpreters);
    m.doc() = kDoc;
    m.attr("__version__") = BOOKRAG_VERSION;
    m.attr("MAX_ENTITIES") = bookrag::kMaxEntities;
    m.attr("MAX_NODES") = bookrag::kMaxNodes;
    m.attr("MAX_RELATIONS") = bookrag::kMaxRelations;
    (void)bookrag::isa();  // an unknown BOOKRAG_ISA fails the import, not some later call
    m.def(
        "isa", [] { return bookrag::isa_name(bookrag::isa()); },
        R"(Instruction set of the kernels in use: "avx512", "avx2", "sse42", or "baseline" off x86-64.

The best that the CPU has, unless the environment variable BOOKRAG_ISA names a lower one before the
import. Results are the same bit for bit.)");
    py::register_local_exception_translator(translate);
    bookrag::python::bind_structures(m);
    bookrag::python::bind_pagerank(m);
    bookrag::python::bind_algorithms(m);
    bookrag::python::bind_similarity(m);
    bookrag::python::bind_page_text(m);
    bookrag::python::bind_retrieval(m);
}

// pybind11 would wait for ever for the GIL of the main interpreter where Python is older than 3.12:
// sub-interpreters are refused before it is asked anything.
PyMODINIT_FUNC PyInit__core() {
    if (in_sub_interpreter()) {
        PyErr_SetString(PyExc_ImportError, kNoSubInterpreters);
        return nullptr;
    }
    return PyInit__core_parts();
}
