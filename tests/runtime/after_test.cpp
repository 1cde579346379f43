// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// ferry::after between instances, tickets, futures and plans. What a device does late is played on hosts by an event
/// that ends its work when it is waited for.
namespace ferry_test::after_test {

/// target[i] = source[i] + 1, by way of as many dependent operations as it is told.
struct slow_successor {
  const float* source;
  float* target;
  int rounds;
  KOKKOS_FUNCTION void operator()(int i) const {
    float value = source[i] + 1.0f;
    for (int round = 0; round < rounds; ++round) value = value * 0.5f + (source[i] + 1.0f) * 0.5f;
    target[i] = value;
  }
};

class late_write final : public ferry::detail::event {
 public:
  explicit late_write(std::function<void()> work) : work_(std::move(work)) {}
  void wait() override {
    ++waits;
    if (work_) work_();
    work_ = nullptr;
  }
  [[nodiscard]] bool ready() override { return work_ == nullptr; }
  int waits = 0;

 private:
  std::function<void()> work_;
};

ferry::ticket ticket_of(std::shared_ptr<ferry::detail::event> end) {
  ferry::detail::ticket_state_handle state(new ferry::detail::ticket_state);
  state->completion = std::move(end);
  return ferry::ticket(std::move(state));
}

constexpr int many = 1 << 15;
/// Rounds of a kernel that a device takes a tenth of a millisecond for.
constexpr int long_work = ferry::detail::is_host_exec<exec_space> ? 10 : 20000;
using host = Kokkos::DefaultHostExecutionSpace;

template <class Exec>
void start_successor(const Exec& exec, const float* source, float* target, int rounds = 0) {
  Kokkos::parallel_for("ferry_test::slow_successor", Kokkos::RangePolicy<Exec>(exec, 0, many),
                       slow_successor{source, target, rounds});
}

/// On a host backend all are the default instance.
std::vector<exec_space> instances(std::size_t count) {
  if constexpr (ferry::detail::is_host_exec<exec_space>)
    return std::vector<exec_space>(count);
  else
    return Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>(count, 1));
}

std::vector<float> all_of(float value) { return std::vector<float>(many, value); }

TEST_CASE("host code comes after a ticket, a future and a plan", "[after]") {
  const host exec;
  std::vector<int> ended;
  const auto ends = [&](int kind) {
    return std::make_shared<late_write>([&ended, kind] { ended.push_back(kind); });
  };
  const auto first = ends(1), second = ends(2), third = ends(3);
  const auto ticket = ticket_of(first);
  ferry::future<int> future(ticket_of(second), 5);
  const auto storage = std::make_shared<ferry::detail::plan_storage>();
  storage->completion = third;
  const ferry::row_plan plan(storage);
  ferry::after(exec, ticket);
  CHECK(ended == std::vector<int>{1});
  ferry::after(exec, ticket, future, plan, host{}, ferry::ticket(), ferry::row_plan());
  CHECK(ended == std::vector<int>{1, 2, 3});
  CHECK(future.get() == 5);
}

TEST_CASE("errors of a ticket stay for its wait", "[after]") {
  const exec_space exec;
  const auto table = make<ferry::device_space>("table", 4, 2, std::vector<float>(8, 1.0f));
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 2);
  auto ticket = ferry::gather(exec, table, std::vector<std::int64_t>{9}, batch);
  CHECK_NOTHROW(ferry::after(instances(2)[1], ticket));
  CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
}

TEST_CASE("an instance comes after kernels of another instance", "[after]") {
  const auto exec = instances(3);
  for (int round = 0; round < 5; ++round) {
    const auto zeros = make<ferry::device_space>("zeros", all_of(0));
    auto first = make<ferry::device_space>("one", all_of(-10));
    auto two = make<ferry::device_space>("two", all_of(-10));
    auto three = make<ferry::device_space>("three", all_of(-10));
    start_successor(exec[0], zeros.data(), first.data(), long_work);
    ferry::after(exec[1], exec[0]);
    start_successor(exec[1], first.data(), two.data(), long_work);
    ferry::after(exec[2], exec[0], exec[1]);
    start_successor(exec[2], two.data(), three.data());
    ferry::after(exec[2], exec[2]);
    for (const auto& instance : exec) instance.fence("ferry_test::after");
    CHECK(take(two) == all_of(2));
    CHECK(take(three) == all_of(3));
  }
}

TEST_CASE("host code comes after kernels of a device, and a device after host code", "[after]") {
  const auto exec = instances(2);
  const host near;
  for (int round = 0; round < 5; ++round) {
    auto zeros = make<ferry::mapped_space>("zeros", all_of(0));
    auto first = make<ferry::mapped_space>("one", all_of(-10));
    auto two = make<ferry::mapped_space>("two", all_of(-10));
    auto three = make<ferry::mapped_space>("three", all_of(-10));
    start_successor(exec[0], zeros.data(), first.data(), long_work);
    ferry::after(near, exec[0]);
    CHECK(first(0) == 1.0f);
    CHECK(first(many - 1) == 1.0f);
    start_successor(near, first.data(), two.data());
    ferry::after(exec[1], near);
    start_successor(exec[1], two.data(), three.data());
    ferry::after(near, exec[1]);
    std::size_t wrong = 0;
    for (int i = 0; i < many; ++i) wrong += three(i) != 3.0f;
    CHECK(wrong == 0);
  }
}

TEST_CASE("kernels come after verbs, by their ticket, their future and their instance", "[after]") {
  const auto exec = instances(3);
  std::vector<std::int64_t> backwards(many);
  std::vector<float> content(many), expected(many);
  for (int i = 0; i < many; ++i) {
    const auto position = static_cast<std::size_t>(i);
    backwards[position] = many - 1 - i;
    content[position] = static_cast<float>(i);
    expected[position] = static_cast<float>(many - i);
  }
  const auto table = make<ferry::device_space>("table", content);
  const auto ids = make<ferry::device_space>("which", backwards);
  for (int round = 0; round < 5; ++round) {
    ferry::tensor<float, ferry::device_space> batch("batch", many), single("one", many), two("two", many);
    auto ticket = ferry::gather(exec[0], table, ids, batch, ferry::path::direct{});
    ferry::after(exec[1], ticket);
    start_successor(exec[1], batch.data(), single.data());
    ferry::after(exec[2], exec[0]);
    start_successor(exec[2], batch.data(), two.data());
    auto copied = ferry::clone(exec[0], table);
    ferry::after(exec[1], copied);
    for (const auto& instance : exec) instance.fence("ferry_test::after");
    CHECK(take(single) == expected);
    CHECK(take(two) == expected);
    CHECK(take(copied.get()) == content);
    ticket.wait();
  }
}

}  // namespace ferry_test::after_test
