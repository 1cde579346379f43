// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/make_state.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace ferry::optim::detail {

template <class T, MemorySpace Space>
void fill_new(const ferry::detail::array_ref<T, Space>& array, [[maybe_unused]] device placement, T value) {
  using exec_space = Kokkos::DefaultExecutionSpace;
  if constexpr (std::is_same_v<Space, device_space>) {
    const auto stream = ferry::detail::engine::get_on<exec_space>(placement.id)->side_stream_of(nullptr);
    ferry::detail::fill(*static_cast<const exec_space*>(stream.get()), array, value);
  } else {
    ferry::detail::fill(Kokkos::DefaultHostExecutionSpace{}, array, value);
  }
}

template <class T, MemorySpace Space>
tensor<T, Space> filled(const std::string& label, device placement, std::span<const std::size_t> extents,
                        T value) {
  tensor<T, Space> array(label, placement, extents);
  fill_new(make_ref(array), array.device(), value);
  return array;
}

template <class StateType>
StateType initial_value(std::string_view rule, const row_field& field) {
  const auto value = static_cast<StateType>(field.initial);
  const auto stored = convert<double>(value);
  const bool holds = ferry::detail::is_finite(stored) == ferry::detail::is_finite(field.initial) &&
                     (stored == 0.0) == (field.initial == 0.0);
  if (!holds)
    require_option(rule, ferry::detail::joined("the initial value of '", field.name, "'").c_str(),
                   field.initial, false, "a number that the elements of the state can hold");
  return value;
}

#define FERRY_FILL_OF(T, SPACE)                                                 \
  template void fill_new(const ferry::detail::array_ref<T, SPACE>&, device, T); \
  template tensor<T, SPACE> filled(const std::string&, device, std::span<const std::size_t>, T);
#define FERRY_FILLS_IN(SPACE)         \
  FERRY_FILL_OF(float, SPACE)         \
  FERRY_FILL_OF(double, SPACE)        \
  FERRY_FILL_OF(half_t, SPACE)        \
  FERRY_FILL_OF(bhalf_t, SPACE)       \
  FERRY_FILL_OF(std::uint32_t, SPACE) \
  FERRY_FILL_OF(std::byte, SPACE)
FERRY_FILLS_IN(device_space)
FERRY_FILLS_IN(pinned_space)
FERRY_FILLS_IN(mapped_space)
FERRY_FILLS_IN(pageable_space)
#undef FERRY_FILLS_IN
#undef FERRY_FILL_OF

template float initial_value<float>(std::string_view, const row_field&);
template double initial_value<double>(std::string_view, const row_field&);
template half_t initial_value<half_t>(std::string_view, const row_field&);
template bhalf_t initial_value<bhalf_t>(std::string_view, const row_field&);

}  // namespace ferry::optim::detail
