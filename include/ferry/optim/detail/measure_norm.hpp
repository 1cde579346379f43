// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/square_sums.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::optim {

template <class Grads, class Plan>
struct sparse_grads;
class grad_total;

}  // namespace ferry::optim

namespace ferry::kernels {

/// values *= *factor, in double, rounded once. One thread per element.
template <class T>
struct scale_values {
  T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  const double* factor;

  static std::int64_t bytes_each() { return 2 * sizeof(T); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (*factor == 1.0) return;
    const std::int64_t row = width.quotient(i);
    T& value = values[row * stride + i - row * width.divisor()];
    value = convert<T>(convert<double>(value) * *factor);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Checks that a verb of the execution space may use the plan of an argument of grad_norm.
template <class Exec>
void require_norm_plan(const char* verb, const row_plan& plan, const untyped_array& array) {
  if (plan.storage() == nullptr || plan.storage()->backend != execution_backend<Exec>::name)
    throw invalid_argument(joined("ferry::", verb, ": the plan of ", array.note().describe(),
                                  " is empty, or the other backend made it"));
}

/// An argument of grad_norm: an array, by default. `gradients` are the numbers that clip_grad_norm scales,
/// `count` the squares to add, which `terms` computes.
template <class Grads>
struct norm_part {
  static auto& gradients(auto& grads) { return grads; }
  static void check(auto&, const Grads&, const auto&) {}
  static std::int64_t count(const Grads&, const auto& array) { return array.size(); }
  static auto terms(auto&, const Grads&, const auto& array) {
    using value = std::remove_const_t<typename std::remove_cvref_t<decltype(array)>::value_type>;
    return kernels::dense_squares<value>{array.data, array.row_stride(), fast_divisor(array.width()),
                                         array.size()};
  }
};

/// The combined gradients of a plan's rows.
template <class Values>
struct norm_part<optim::sparse_grads<Values, row_plan>> {
  using grads_type = optim::sparse_grads<Values, row_plan>;

  static auto& gradients(auto& grads) { return grads.grads; }
  template <class Exec>
  static void check(launch_context<Exec>& call, const grads_type& grads, const auto& array) {
    require_norm_plan<Exec>(call.verb(), grads.plan, array);
    if (grads.plan.positions() != array.rows())
      throw invalid_argument(joined("ferry::", call.verb(), ": the plan has ", grads.plan.positions(),
                                    " positions for the rows of ", array.describe()));
  }
  static std::int64_t count(const grads_type&, const auto& array) { return array.size(); }
  static auto terms(auto& call, const grads_type& grads, const auto& array) {
    using value = std::remove_const_t<typename std::remove_cvref_t<decltype(array)>::value_type>;
    call.use(grads.plan.storage());
    const plan_storage& plan = *grads.plan.storage();
    return kernels::combined_squares<value>{array.data,       array.row_stride(), fast_divisor(array.width()),
                                            array.size(),     plan.order,         plan.segment_begin,
                                            plan.unique_count};
  }
};
/// True if the ranks of a group measure the argument together.
template <class Grads>
inline constexpr bool is_over_ranks = false;

template <class Grads>
using norm_part_of = norm_part<std::remove_cvref_t<Grads>>;

/// The gradients of an argument.
template <class Grads>
auto& gradients_in(Grads& grads) {
  return norm_part_of<Grads>::gradients(grads);
}

/// The work of grad_norm and clip_grad_norm in one launch_context.
template <class Exec>
class norm_job {
 public:
  explicit norm_job(launch_context<Exec>& call) : call_(call) {
    call.refuse_capture("but the norm is for the host; end the capture first");
  }

  /// Throws before anything is enqueued.
  template <class Grads>
  void check(const Grads& grads) {
    using arrays = std::remove_cvref_t<decltype(gradients_in(grads))>;
    require_rows<arrays>();
    require_reach<Exec, arrays>();
    const auto array = make_ref(gradients_in(grads));
    static_assert(NumberElement<std::remove_const_t<typename decltype(array)::value_type>>,
                  "ferry: the norm of gradients needs elements that are numbers.");
    require_dense_rows(call_.verb(), array);
    require_direct_reach(call_.verb(), call_.exec(), array);
    norm_part_of<Grads>::check(call_, grads, array);
    const std::int64_t count = norm_part_of<Grads>::count(grads, array);
    most_ = std::max(most_, count);
    if (count != 0) totals_.count += kernels::sum_lanes;
  }

  /// Takes the memory. The sum begins with `first`.
  void begin(const kernels::square_ranges& first = {}) {
    result_ = engine::get(call_.exec())->pinned_scratch(2 * sizeof(double));
    call_.hold(result_);
    first_ = first;
    norm_ = call_.template scratch<double>(2);
    totals_.values = next_total_ = call_.template scratch<kernels::square_ranges>(totals_.count);
    sums_[0] = call_.template scratch<kernels::square_ranges>(lanes_of(most_));
    sums_[1] = call_.template scratch<kernels::square_ranges>(lanes_of(lanes_of(most_)));
  }

  /// Adds the squares of one argument to the total. Orders the verb after the writes in flight; if
  /// `Writes`, after the reads, too.
  template <bool Writes, class Grads>
  void add(Grads& grads) {
    auto array = make_ref(gradients_in(grads));
    if constexpr (Writes) {
      require_mutable<std::remove_reference_t<decltype(gradients_in(grads))>>();
      call_.writes_to(array);
    } else {
      call_.reads_from(array);
    }
    sum(norm_part_of<Grads>::terms(call_, grads, array));
  }

  /// norm_[0] becomes the norm, norm_[1] the factor; no limit if max_norm is negative. Brings the norm to the
  /// host. Takes the last memory of the job, so it comes before scale().
  void limit(double max_norm) {
    scale_label_ = &call_.label("scale");
    launch(call_.exec(), call_.label("root"), 1, kernels::finish_norm{first_, totals_, norm_, max_norm});
    transfer(call_.exec(), "ferry::grad_norm::result", result_.get(), pinned_space::name, norm_,
             device_space::name, 2 * static_cast<std::int64_t>(sizeof(double)));
  }

  template <class Grads>
  void scale(Grads& grads) {
    auto array = make_ref(gradients_in(grads));
    using value = typename decltype(array)::value_type;
    static_assert(!std::is_integral_v<value>,
                  "ferry: clip_grad_norm scales gradients of float, double, half_t or bhalf_t.");
    launch(
        call_.exec(), *scale_label_, array.size(),
        kernels::scale_values<value>{array.data, array.row_stride(), fast_divisor(array.width()), norm_ + 1});
  }

  template <class Total = optim::grad_total>
  [[nodiscard]] Total finish() {
    return {call_.finish(), std::move(result_)};
  }

 private:
  static std::int64_t lanes_of(std::int64_t count) {
    return (count + kernels::sum_block - 1) / kernels::sum_block * kernels::sum_lanes;
  }

  template <class Terms>
  void sum(const Terms& terms) {
    if (terms.count == 0) return;
    const std::string& label = call_.label("squares");
    int level = 0;
    const auto add = [&]<class Lower>(const Lower& lower) {
      const std::int64_t count = lanes_of(lower.count);
      auto& target = count == kernels::sum_lanes ? next_total_ : sums_[level];
      launch(call_.exec(), label, count, kernels::sum_lane<Lower>{lower, target});
      level = 1 - level;
      return kernels::lower_sums{target, count};
    };
    auto sums = add(terms);
    while (sums.count > kernels::sum_lanes) sums = add(sums);
    next_total_ += kernels::sum_lanes;
  }

  launch_context<Exec>& call_;
  std::shared_ptr<void> result_;
  kernels::square_ranges first_;
  kernels::lower_sums totals_{};  // a block of each argument
  kernels::square_ranges* next_total_ = nullptr;
  double* norm_ = nullptr;
  kernels::square_ranges* sums_[2] = {};
  const std::string* scale_label_ = nullptr;
  std::int64_t most_ = 0;
};

}  // namespace ferry::detail
