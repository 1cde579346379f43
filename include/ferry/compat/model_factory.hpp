// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/load_npy.hpp>
#include <ferry/io/save_npy.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// SpeedTorch's classes (https://github.com/Santosh-Gupta/SpeedTorch) on ferry's verbs.
namespace ferry::speedtorch {

/// SpeedTorch's DataGadget: the rows of a .npy file in a memory space of choice, which batches are taken from
/// and written to. DataGadgetMM is ferry::io::map_npy, which leaves the file on the disk.
template <class T = float, MemorySpace Space = pinned_space>
class data_gadget {
 public:
  /// gadgetInit: loads the file. Throws as io::load_npy.
  explicit data_gadget(const std::string& file) : table_(io::load_npy<T, Space>(file, file)) {}

  /// getData: the rows as a new tensor in device memory, see ferry::gather. Bad indices are thrown by get().
  template <class Exec, class Indices, class... Policies>
  [[nodiscard]] auto get_data(const Exec& exec, const Indices& indices, Policies... policies) const {
    return gather<device_space>(exec, table_, indices, policies...);
  }
  /// insertData: replaces rows; of equal indices the last one wins. See ferry::scatter.
  template <class Exec, class Rows, class Indices, class... Policies>
  ticket insert_data(const Exec& exec, const Rows& rows, const Indices& indices, Policies... policies) {
    return scatter(exec, table_, indices, rows, policies...);
  }

  /// Saves the table as a .npy file.
  void save(const std::string& file) const { io::save_npy(file, table_); }
  /// The whole table.
  /// @{
  [[nodiscard]] tensor<T, Space>& table() { return table_; }
  [[nodiscard]] const tensor<T, Space>& table() const { return table_; }
  /// @}

 private:
  tensor<T, Space> table_;
};

/// SpeedTorch's ModelFactory, the model switcher: a large table, of which the rows of one batch visit a small
/// weight in device memory.
///
///   ferry::speedtorch::model_factory<float, ferry::pinned_space> words("words", classes, width);
///   words.uniform_distribution_init(exec, -0.5, 0.5, seed);
///   for each batch:
///     words.before_forward_pass(exec, positives, negatives).wait();
///     ... kernels read words.weight(); words.positive_inputs().view()(k) is the row of positives[k] ...
///     words.after_optimizer_step(exec).wait();
///
/// The weight has one row for each *different* index of the batch, so an update of a row is never lost:
/// SpeedTorch keeps a row for each position, and the last one written wins. positive_inputs() and
/// negative_inputs() replace its variableTransformer.
///
///   T       element type of the table
///   Space   memory space of the table: device_space, pinned_space, mapped_space or pageable_space
///   Weight  element type of the weight; default float for half types, else T
///
/// Not thread-safe: one batch at a time, all on one execution space instance.
template <class T = float, MemorySpace Space = pinned_space, class Weight = accumulation_t<T>>
class model_factory {
 public:
  using value_type = T;        ///< elements of the table
  using memory_space = Space;  ///< where the table lies
  using weight_type = Weight;  ///< elements of the weight

  /// An uninitialised table of total_classes x embed_dimension. Throws bad_alloc or budget_exceeded.
  model_factory(std::string label, std::size_t total_classes, std::size_t embed_dimension)
      : table_(std::move(label), total_classes, embed_dimension) {}

  /// zerosInit, uniformDistributionInit, normalDistributionInit and customInit; each blocks. `function` is
  /// called as function(row, column), see init::custom.
  /// @{
  template <class Exec>
  void zeros_init(const Exec& exec) {
    init::zeros(exec, table_);
  }
  template <class Exec>
  void uniform_distribution_init(const Exec& exec, double low, double high, std::uint64_t seed) {
    init::uniform(exec, table_, low, high, seed);
  }
  template <class Exec>
  void normal_distribution_init(const Exec& exec, double mean, double deviation, std::uint64_t seed) {
    init::normal(exec, table_, mean, deviation, seed);
  }
  template <class Exec, class Function>
  void custom_init(const Exec& exec, const Function& function) {
    init::custom(exec, table_, function);
  }
  /// @}

