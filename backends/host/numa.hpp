// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Placement of pages on machines with several NUMA nodes. It is advice, given before the first touch. Where
/// the system does not follow it, the default holds: the node of the thread that touches a page first.
namespace ferry::host::numa {

/// A placement of pages: the default, one preferred node, or several nodes interleaved.
struct placement {
  enum class policy { unset, preferred, interleaved };
  policy how = policy::unset;
  std::vector<int> nodes;
};

/// The numbers of a list in the form of Linux ("0-2,7\n"), ascending. Empty for text that is not a list.
std::vector<int> parse_node_list(std::string_view text);

/// The node of a device in the form of Linux ("1\n"); -1 if it is unknown, as in Linux.
int parse_node(std::string_view text);

/// The first line of a small file; empty if it can't be read.
std::string first_line(const std::string& path);

/// The nodes of the machine that have memory; read once.
const std::vector<int>& nodes_with_memory();

/// For memory that one device reads: the node of the device, if there are several nodes.
placement near_device(int device_node, const std::vector<int>& nodes);

/// For tables whose random rows the threads of all nodes read: interleaved over all nodes, so that the links
/// between the nodes share the load. With the default, a table that one thread reads from a file would lie on
/// that thread's node.
placement spread(const std::vector<int>& nodes);

/// Applies a placement to whole pages that were not touched; returns memory_block::placement. No system call
/// for the default.
int advise(void* pages, std::size_t bytes, const placement& choice) noexcept;

/// The result of advise() as text to append.
std::string describe(int advised);

}  // namespace ferry::host::numa
