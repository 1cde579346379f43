// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/convert_dtype.hpp>
#include <ferry/io/detail/array_arguments.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/io/detail/stored_array.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <type_traits>

namespace ferry::detail {

/// Throws invalid_argument unless the array has the extents of the file's.
void require_same_extents(const file& source, const stored_array& stored, const array_note& array);

/// Fills an array that exists with an array of a file, which has the same extents. Elements, extents and the
/// instance are checked before anything is changed.
template <bool Turns, class... Convert, class Exec, class Array>
void fill_array(const Exec& exec, const file& source, const stored_array& stored, Array& array) {
  static_assert((std::is_same_v<Convert, io::convert_dtype> && ...) && sizeof...(Convert) <= 1,
                "ferry: after the array, a load takes nothing but ferry::io::convert_dtype{}.");
  require_file_elements<Array>();
  require_mutable<Array>();
  require_reach<Exec, Array>();
  constexpr bool converts = sizeof...(Convert) == 1;
  const auto target = make_ref(array);
  using element = std::remove_reference_t<decltype(*target.data)>;
  require_loadable<element, converts>(source, stored);
  require_same_extents(source, stored, target.note());
  fence_for_file(exec, source.verb().c_str());
  read_array<converts, Turns, may_have_strides<std::remove_cv_t<Array>>>(exec, source, stored, target);
}

}  // namespace ferry::detail
