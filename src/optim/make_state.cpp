// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/make_state.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/detail/state_arrays.hpp>
#include <ferry/optim/detail/step_counters.hpp>
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
void fill_new(const ferry::detail::array_ref<T, Space>& array, [[maybe_unused]] device home, T value) {
  using exec_space = Kokkos::DefaultExecutionSpace;
  if constexpr (std::is_same_v<Space, device_space>) {
    const auto stream = ferry::detail::engine::get_on<exec_space>(home.id)->side_stream_of(nullptr);
    ferry::detail::fill(*static_cast<const exec_space*>(stream.get()), array, value);
  } else {
    ferry::detail::fill(Kokkos::DefaultHostExecutionSpace{}, array, value);
  }
}

template <class T, MemorySpace Space>
tensor<T, Space> filled(const std::string& label, device home, std::span<const std::size_t> extents,
                        T value) {
  tensor<T, Space> array(label, home, extents);
  fill_new(make_ref(array), array.device(), value);
  return array;
}

template <class StateType>
StateType initial_value(std::string_view rule, const field_facts& field) {
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

template float initial_value<float>(std::string_view, const field_facts&);
template double initial_value<double>(std::string_view, const field_facts&);
template half_t initial_value<half_t>(std::string_view, const field_facts&);
template bhalf_t initial_value<bhalf_t>(std::string_view, const field_facts&);

template <class T, MemorySpace Space>
state_arrays<T, Space>::state_arrays(int row_fields) : row_fields_(static_cast<std::size_t>(row_fields)) {}
template <class T, MemorySpace Space>
state_arrays<T, Space>::state_arrays(state_arrays&&) noexcept = default;
template <class T, MemorySpace Space>
state_arrays<T, Space>& state_arrays<T, Space>::operator=(state_arrays&& source) noexcept {
  state_arrays temporary(std::move(source));  // a vector that is moved to itself loses its elements
  fields_.swap(temporary.fields_);
  row_fields_.swap(temporary.row_fields_);
  return *this;
}
template <class T, MemorySpace Space>
state_arrays<T, Space>::~state_arrays() = default;

template <class T, MemorySpace Space>
tensor<T, Space>& state_arrays<T, Space>::field(int i) {
  return fields_.at(static_cast<std::size_t>(i)).values;
}
template <class T, MemorySpace Space>
const tensor<T, Space>& state_arrays<T, Space>::field(int i) const {
  return fields_.at(static_cast<std::size_t>(i)).values;
}
template <class T, MemorySpace Space>
std::string_view state_arrays<T, Space>::field_name(int i) const {
  return fields_.at(static_cast<std::size_t>(i)).name;
}
template <class T, MemorySpace Space>
tensor<T, Space>& state_arrays<T, Space>::row_field_at(int i) {
  if (row_fields_.empty()) refuse_moved_contents("state");
  return row_fields_.at(static_cast<std::size_t>(i)).values;
}
template <class T, MemorySpace Space>
const tensor<T, Space>& state_arrays<T, Space>::row_field_at(int i) const {
  if (row_fields_.empty()) refuse_moved_contents("state");
  return row_fields_.at(static_cast<std::size_t>(i)).values;
}

template <class T, MemorySpace Space>
tensor<T, Space>& state_arrays<T, Space>::named(std::string_view rule, std::string_view name) {
  for (auto* const list : {&fields_, &row_fields_})
    for (named_tensor& member : *list)
      if (member.name == name) return member.values;
  refuse_field_name("state", rule, name);
}

template <class T, MemorySpace Space>
void state_arrays<T, Space>::make_fields(std::string_view rule, std::span<const field_facts> fields,
                                         const ferry::detail::array_label& table, device home,
                                         std::int64_t rows, std::int64_t width) {
  std::size_t row_field = 0;
  for (const field_facts& fact : fields) {
    const T value = initial_value<T>(rule, fact);
    if (!fact.active) continue;
    const std::array<std::size_t, 2> extents{static_cast<std::size_t>(rows),
                                             static_cast<std::size_t>(fact.per_row ? 1 : width)};
    named_tensor member{fact.name, filled<T, Space>(table + "::" + fact.name, home, extents, value)};
    if (fact.per_row)
      row_fields_.at(row_field++) = std::move(member);
    else
      fields_.push_back(std::move(member));
  }
}

#define FERRY_STATE_IN(SPACE)                 \
  template class state_arrays<float, SPACE>;  \
  template class state_arrays<double, SPACE>; \
  template class state_arrays<half_t, SPACE>; \
  template class state_arrays<bhalf_t, SPACE>;
FERRY_STATE_IN(device_space)
FERRY_STATE_IN(pinned_space)
FERRY_STATE_IN(mapped_space)
FERRY_STATE_IN(pageable_space)
#undef FERRY_STATE_IN

}  // namespace ferry::optim::detail
