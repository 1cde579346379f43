// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"

#include <ferry/distributed/communicator/communicator.hpp>

#include <memory>

namespace skipgram {

/// A table whose rows are spread over the ranks of `comm`. Every rank makes its own object, and all make the
/// same calls. Memory space, path and element type are those that options.hpp has by default. Throws
/// std::invalid_argument for others.
std::unique_ptr<embedding> make_sharded_embedding(const execution& exec, const ferry::communicator& comm,
                                                  const embedding_spec& spec);

}  // namespace skipgram
