// NumPy <-> spans: the only place that knows both. Every function here needs the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bookrag/error.hpp"

namespace bookrag::python {

namespace py = pybind11;

// ---------------------------------------------------------------- in

// "must be a 1-dimensional array of integers" and the like, prefixed by the argument's name.
[[noreturn]] inline void refuse(const char* name, const std::string& why) {
    throw Error(ErrorCode::invalid_argument, std::string(name) + " " + why);
}

// Anything NumPy makes an array of. Its dtype is looked at before any conversion of values.
inline py::array as_array(const py::object& value, const char* name, py::ssize_t ndim) {
    if (value.is_none()) refuse(name, "is None, but must be an array");
    py::array array = py::array::ensure(value);  // clears NumPy's error if it fails
    if (!array) refuse(name, "cannot be turned into an array (rows of unequal length?)");
    if (array.ndim() != ndim) {
        refuse(name, "has " + std::to_string(array.ndim()) + " dimensions, but must have " +
                         std::to_string(ndim));
    }
    return array;
}

// What NumPy is asked for when it must convert: contiguous and aligned, in the machine's byte
// order.
inline constexpr int kConvert =
    py::array::c_style | py::array::forcecast | py::detail::npy_api::NPY_ARRAY_ALIGNED_;

// Whether the values can be read where they are: as T, contiguous, aligned.
template <typename T>
bool readable_as(const py::array& array) {
    return py::isinstance<py::array_t<T, py::array::c_style>>(array) &&
           (array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
}

inline std::string dtype_name(const py::array& array) {
    return py::str(array.dtype()).cast<std::string>();
}

// The values as T. Raises what NumPy raises where memory runs out; what it cannot convert is
// refused.
template <typename T>
py::array_t<T, kConvert> converted(const py::array& array, const char* name) {
    try {
        return py::array_t<T, kConvert>(array);
    } catch (const py::error_already_set& error) {
        if (error.matches(PyExc_MemoryError)) throw;
        refuse(name, "has dtype " + dtype_name(array) + ", which cannot be converted");
    }
}

#ifndef Py_GIL_DISABLED
// The integers of a list, if it holds nothing else, all within range.
template <typename T>
std::optional<std::vector<T>> few_integers(PyObject* list) {
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(PyList_GET_SIZE(list)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        PyObject* const item = PyList_GET_ITEM(list, i);
        if (!PyLong_CheckExact(item)) return std::nullopt;
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow != 0 || !std::in_range<T>(number)) return std::nullopt;
        out.push_back(static_cast<T>(number));
    }
    return out;
}
#endif

// Integers as a private copy, narrowed with a range check. A copy on purpose: ids index memory, and
// the caller's array may be written to by another thread once the GIL is released.
template <typename T>
std::vector<T> integers(const py::object& value, const char* name, py::ssize_t ndim = 1) {
#ifndef Py_GIL_DISABLED  // another thread may change the list meanwhile
    // A short list, as of seeds: a microsecond faster than by way of an array.
    if (ndim == 1 && PyList_CheckExact(value.ptr()) && PyList_GET_SIZE(value.ptr()) <= 64) {
        if (auto few = few_integers<T>(value.ptr())) return *std::move(few);
    }
#endif
    const py::array array = as_array(value, name, ndim);
    const char kind = array.dtype().kind();
    if (array.size() == 0 && (kind == 'f' || kind == 'O'))
        return {};  // [] and np.array([]) are floats
    if (kind != 'i' && kind != 'u') {
        refuse(name, "has dtype " + dtype_name(array) + ", but must hold integers");
    }
    std::vector<T> out(static_cast<std::size_t>(array.size()));
    const auto narrow = [&](const auto& wide) {
        const auto* values = wide.data();
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (!std::in_range<T>(values[i])) {
                throw Error(ErrorCode::out_of_range,
                            std::string(name) + " holds " + std::to_string(values[i]) +
                                ", which is outside " +
                                std::to_string(std::numeric_limits<T>::min()) + " to " +
                                std::to_string(std::numeric_limits<T>::max()));
            }
            out[i] = static_cast<T>(values[i]);
        }
    };
    if (kind == 'u' && array.itemsize() == 8) {
        narrow(converted<std::uint64_t>(array, name));
    } else if (readable_as<T>(array)) {
        narrow(py::reinterpret_borrow<py::array_t<T, py::array::c_style>>(array));
    } else {
        narrow(converted<std::int64_t>(array, name));
    }
    return out;
}

