#include "bookrag/page_text.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstring>

#include "bookrag/error.hpp"

namespace py = pybind11;

namespace {

template <class T>
py::array_t<T> array(const std::vector<T>& values, py::ssize_t columns) {
    const auto size = static_cast<py::ssize_t>(values.size());
    py::array_t<T> out(columns == 1 ? std::vector<py::ssize_t>{size}
                                    : std::vector<py::ssize_t>{size / columns, columns});
    if (size > 0) std::memcpy(out.mutable_data(), values.data(), values.size() * sizeof(T));
    return out;
}

bookrag::PdfiumFunctions functions_of(const std::vector<std::uintptr_t>& addresses) {
    if (addresses.size() != bookrag::pdfium_function_count)
        throw bookrag::Error(bookrag::ErrorCode::invalid_argument,
                             "expected " + std::to_string(bookrag::pdfium_function_count) +
                                 " PDFium functions, got " + std::to_string(addresses.size()));
    std::array<void*, bookrag::pdfium_function_count> pointers{};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        if (addresses[i] == 0)
            throw bookrag::Error(bookrag::ErrorCode::invalid_argument, "a PDFium function is null");
        pointers[i] = reinterpret_cast<void*>(addresses[i]);
    }
    bookrag::PdfiumFunctions out{};
    static_assert(sizeof out == sizeof pointers);
    std::memcpy(&out, pointers.data(), sizeof out);
    return out;
}

}  // namespace

void bind_page_text(py::module_& m) {
    m.def(
        "read_page_text",
        [](const std::vector<std::uintptr_t>& addresses, std::uintptr_t text_page,
           std::size_t limit) {
            const auto functions = functions_of(addresses);
            bookrag::PageText page;
            {
                py::gil_scoped_release released;
                page = bookrag::read_page_text(functions, reinterpret_cast<void*>(text_page),
                                               limit);
            }
            py::list fonts;
            for (const auto& name : page.fonts) {
                // Font names are bytes of any encoding: never an error.
                fonts.append(py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
                    name.data(), static_cast<py::ssize_t>(name.size()), "replace")));
            }
            return py::make_tuple(array(page.unicode, 1), array(page.loose, 4),
                                  array(page.tight, 4), array(page.origin, 2),
                                  array(page.generated, 1), array(page.run, 1),
                                  array(page.font_size, 1), array(page.matrix, 4),
                                  array(page.weight, 1), array(page.flags, 1), array(page.mode, 1),
                                  array(page.color, 1), array(page.font, 1), fonts);
        },
        py::arg("functions"), py::arg("text_page"), py::arg("limit"),
        "All characters of a PDFium text page; the caller holds PDFium's lock. See page_text.hpp.");
    m.def(
        "read_page_objects",
        [](const std::vector<std::uintptr_t>& addresses, std::uintptr_t page, std::size_t limit) {
            const auto functions = functions_of(addresses);
            bookrag::PageObjects objects;
            {
                py::gil_scoped_release released;
                objects =
                    bookrag::read_page_objects(functions, reinterpret_cast<void*>(page), limit);
            }
            return py::make_tuple(array(objects.kind, 1), array(objects.box, 4),
                                  objects.truncated);
        },
        py::arg("functions"), py::arg("page"), py::arg("limit"),
        "Kinds and boxes of a PDFium page's images, paths and shadings. See page_text.hpp.");
}
