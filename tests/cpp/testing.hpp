// A test harness of one page, so that nothing has to be installed to run the C++ tests.
//
//   TEST(suite, name) { CHECK(a == b); CHECK_EQ(a, b); CHECK_THROWS(code, expression); }
//
// The program runs every test, or those of the suites named on its command line, and fails on the
// first check of a test that does not hold.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bookrag/error.hpp"

namespace testing {

struct Test {
    std::string suite;
    std::string name;
    std::function<void()> body;
};

std::vector<Test>& registry();

struct Registrar {
    Registrar(const char* suite, const char* name, std::function<void()> body) {
        registry().push_back({suite, name, std::move(body)});
    }
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <typename T>
std::string show(const T& value) {
    std::ostringstream out;
    if constexpr (std::ranges::input_range<T> && !std::convertible_to<T, std::string>) {
        out << '[';
        for (const auto& v : value) out << +v << ' ';
        out << ']';
    } else {
        out << +value;
    }
    return out.str();
}

[[noreturn]] inline void fail(const std::string& what, std::source_location where) {
    throw Failure(std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " +
                  what);
}

template <typename A, typename B>
void check_equal(const A& a, const B& b, const std::string& text,
                 std::source_location where = std::source_location::current()) {
    bool equal = false;
    if constexpr (std::ranges::input_range<A>)
        equal = std::ranges::equal(a, b);
    else
        equal = a == b;
    if (!equal) fail(text + ": " + show(a) + " is not " + show(b), where);
}

template <typename F>
void check_throws(bookrag::ErrorCode code, F&& body, const std::string& text,
                  std::source_location where = std::source_location::current()) {
    try {
        body();
    } catch (const bookrag::Error& error) {
        if (error.code() != code) fail(text + " threw another code: " + error.what(), where);
        return;
    }
    fail(text + " did not throw", where);
}

}  // namespace testing

#define TEST(suite, name)                                                             \
    static void test_##suite##_##name();                                              \
    static const testing::Registrar register_##suite##_##name(#suite, #name,          \
                                                              test_##suite##_##name); \
    static void test_##suite##_##name()

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition))                                                                \
            testing::fail(#condition " does not hold", std::source_location::current()); \
    } while (false)
#define CHECK_EQ(a, b) testing::check_equal((a), (b), #a)
#define CHECK_THROWS(error_code, ...) \
    testing::check_throws(            \
        bookrag::ErrorCode::error_code, [&] { (void)(__VA_ARGS__); }, #__VA_ARGS__)
