// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "policies.hpp"
#include "typed_embedding.hpp"

namespace skipgram {

std::unique_ptr<embedding> make_embedding(const execution& exec, const embedding_spec& spec) {
  require_supported(spec.space, spec.path);
  return dispatch<std::unique_ptr<embedding>>(
      [&](auto dtype) { return make_typed_embedding<typename decltype(dtype)::type>(exec, spec); },
      choice{dtypes, spec.dtype});
}

}  // namespace skipgram