  /// Sends the rows of a batch to weight(). `positives` and `negatives` are rank-1 arrays of int32, uint32,
  /// int64 or uint64. Blocks until the number of different rows is known. Throws out_of_range for a bad
  /// index (positions count on from positives to negatives), and then keeps the batch before.
  /// @{
  template <class Exec, class Positives>
  ticket before_forward_pass(const Exec& exec, const Positives& positives) {
    return send(exec, make_plan(exec, positives, table_.rows()),
                static_cast<std::int64_t>(make_ref(positives).rows()));
  }
  template <class Exec, class Positives, class Negatives>
  ticket before_forward_pass(const Exec& exec, const Positives& positives, const Negatives& negatives) {
    const auto first = static_cast<std::size_t>(make_ref(positives).rows());
    const auto count = first + static_cast<std::size_t>(make_ref(negatives).rows());
    if (indices_.rank() == 0 || indices_.rows() < count)
      indices_ = index_buffer(table_.label() + "::indices", count + count / 4);
    copy(exec, positives, indices_.first(first)).drop();
    copy(exec, negatives, indices_.rows_between(first, count)).drop();
    return send(exec, make_plan(exec, indices_.first(count), table_.rows()),
                static_cast<std::int64_t>(first));
  }
  /// @}

  /// Writes weight() back to the rows of the batch that before_forward_pass() sent.
  template <class Exec>
  ticket after_optimizer_step(const Exec& exec) {
    require_batch("after_optimizer_step");
    return scatter(exec, table_, plan_.unique_rows(), weight(), duplicates::assume_unique{},
                   bounds::unchecked{});
  }

  /// The rows of the batch: plan().unique_count() x width, one for each different index, in ascending order.
  [[nodiscard]] auto weight() { return weight_.first(distinct_); }
  /// The row of weight() that each positive or negative index means, as rank-1 arrays of std::int64_t.
  /// @{
  [[nodiscard]] auto positive_inputs() const { return plan_.inverse().first(positives_); }
  [[nodiscard]] auto negative_inputs() const {
    return plan_.inverse().rows_between(positives_, plan_.positions());
  }
  /// @}

  /// The plan of the batch: positives, then negatives.
  [[nodiscard]] const row_plan& plan() const { return plan_; }
  /// The whole table: SpeedTorch's getCupyVar.
  /// @{
  [[nodiscard]] tensor<T, Space>& table() { return table_; }
  [[nodiscard]] const tensor<T, Space>& table() const { return table_; }
  /// @}

  /// saveCupy and loadCupy: the table as a .npy file. load() fills the table where it lies, after the verbs
  /// in flight on it. It throws invalid_argument for other extents and io_error for a file that can't be
  /// read; the table is then as before, unless the disk failed in the middle.
  /// @{
  void save(const std::string& file) const { io::save_npy(file, table_); }
  void load(const std::string& file) { io::load_npy(file, table_); }
  /// @}

 private:
  using index_buffer = tensor<std::int64_t, device_space>;
  // A name that depends on T: only with a backend is it known where the arrays of a plan lie.
  using plan_of_batch = std::conditional_t<std::is_void_v<T>, void, row_plan>;

  template <class Exec>
  ticket send(const Exec& exec, row_plan plan, std::int64_t positives) {
    const auto distinct = static_cast<std::size_t>(plan.unique_count());
    // A gather by the plan reports the bad index; one by its rows would not.
    if (plan.storage() != nullptr && plan.storage()->read_report().out_of_range != 0)
      (void)gather<device_space>(exec, table_, plan).get();
    if (weight_.rows() < distinct || weight_.width() != table_.width())
      weight_ =
          tensor<Weight, device_space>(table_.label() + "::weight", distinct + distinct / 4, table_.width());
    plan_ = std::move(plan);
    positives_ = positives;
    distinct_ = distinct;
    return gather(exec, table_, plan_.unique_rows(), weight(), bounds::unchecked{});
  }

  void require_batch(const char* function) const {
    if (plan_.storage() == nullptr)
      throw invalid_argument(detail::joined("ferry::speedtorch::model_factory::", function, ": '",
                                            table_.label(),
                                            "' has no batch yet; call before_forward_pass first"));
  }

  tensor<T, Space> table_;
  tensor<Weight, device_space> weight_;  ///< as many rows as any batch had, and more
  index_buffer indices_;
  plan_of_batch plan_;
  std::int64_t positives_ = 0;
  std::size_t distinct_ = 0;
};

}  // namespace ferry::speedtorch
