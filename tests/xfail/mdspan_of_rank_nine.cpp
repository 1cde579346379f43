// SPDX-License-Identifier: Apache-2.0
// An array_ref has room for eight extents.
// expected-error: an array has at most 8 extents
#include <ferry/ferry.hpp>
#include <ferry/interop/mdspan.hpp>

#include <cstddef>

void refused() {
  using namespace ferry::detail::mdspans;
#ifdef FERRY_XFAIL_FIXED
  constexpr std::size_t rank = 8;
#else
  constexpr std::size_t rank = 9;
#endif
  using span = mdspan<float, dextents<std::size_t, rank>>;
  static_cast<void>(ferry::array_traits<span>::ref(span()));
}
