// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"

#include <memory>

namespace skipgram {

/// Chooses space, path and optimizer for tables of T. Compiled in embedding_<dtype>.cpp, each with all its
/// combinations, so that the element types compile in parallel and other files do not compile them again.
template <class T>
std::unique_ptr<embedding> make_typed_embedding(const execution& exec, const embedding_spec& spec);

}  // namespace skipgram
