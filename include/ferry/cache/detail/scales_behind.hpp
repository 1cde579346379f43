// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// True if T is a table whose codes and scales are arrays.
template <class T>
inline constexpr bool is_coded = is_quantized<std::remove_cv_t<T>> && !is_codes<std::remove_cv_t<T>>;

/// The scales and the factor of a quantized table behind a cache, in the place of a state. They stay valid
/// when the table is moved.
template <class Q, class ScaleSpace>
class scales_behind {
 public:
  using scales_type = decltype(scales_ref(std::declval<quantized_tensor<Q, ScaleSpace, ScaleSpace>&>()));
  /// As verbs use them.
  struct content {
    scales_type scales;
    float tensor_scale;
  };

  template <class Table>
  explicit scales_behind(Table& table) : scales_(scales_ref(table)) {
    if constexpr (Q::has_tensor_scale) factor_ = factor_of(table);
    if constexpr (has_scales<Q>) {
      accesses_ = scales_.accesses;
      scales_.accesses.reset();  // so that their end shows
    }
  }

  /// Throws invalid_argument if the scales were destroyed. The codes are there: `accesses` are theirs.
  [[nodiscard]] content with(const std::shared_ptr<access_tracker>&) const {
    content current{scales_, factor_ == nullptr ? 1.0f : *factor_};
    if constexpr (has_scales<Q>) {
      current.scales.accesses = accesses_.lock();
      if (current.scales.accesses == nullptr)
        throw invalid_argument(joined("ferry: '", scales_.label, "' of a cached_table was destroyed"));
    }
    return current;
  }

 private:
  scales_type scales_;
  std::weak_ptr<access_tracker> accesses_;
  const float* factor_ = nullptr;
};

}  // namespace ferry::detail