// Floats, borrowed from the caller where they already are contiguous float32, else a converted
// copy. The core reads borrowed floats without trusting them twice.
class Floats {
  public:
    Floats(const py::object& value, const char* name, py::ssize_t ndim) {
        const py::array array = as_array(value, name, ndim);
        const char kind = array.dtype().kind();
        if (kind != 'f' && kind != 'i' && kind != 'u' && array.size() != 0) {
            refuse(name, "has dtype " + dtype_name(array) + ", but must hold real numbers");
        }
        for (py::ssize_t d = 0; d < ndim; ++d) shape_.push_back(array.shape(d));
        if (array.size() == 0) return;
        if (readable_as<float>(array)) {
            array_ = py::reinterpret_borrow<py::array_t<float, py::array::c_style>>(array);
        } else {
            array_ = narrow(array, name);
        }
    }

    [[nodiscard]] std::span<const float> values() const {
        return {array_.data(), static_cast<std::size_t>(array_.size())};
    }
    [[nodiscard]] std::int64_t shape(std::size_t axis) const { return shape_[axis]; }

  private:
    using Array = py::array_t<float, py::array::c_style>;

    // Rounds to float32; a finite value that float32 cannot hold is refused rather than made inf.
    static Array narrow(const py::array& array, const char* name) {
        const auto wide = converted<double>(array, name);
        Array out(std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim()));
        const double* from = wide.data();
        float* to = out.mutable_data();
        for (py::ssize_t i = 0; i < wide.size(); ++i) {
            if (std::isfinite(from[i]) &&
                std::abs(from[i]) > double{std::numeric_limits<float>::max()}) {
                refuse(name, "holds " + py::str(py::float_(from[i])).cast<std::string>() +
                                 ", which float32 cannot hold");
            }
            to[i] = static_cast<float>(from[i]);
        }
        return out;
    }

    Array array_{0};
    std::vector<std::int64_t> shape_;
};

// A Python number (or NumPy scalar) as float64.
inline double real(const py::object& value, const char* name) {
    const double result = PyFloat_AsDouble(value.ptr());
    if (result == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        refuse(name, "is " + py::repr(value).cast<std::string>() + ", but must be a real number");
    }
    return result;
}

// A Python integer (or NumPy integer scalar) within [low, high].
inline std::int64_t integer(const py::object& value, const char* name,
                            std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                            std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index) {
        PyErr_Clear();
        refuse(name, "is " + py::repr(value).cast<std::string>() + ", but must be an integer");
    }
    int overflow = 0;
    const long long result = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow != 0 || result < low || result > high) {
        throw Error(ErrorCode::out_of_range, std::string(name) + " is " +
                                                 py::str(index).cast<std::string>() +
                                                 ", which is outside " + std::to_string(low) +
                                                 " to " + std::to_string(high));
    }
    return result;
}

// An id or another number that the core keeps in 32 bits.
inline std::int32_t integer32(const py::object& value, const char* name) {
    return static_cast<std::int32_t>(integer(value, name, std::numeric_limits<std::int32_t>::min(),
                                             std::numeric_limits<std::int32_t>::max()));
}

// ---------------------------------------------------------------- out

// A read-only array over memory that `owner` keeps alive; the array holds a reference to `owner`.
template <typename T>
py::array_t<T> view(std::span<const T> values, const py::object& owner) {
    py::array_t<T> array({static_cast<py::ssize_t>(values.size())},
                         {static_cast<py::ssize_t>(sizeof(T))}, values.data(), owner);
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return array;
}

template <typename T>
std::span<const T> values_of(const py::array_t<T>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
}

// An array that owns what the vector held: moved, or copied where that is sooner done.
template <typename T>
py::array_t<T> owned(std::vector<T>&& values, std::vector<py::ssize_t> shape = {}) {
    constexpr std::size_t kFew = std::size_t{1} << 14;  // bytes
    if (shape.empty() && values.size() * sizeof(T) <= kFew) {
        py::array_t<T> out(static_cast<py::ssize_t>(values.size()));
        std::copy(values.begin(), values.end(), out.mutable_data());
        return out;
    }
    auto held = std::make_unique<std::vector<T>>(std::move(values));
    const T* data = held->data();
    if (shape.empty()) shape = {static_cast<py::ssize_t>(held->size())};
    py::capsule owner(held.get(), [](void* p) {
        std::default_delete<std::vector<T>>()(static_cast<std::vector<T>*>(p));
    });
    held.release();  // the capsule has it
    return py::array_t<T>(std::move(shape), data, owner);
}

// Runs `compute` without the GIL and hands back its result. Nothing of Python may be touched in it.
template <typename F>
auto without_gil(F&& compute) {
    const py::gil_scoped_release release;
    return std::forward<F>(compute)();
}

}  // namespace bookrag::python
