// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/file_stream.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

/// Placement of pages on machines with several NUMA nodes. It is advice, given before the first touch. Where
/// the system does not follow it, the default holds: the node of the thread that touches a page first.
namespace ferry::host::numa {

/// A placement of pages: the default, one preferred node, or several nodes interleaved.
struct placement {
  enum class policy { unset, preferred, interleaved };
  policy how = policy::unset;
  ferry::detail::dynamic_array<int> nodes;
};

/// The numbers of a list in the form of Linux ("0-2,7\n"), ascending. Empty for text that is not a list.
FERRY_LAZY ferry::detail::dynamic_array<int> parse_node_list(std::string_view text);

/// The node of a device in the form of Linux ("1\n"); -1 where it is unknown, as in Linux.
FERRY_LAZY int parse_node(std::string_view text);

/// The first line of a small file; empty where it can't be read.
FERRY_LAZY std::string first_line(const std::string& path);

/// The nodes of the machine that have memory; read once.
FERRY_LAZY const ferry::detail::dynamic_array<int>& nodes_with_memory();

/// For memory that one device reads: the node of the device, where there are several nodes.
FERRY_LAZY placement near_device(int device_node, const ferry::detail::dynamic_array<int>& nodes);

/// For tables whose random rows the threads of all nodes read: interleaved over all nodes, so that the links
/// between the nodes share the load. With the default, a table that one thread reads from a file would lie on
/// that thread's node.
FERRY_LAZY placement spread(const ferry::detail::dynamic_array<int>& nodes);

/// Applies a placement to whole pages that were not touched; returns memory_block::placement. No system call
/// for the default.
FERRY_LAZY int advise(void* pages, std::size_t bytes, const placement& wanted) noexcept;

/// The result of advise() as text to append.
FERRY_LAZY std::string describe(int advised);

#ifdef FERRY_RUNTIME_BODIES

/// Adds a number to an ascending list.
FERRY_LAZY void add_node(ferry::detail::dynamic_array<int>& to, int node) {
  std::size_t place = to.size();
  while (place != 0 && to[place - 1] > node) --place;
  if (place != 0 && to[place - 1] == node) return;
  to.push_back(node);
  for (std::size_t at = to.size() - 1; at != place; --at) std::swap(to[at], to[at - 1]);
}

FERRY_LAZY ferry::detail::dynamic_array<int> parse_node_list(std::string_view text) {
  constexpr int most = 1 << 16;
  ferry::detail::dynamic_array<int> made;
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

FERRY_LAZY int parse_node(std::string_view text) {
  const ferry::detail::dynamic_array<int> one = parse_node_list(text);
  return one.size() == 1 ? one.front() : -1;
}

FERRY_LAZY std::string first_line(const std::string& path) {
  std::string line;
  if (const ferry::detail::file_stream file(std::fopen(path.c_str(), "re")); file != nullptr) {
    char text[1024];
    if (std::fgets(text, sizeof text, file.get()) != nullptr) line = text;
  }
  return line;
}

FERRY_LAZY const ferry::detail::dynamic_array<int>& nodes_with_memory() {
  static const ferry::detail::dynamic_array<int> nodes =
      parse_node_list(first_line("/sys/devices/system/node/has_memory"));
  return nodes;
}

FERRY_LAZY placement near_device(int device_node, const ferry::detail::dynamic_array<int>& nodes) {
  if (nodes.size() < 2 || std::find(nodes.begin(), nodes.end(), device_node) == nodes.end()) return {};
  return {placement::policy::preferred, {device_node}};
}

FERRY_LAZY placement spread(const ferry::detail::dynamic_array<int>& nodes) {
  if (nodes.size() < 2) return {};
  return {placement::policy::interleaved, nodes};
}

FERRY_LAZY int advise(void* pages, std::size_t bytes, const placement& wanted) noexcept {
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

FERRY_LAZY std::string describe(int advised) {
  if (advised == 0) return "";
  return advised < 0 ? ", interleaved over the NUMA nodes"
                     : ", placed on NUMA node " + std::to_string(advised - 1);
}

#endif

}  // namespace ferry::host::numa
