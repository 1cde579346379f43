// SPDX-License-Identifier: Apache-2.0
// The harness's own example: it needs nothing but the language.
// expected-error: an index of 16 bits cannot count the rows of a table
#include <cstdint>

#ifdef FERRY_XFAIL_FIXED
using index_type = std::int64_t;
#else
using index_type = std::int16_t;
#endif

static_assert(sizeof(index_type) >= 4, "an index of 16 bits cannot count the rows of a table");
