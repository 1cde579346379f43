// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/array_arguments.hpp>

#include <ferry/error.hpp>

#include <string>

namespace ferry::detail {

void require_extents(const char* verb, const array_note& array) {
  if (array.rank == 0)
    throw invalid_argument(std::string("ferry::io::") + verb + ": " +
                           (array.label.empty() ? "an array" : "'" + array.label + "'") +
                           " is an empty handle without extents: it was moved from, or never given any");
}

void refuse_captured(const char* verb) {
  throw invalid_argument(std::string("ferry::io::") + verb +
                         ": the instance is being captured into a graph, whose work runs only when the "
                         "graph is launched; end the capture first");
}

std::string file_verb(const char* verb) { return std::string("ferry::io::") + verb; }

}  // namespace ferry::detail
