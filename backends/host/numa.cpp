// SPDX-License-Identifier: Apache-2.0
#include "numa.hpp"

#include <vector>

namespace ferry::host::numa {

/// Adds a number to an ascending list.
void add_node(std::vector<int>& nodes, int node) {
  std::size_t place = nodes.size();
  while (place != 0 && nodes[place - 1] > node) --place;
  if (place != 0 && nodes[place - 1] == node) return;
  nodes.push_back(node);
  for (std::size_t i = nodes.size() - 1; i != place; --i) std::swap(nodes[i], nodes[i - 1]);
}

std::vector<int> parse_node_list(std::string_view text) {
  constexpr int most = 1 << 16;
  std::vector<int> nodes;
  std::size_t position = 0;
  const auto number = [&](int& result) {
    const std::size_t begin = position;
    for (result = 0;
         position < text.size() && text[position] >= '0' && text[position] <= '9' && result < most;
         ++position)
      result = 10 * result + (text[position] - '0');
    return position != begin && result < most;
  };
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (position < text.size()) {
    int first = 0, last = 0;
    if (!number(first)) return {};
    last = first;
    if (position < text.size() && text[position] == '-' && (++position, !number(last) || last < first))
      return {};
    for (int node = first; node <= last; ++node) add_node(nodes, node);
    if (position < text.size() && (text[position] != ',' || ++position == text.size())) return {};
  }
  return nodes;
}

int parse_node(std::string_view text) {
  const std::vector<int> nodes = parse_node_list(text);
  return nodes.size() == 1 ? nodes.front() : -1;
}

std::string first_line(const std::string& path) {
  std::string line;
  if (const ferry::detail::file_stream file(std::fopen(path.c_str(), "re")); file != nullptr) {
    char text[1024];
    if (std::fgets(text, sizeof text, file.get()) != nullptr) line = text;
  }
  return line;
}

const std::vector<int>& nodes_with_memory() {
  static const std::vector<int> nodes = parse_node_list(first_line("/sys/devices/system/node/has_memory"));
  return nodes;
}

placement near_device(int device_node, const std::vector<int>& nodes) {
  if (nodes.size() < 2 || std::find(nodes.begin(), nodes.end(), device_node) == nodes.end()) return {};
  return {placement::policy::preferred, {device_node}};
}

placement spread(const std::vector<int>& nodes) {
  if (nodes.size() < 2) return {};
  return {placement::policy::interleaved, nodes};
}

int advise(void* pages, std::size_t bytes, const placement& choice) noexcept {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  constexpr long mode_preferred = 1, mode_interleave = 3;  // linux/mempolicy.h
  if (choice.how == placement::policy::unset) return 0;
  std::array<unsigned long, 16> mask{};
  for (const int node : choice.nodes) {
    const auto place = static_cast<std::size_t>(node);
    if (place < mask.size() * bits) mask[place / bits] |= 1ul << (place % bits);
  }
  const bool is_preferred = choice.how == placement::policy::preferred;
  // The kernel reads one bit less than this argument says.
  if (::syscall(SYS_mbind, pages, bytes, is_preferred ? mode_preferred : mode_interleave, mask.data(),
                mask.size() * bits + 1, 0u) != 0)
    return 0;
  return is_preferred ? choice.nodes.front() + 1 : -1;
}

std::string describe(int advised) {
  if (advised == 0) return "";
  return advised < 0 ? ", interleaved over the NUMA nodes"
                     : ", placed on NUMA node " + std::to_string(advised - 1);
}

}  // namespace ferry::host::numa
