// Pages read through a PDFium that the caller has loaded; see page_text.hpp.
#include "bookrag/page_text.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bookrag/error.hpp"
#include "module.hpp"

namespace bookrag::python {
namespace {

template <typename T>
py::array_t<T> table(std::vector<T>&& values, py::ssize_t columns) {
    const auto rows = static_cast<py::ssize_t>(values.size()) / columns;
    return owned(std::move(values), {rows, columns});
}

PdfiumFunctions functions_of(const std::vector<std::uintptr_t>& addresses) {
    if (addresses.size() != kPdfiumFunctionCount) {
        refuse("functions", "has " + std::to_string(addresses.size()) +
                                " addresses, but must have " +
                                std::to_string(kPdfiumFunctionCount));
    }
    std::array<void*, kPdfiumFunctionCount> pointers{};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        if (addresses[i] == 0) refuse("functions", "holds a null address");
        pointers[i] = reinterpret_cast<void*>(addresses[i]);
    }
    PdfiumFunctions functions{};
    static_assert(sizeof functions == sizeof pointers);
    std::memcpy(&functions, pointers.data(), sizeof functions);
    return functions;
}

void* handle_of(std::uintptr_t address, const char* name) {
    if (address == 0) refuse(name, "is null");
    return reinterpret_cast<void*>(address);
}

py::tuple page_text(const std::vector<std::uintptr_t>& addresses, std::uintptr_t text_page,
                    std::size_t limit) {
    const PdfiumFunctions functions = functions_of(addresses);
    void* handle = handle_of(text_page, "text_page");
    PageText page;
    {
        py::gil_scoped_release released;
        page = read_page_text(functions, handle, limit);
    }
    py::list fonts;
    for (const auto& name : page.fonts) {
        // Font names are bytes of any encoding: never an error.
        fonts.append(py::reinterpret_steal<py::object>(
            PyUnicode_DecodeUTF8(name.data(), static_cast<py::ssize_t>(name.size()), "replace")));
    }
    return py::make_tuple(owned(std::move(page.unicode)), table(std::move(page.loose), 4),
                          table(std::move(page.tight), 4), table(std::move(page.origin), 2),
                          owned(std::move(page.generated)), owned(std::move(page.run)),
                          owned(std::move(page.font_size)), table(std::move(page.matrix), 4),
                          owned(std::move(page.weight)), owned(std::move(page.flags)),
                          owned(std::move(page.mode)), owned(std::move(page.color)),
                          owned(std::move(page.font)), fonts);
}

py::tuple page_objects(const std::vector<std::uintptr_t>& addresses, std::uintptr_t page,
                       std::size_t limit) {
    const PdfiumFunctions functions = functions_of(addresses);
    void* handle = handle_of(page, "page");
    PageObjects objects;
    {
        py::gil_scoped_release released;
        objects = read_page_objects(functions, handle, limit);
    }
    return py::make_tuple(owned(std::move(objects.kind)), table(std::move(objects.box), 4),
                          objects.truncated);
}

}  // namespace

void bind_page_text(py::module_& m) {
    m.def("read_page_text", &page_text, py::arg("functions"), py::arg("text_page"),
          py::arg("limit"),
          R"(All characters of a PDFium text page, as arrays; the caller holds PDFium's lock.

functions  addresses of PDFium's C functions, in the order of PdfiumFunctions in page_text.hpp
text_page  address of the FPDF_TEXTPAGE
limit      more characters than this raise TooLargeError)");
    m.def(
        "read_page_objects", &page_objects, py::arg("functions"), py::arg("page"), py::arg("limit"),
        R"((kinds, boxes, truncated) of a PDFium page's images, paths and shadings; the caller holds
PDFium's lock. At most `limit` objects are read.)");
}

}  // namespace bookrag::python
