// Retrieval over a small book without Python: which nodes answer a question about entity "pump"?
//
//   cmake --install build/release --prefix "$HOME/bookrag"
//   cmake -S examples/cpp -B build/example -DCMAKE_PREFIX_PATH="$HOME/bookrag"
//   cmake --build build/example && build/example/ranked_nodes
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <bookrag/error.hpp>
#include <bookrag/gt_link.hpp>
#include <bookrag/knowledge_graph.hpp>
#include <bookrag/pagerank.hpp>
#include <bookrag/skyline.hpp>
#include <bookrag/tree.hpp>

namespace {

// The book: a root, two sections, and what is in them.
const std::vector<std::string> kTitles{"Manual",
                                       "1 Cooling",
                                       "1.1 The pump moves water",
                                       "1.2 The radiator sheds heat",
                                       "2 Electricity",
                                       "2.1 A fuse protects the pump",
                                       "2.2 Colours of wires"};
constexpr std::array<std::int32_t, 7> kParents{-1, 0, 1, 1, 0, 4, 4};
constexpr std::array<std::uint8_t, 7> kKinds{0, 1, 2, 2, 1, 2, 2};
constexpr std::array<std::int32_t, 7> kFirstPage{1, 1, 1, 2, 3, 3, 4};
constexpr std::array<std::int32_t, 7> kLastPage{4, 2, 1, 2, 4, 3, 4};

// Its entities (0 pump, 1 water, 2 radiator, 3 heat, 4 fuse, 5 wire), what relates them, and the
// nodes that mention them.
constexpr std::array<std::int32_t, 5> kSources{0, 1, 2, 4, 4};
constexpr std::array<std::int32_t, 5> kTargets{1, 2, 3, 0, 5};
constexpr std::array<float, 5> kWeights{2.0F, 1.0F, 2.0F, 1.5F, 0.5F};
constexpr std::array<std::int32_t, 8> kMentions{0, 1, 2, 3, 1, 4, 0, 5};
constexpr std::array<std::int32_t, 8> kMentionedIn{2, 2, 3, 3, 3, 5, 5, 6};

// How well each node's text fits the question, from whatever scores text.
constexpr std::array<float, 7> kTextScores{0.1F, 0.3F, 0.7F, 0.2F, 0.1F, 0.9F, 0.4F};

void rank() {
    const bookrag::Tree tree(kParents, kKinds, kFirstPage, kLastPage);
    const bookrag::KnowledgeGraph graph(6, kSources, kTargets, kWeights);
    const bookrag::GTLink link(6, tree.num_nodes(), kMentions, kMentionedIn);

    const std::array<bookrag::EntityId, 1> pump{0};
    const auto by_entity = bookrag::personalized_pagerank(graph, pump);
    const auto by_graph = link.project(by_entity);

    std::vector<float> criteria;
    for (std::size_t node = 0; node < by_graph.size(); ++node) {
        criteria.insert(criteria.end(), {by_graph[node], kTextScores[node]});
    }
    auto front = bookrag::skyline(criteria, 2);
    std::sort(front.begin(), front.end(), [&](auto a, auto b) {
        return by_graph[static_cast<std::size_t>(a)] > by_graph[static_cast<std::size_t>(b)];
    });
    for (const auto node : front) {
        const auto id = static_cast<bookrag::NodeId>(node);
        const auto section = tree.ancestor_at_depth(id, 1);
        std::printf("%-30s in %-14s graph %.3f text %.1f\n",
                    kTitles[static_cast<std::size_t>(id)].c_str(),
                    kTitles[static_cast<std::size_t>(section)].c_str(),
                    double{by_graph[static_cast<std::size_t>(id)]},
                    double{kTextScores[static_cast<std::size_t>(id)]});
    }
}

}  // namespace

int main() {
    try {
        rank();
    } catch (const bookrag::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
