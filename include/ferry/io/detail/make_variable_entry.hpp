// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/variable_entry.hpp>
#include <ferry/io/detail/variable_kind.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry::detail {

/// A number of a type that dtype_name knows.
std::unique_ptr<checkpoint_entry> make_number_entry(const std::string& name, std::string_view dtype,
                                                    std::size_t bytes, const void* number, bool is_const);

/// The entry of a variable. `layout`: of a struct.
template <class Variable>
std::unique_ptr<checkpoint_entry> make_variable_entry(const std::string& name, Variable& variable,
                                                      [[maybe_unused]] const std::string& layout) {
  constexpr variable_kind kind = kind_of_variable<Variable>();
  constexpr bool is_const = std::is_const_v<Variable>;
  if constexpr (kind == variable_kind::number) {
    using number = number_of_variable<Variable>;
    return make_number_entry(name, dtype_name<number>(), sizeof(number), &variable, is_const);
  } else if constexpr (kind == variable_kind::text) {
    return std::make_unique<text_entry>(name, variable, is_const);
  } else if constexpr (kind == variable_kind::texts) {
    return std::make_unique<texts_entry>(name, variable, is_const);
  } else if constexpr (kind == variable_kind::random) {
    return std::make_unique<random_entry_of<Variable>>(name, variable);
  } else {
    using plain = std::remove_const_t<Variable>;
    require_whole_element<plain>();
    return std::make_unique<struct_entry>(name, std::addressof(variable), sizeof(plain), &read_struct<plain>,
                                          layout, is_const);
  }
}

}  // namespace ferry::detail
