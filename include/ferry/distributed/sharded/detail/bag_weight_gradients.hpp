// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The gradients of the weights of a batch without flaws, whose rows `access` finds. `grads` has a row for
/// each bag, as its positions get it. Blocks.
template <class Bounds, class Exec, class Access, class Named, class Bags, class Value, class Space,
          class Out, class OutSpace>
void write_weight_gradients(const Exec& exec, const Access& access, const Named& named, const Bags& bags,
                            const array_ref<Value, Space>& grads, const array_ref<Out, OutSpace>& out) {
  if (out.size() == 0) return;
  launch_context<Exec> call(exec, "step_bags");
  const std::string& label = call.label("weight_gradients");
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = indices_for_kernels(call, bags);
  const auto list = list_of_bags(bags, offsets, grads.rows(), out.rows(), false, {});
  launch_weight_gradients<Bounds>(call, access, named, nullptr, list, values_for_kernels(call, label, grads),
                                  out);
  execution_backend<Exec>::fence(exec, label);
  call.finish().drop();
}

}  // namespace ferry::detail
