// SPDX-License-Identifier: Apache-2.0
#include "support/scatter_case.hpp"
#include "support/step_check.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Batches of all sizes on the device, next to an empty kernel: what a call costs where there is little to move. `wall ms`
/// is a call and the wait for it, `ms` a call of a burst. Rows are drawn with replacement, so all sorts happen.
namespace ferry_bench {
namespace {

struct nothing {
  KOKKOS_FUNCTION void operator()(std::int64_t) const {}
};

constexpr int small_burst = 16;

constexpr bool on_host = ferry::execution_backend<exec_space>::device_is_host;

class small_batches {
 public:
  explicit small_batches(session& run)
      : run_(run), table_("table", run.chosen().step_rows, run.chosen().width), width_(run.chosen().width) {
    refill();
    measure_empty();
  }

  void time_verbs(std::int64_t n) {
    const auto sets = index_sets::make<any_row>(run_, n, table_.rows());
    const named_rows named(run_, sets[1]);
    moves(n, sets, named);
    steps(n, sets, named);
  }

 private:
  void refill() { ferry::init::custom(run_.exec(), table_, before()); }
  [[nodiscard]] element_value before() const { return {width_}; }

  void measure_empty() {
    figure result;
    result.name = "small.empty_kernel";
    result.setting = {{"burst", std::int64_t{small_burst}}};
    const Kokkos::RangePolicy<exec_space> single(run_.exec(), 0, 1);
    result.time = measure(run_, small_burst,
                          [&](int) { Kokkos::parallel_for("ferry_bench::nothing", single, nothing{}); });
    empty_ = result.time;
    conclude(run_, result, 0);
  }

  template <class Work, class Check>
  void time(const std::string& verb, std::int64_t n, const Work& work, const Check& wrong) {
    figure result;
    result.name = "small." + verb + ".n" + std::to_string(n);
    result.setting = {{"rows", run_.chosen().step_rows},
                      {"n", n},
                      {"row_bytes", 4 * width_},
                      {"burst", std::int64_t{small_burst}}};
    result.time = measure(run_, small_burst, work);
    conclude(run_, result, wrong());
    if (empty_.wall.median() > 0)
      run_.results().ratio(result.name + " wall", "small.empty_kernel wall",
                           result.time.wall.median() / empty_.wall.median());
  }

  void moves(std::int64_t n, const index_sets& sets, const named_rows& named) {
    const auto& exec = run_.exec();
    batch_tensor batch("batch", n, width_);
    time(
        "gather", n, [&](int call) { return ferry::gather(exec, table_, sets[call], batch); },
        [&] {
          ferry::init::custom(exec, batch, poison_value{});
          ferry::gather(exec, table_, sets[1], batch).wait();
          return wrong_rows(run_, batch, sets[1]);
        });
    time(
        "make_plan", n,
        [&](int call) { static_cast<void>(ferry::make_plan(exec, sets[call], table_.rows())); },
        [&] {
          const auto counted = ferry::make_plan(exec, sets[1], table_.rows()).unique_count();
          return counted > named.count() ? counted - named.count() : named.count() - counted;
        });
    const auto salted = salted_batch(run_, n, static_cast<std::size_t>(width_));
    time(
        "scatter", n, [&](int call) { return ferry::scatter(exec, table_, sets[call], salted); },
        [&] { return wrong_after_scatter(run_, table_.view(), sets[1], winners(run_, sets[1]), salted); });
    refill();
  }

  void steps(std::int64_t n, const index_sets& sets, const named_rows& named) {
    const auto& exec = run_.exec();
    batch_tensor grads("grads", n, width_);
    ferry::init::custom(exec, grads, gradient_value{width_});
    time(
        "scatter_add", n, [&](int call) { return ferry::scatter_add(exec, table_, sets[call], grads); },
        [&] {
          refill();
          ferry::scatter_add(exec, table_, sets[1], grads).wait();
          return wrong_in_table(run_, table_.data(), static_cast<std::int64_t>(table_.size()), before(),
                                first_sgd_step{-1.0}, named);
        });
    const ferry::optim::sgd sgd{.lr = 0.1};
    step("sgd", n, sgd, first_sgd_step{sgd.lr}, sets, named, grads);
    const ferry::optim::adam adam{.lr = 0.1, .eps = 0.25};
    step("adam", n, adam, first_normed_step{adam.lr, adam.eps}, sets, named, grads);
  }

  template <class Rule, class First>
  void step(const std::string& name, std::int64_t n, const Rule& rule, const First& first,
            const index_sets& sets, const named_rows& named, const batch_tensor& grads) {
    auto state = ferry::optim::make_state(rule, table_);
    time(
        "step." + name, n,
        [&](int call) { return ferry::step(run_.exec(), rule, table_, state, sets[call], grads); },
        [&] { return wrong_after_step(run_, table_, rule, first, sets[1], named, grads); });
    refill();
  }

  session& run_;
  ferry::tensor<float, ferry::device_space> table_;
  std::int64_t width_;
  measured empty_;
};

void small(session& run) {
  small_batches batches(run);
  std::vector<std::int64_t> sizes{1, 32, 1024, 1025, 2048, 2049, 4096, 16384, 131072};
  if (on_host) sizes = {1, 4, 32, 256, 1024, 16384};
  for (const std::int64_t n : sizes) batches.time_verbs(n);
}

const registration all_sizes{"small", small};

}  // namespace
}  // namespace ferry_bench
