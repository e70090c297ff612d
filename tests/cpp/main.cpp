#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "testing.hpp"

namespace testing {

std::vector<Test>& registry() {
    static std::vector<Test> tests;
    return tests;
}

}  // namespace testing

int main(int argc, char** argv) {
    const std::vector<std::string> suites(argv + 1, argv + argc);
    int ran = 0;
    int failed = 0;
    for (const auto& test : testing::registry()) {
        if (!suites.empty() && std::ranges::find(suites, test.suite) == suites.end()) continue;
        ++ran;
        try {
            test.body();
            std::printf("ok      %s.%s\n", test.suite.c_str(), test.name.c_str());
        } catch (const std::exception& error) {
            ++failed;
            std::printf("FAILED  %s.%s\n        %s\n", test.suite.c_str(), test.name.c_str(),
                        error.what());
        }
    }
    std::printf("%d run, %d failed\n", ran, failed);
    return ran == 0 || failed != 0 ? 1 : 0;  // a suite name that matches nothing must not pass
}
