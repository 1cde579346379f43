// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// Kernels of the host are not ordered after a device's by themselves: a verb on a host execution space
/// waits for the device's writes to its operands. A device is played by an event that ends its work when it
/// is waited for.
namespace ferry_test::device_writes_test {

class late_write final : public ferry::detail::event {
 public:
  explicit late_write(std::function<void()> work) : work_(std::move(work)) {}
  void wait() override {
    if (work_) work_();
    work_ = nullptr;
  }
  [[nodiscard]] bool ready() override { return work_ == nullptr; }

 private:
  std::function<void()> work_;
};

using host = Kokkos::DefaultHostExecutionSpace;
using ferry::mapped_space;

/// Overwrites all of the tensor, late.
template <class T>
void write_late(ferry::tensor<T, mapped_space>& array, T value) {
  const auto write = std::make_shared<late_write>([data = array.data(), size = array.size(), value] {
    for (std::size_t i = 0; i < size; ++i) data[i] = value;
  });
  array.accesses()->add_write(write, 7);
}

struct operands {
  ferry::tensor<float, mapped_space> table = make<mapped_space>("table", 4, 2, std::vector<float>(8, 1.0f));
  ferry::tensor<float, mapped_space> batch = make<mapped_space>("batch", 2, 2, std::vector<float>(4, 2.0f));
  ferry::tensor<std::int64_t, mapped_space> indices =
      make<mapped_space>("indices", std::vector<std::int64_t>{0, 1});
};

template <class Path>
void check_verbs(Path path) {
  const host exec;
  const ferry::duplicates::assume_unique unique;
  {
    operands arrays;
    write_late(arrays.table, 5.0f);
    ferry::gather(exec, arrays.table, arrays.indices, arrays.batch, path).wait();
    CHECK(take(arrays.batch) == std::vector<float>(4, 5.0f));
  }
  {
    operands arrays;  // the earlier write must not come after the gather's
    write_late(arrays.batch, 5.0f);
    ferry::gather(exec, arrays.table, arrays.indices, arrays.batch, path).wait();
    arrays.batch.accesses()->wait_for_all();
    CHECK(take(arrays.batch) == std::vector<float>(4, 1.0f));
  }
  {
    operands arrays;
    write_late(arrays.batch, 5.0f);
    ferry::scatter(exec, arrays.table, arrays.indices, arrays.batch, path).wait();
    CHECK(take(arrays.table) == std::vector<float>{5, 5, 5, 5, 1, 1, 1, 1});
  }
  {
    operands arrays;
    write_late(arrays.table, 5.0f);
    ferry::scatter_add(exec, arrays.table, arrays.indices, arrays.batch, path, unique).wait();
    CHECK(take(arrays.table) == std::vector<float>{7, 7, 7, 7, 5, 5, 5, 5});
  }
  {
    operands arrays;
    const ferry::optim::adagrad rule{.lr = 1.0, .eps = 0.0};
    auto state = ferry::optim::make_state(rule, arrays.table);
    write_late(state.field(0), 12.0f);
    write_late(arrays.table, 5.0f);
    ferry::step(exec, rule, arrays.table, state, arrays.indices, arrays.batch, path).wait();
    CHECK(take(arrays.table) == std::vector<float>{4.5f, 4.5f, 4.5f, 4.5f, 5, 5, 5, 5});
    CHECK(take(state.field(0)) == std::vector<float>{16, 16, 16, 16, 12, 12, 12, 12});
  }
  {
    operands arrays;
    write_late(arrays.batch, 5.0f);
    ferry::tensor<float, mapped_space> copy("copy", 2, 2);
    ferry::copy(exec, arrays.batch, copy, path).wait();
    CHECK(take(copy) == std::vector<float>(4, 5.0f));
  }
  {
    operands arrays;
    write_late(arrays.indices, std::int64_t{3});
    put(arrays.table, std::vector<float>{0, 0, 0, 0, 0, 0, 9, 9});
    ferry::gather(exec, arrays.table, arrays.indices, arrays.batch, path).wait();
    CHECK(take(arrays.batch) == std::vector<float>(4, 9.0f));
  }
}

TEST_CASE("a host's kernels wait for the device's writes to their operands", "[device_writes]") {
  check_verbs(ferry::path::direct{});
}

TEST_CASE("the host's share of the staged path waits for the device's writes", "[device_writes]") {
  check_verbs(ferry::path::staged{});
}

TEST_CASE("plans and initial values wait for the device's writes", "[device_writes]") {
  const host exec;
  operands arrays;
  write_late(arrays.indices, std::int64_t{3});
  const auto plan = ferry::make_plan(exec, arrays.indices, 4);
  CHECK(plan.unique_count() == 1);
  write_late(arrays.table, 5.0f);
  ferry::init::zeros(exec, arrays.table);
  arrays.table.accesses()->wait_for_all();
  CHECK(take(arrays.table) == std::vector<float>(8, 0.0f));
}

}  // namespace ferry_test::device_writes_test
