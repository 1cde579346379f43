// SPDX-License-Identifier: Apache-2.0
#include "numa.hpp"

#include <vector>

namespace ferry::host::numa {

/// Adds a number to an ascending list.
void add_node(std::vector<int>& to, int node) {
  std::size_t place = to.size();
  while (place != 0 && to[place - 1] > node) --place;
  if (place != 0 && to[place - 1] == node) return;
  to.push_back(node);
  for (std::size_t at = to.size() - 1; at != place; --at) std::swap(to[at], to[at - 1]);
}

std::vector<int> parse_node_list(std::string_view text) {
  constexpr int most = 1 << 16;
  std::vector<int> made;
  std::size_t at = 0;
  const auto number = [&](int& into) {
    const std::size_t begin = at;
    for (into = 0; at < text.size() && text[at] >= '0' && text[at] <= '9' && into < most; ++at)
      into = 10 * into + (text[at] - '0');
    return at != begin && into < most;
  };
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (at < text.size()) {
    int first = 0, last = 0;
    if (!number(first)) return {};
    last = first;
    if (at < text.size() && text[at] == '-' && (++at, !number(last) || last < first)) return {};
    for (int node = first; node <= last; ++node) add_node(made, node);
    if (at < text.size() && (text[at] != ',' || ++at == text.size())) return {};
  }
  return made;
}

int parse_node(std::string_view text) {
  const std::vector<int> one = parse_node_list(text);
  return one.size() == 1 ? one.front() : -1;
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

int advise(void* pages, std::size_t bytes, const placement& wanted) noexcept {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  constexpr long mode_preferred = 1, mode_interleave = 3;  // linux/mempolicy.h
  if (wanted.how == placement::policy::unset) return 0;
  std::array<unsigned long, 16> mask{};
  for (const int node : wanted.nodes) {
    const auto place = static_cast<std::size_t>(node);
    if (place < mask.size() * bits) mask[place / bits] |= 1ul << (place % bits);
  }
  const bool one = wanted.how == placement::policy::preferred;
  // The kernel reads one bit less than this argument says.
  if (::syscall(SYS_mbind, pages, bytes, one ? mode_preferred : mode_interleave, mask.data(),
                mask.size() * bits + 1, 0u) != 0)
    return 0;
  return one ? wanted.nodes.front() + 1 : -1;
}

std::string describe(int advised) {
  if (advised == 0) return "";
  return advised < 0 ? ", interleaved over the NUMA nodes"
                     : ", placed on NUMA node " + std::to_string(advised - 1);
}

}  // namespace ferry::host::numa
