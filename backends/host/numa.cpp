// SPDX-License-Identifier: Apache-2.0
#include "numa.hpp"

#include <charconv>
#include <fstream>
#include <set>
#include <system_error>
#include <vector>

namespace ferry::host::numa {

std::vector<int> parse_node_list(std::string_view text) {
  constexpr int max_nodes = 1 << 16;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const char* begin = text.data();
  const char* const end = begin + text.size();
  const auto take_number = [&](int& result) {
    const auto [rest, error] = std::from_chars(begin, end, result);
    begin = rest;
    return error == std::errc() && result >= 0 && result < max_nodes;
  };
  std::set<int> nodes;
  while (begin != end) {
    int first = 0;
    if (!take_number(first)) return {};
    int last = first;
    if (begin != end && *begin == '-' && (++begin, !take_number(last) || last < first)) return {};
    for (int node = first; node <= last; ++node) nodes.insert(node);
    if (begin != end && (*begin != ',' || ++begin == end)) return {};
  }
  return {nodes.begin(), nodes.end()};
}

int parse_node(std::string_view text) {
  const std::vector<int> nodes = parse_node_list(text);
  return nodes.size() == 1 ? nodes.front() : -1;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
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
    const auto bit = static_cast<std::size_t>(node);
    if (bit < mask.size() * bits) mask[bit / bits] |= 1ul << (bit % bits);
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
