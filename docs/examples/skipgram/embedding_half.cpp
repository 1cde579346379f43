// SPDX-License-Identifier: Apache-2.0
#include "typed_embedding_impl.hpp"

namespace skipgram {
template std::unique_ptr<embedding> make_typed_embedding<ferry::half_t>(const execution&,
                                                                        const embedding_spec&);
}  // namespace skipgram
