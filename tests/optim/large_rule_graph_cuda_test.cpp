// SPDX-License-Identifier: Apache-2.0
#include "optim/large_rules.hpp"
#include "support/graph_cuda.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

/// Steps with large kernels in a CUDA graph: each launch works with the options that were captured, whatever
/// other kernels were launched in between.
namespace ferry_test::large_rule_graph_cuda_test {

constexpr std::size_t rows = 200, width = 20, n = 150;

auto four_stages() {
  return ferry::optim::chain{ferry::optim::adam{.lr = 0.1, .amsgrad = true}, ferry::optim::grad_scale{8.0},
                             ferry::optim::clip_value{6.0}, ferry::optim::clip_norm{2.0},
                             ferry::optim::max_norm{3.0}};
}

/// A captured step, against the same step that was not captured. In between, kernels of the same type run
/// with other options.
template <class Space, class Path, class Rule>
void replay(const Rule& rule, const Rule& second_rule) {
  auto random = generator(61);
  const stream queue;
  {
    const Kokkos::Cuda instance(queue.exec()), other_stream;
    const auto start = values<double>(random, rows * width);
    const auto ids = indices<std::int64_t>(random, n, rows);
    const auto grads = make<ferry::device_space>("grads", n, width, values<double>(random, n * width));
    auto table = make<Space>("weights", rows, width, start);
    auto plain = make<Space>("plain", rows, width, start);
    auto crowd = make<Space>("crowd", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    auto crowd_state = ferry::optim::make_state(second_rule, crowd);
    const auto plan = ferry::make_plan(instance, ids, rows);
    static_cast<void>(plan.unique_count());
    {
      auto plain_state = ferry::optim::make_state(rule, plain);
      ferry::step(instance, rule, plain, plain_state, plan, grads, Path{}).wait();
    }
    const auto expected = take(plain);

    ferry::ticket ticket;
    graph repeated(queue, [&] { ticket = ferry::step(instance, rule, table, state, plan, grads, Path{}); });
    // Kernels of other options, at once and between.
    for (int launch = 0; launch < 2; ++launch)
      ferry::step(other_stream, second_rule, crowd, crowd_state, plan, grads, Path{}).detach();
    repeated.launch();
    ticket.wait();
    CHECK(same_bits(take(table), expected));
    ferry::step(other_stream, second_rule, crowd, crowd_state, plan, grads, Path{}).wait();
  }
}

template <class Space, class Path>
void replay_all() {
  const auto transforms = four_stages();
  auto other_stages = four_stages();
  other_stages.rule.lr = 0.7;
  replay<Space, Path>(transforms, other_stages);
  polynomial_rule<60> other_polynomial;
  other_polynomial.options.fill(0.001);
  replay<Space, Path>(polynomial_rule<60>{}, other_polynomial);
  averages_rule<6, 24> other_averages;
  other_averages.polynomial.options.fill(0.001);
  replay<Space, Path>(averages_rule<6, 24>{}, other_averages);
}

TEMPLATE_TEST_CASE("captured steps with large kernels", "[graph][large]", ferry::path::direct,
                   ferry::path::ordered) {
  replay_all<ferry::pinned_space, TestType>();
  replay_all<ferry::mapped_space, TestType>();
}

// A launch that waits for the device would wait here for the host, for ever: it has to be told to go on.
TEST_CASE("steps with large kernels do not wait for the device", "[large]") {
  const watchdog dog("steps with large kernels that must not wait");
  auto random = generator(62);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    const Kokkos::Cuda instance(stream);
    const auto rule = ferry::optim::adam{.amsgrad = true};
    const auto start = values<double>(random, rows * width);
    const auto ids = indices<std::int64_t>(random, n, rows);
    const auto grads = make<ferry::device_space>("grads", n, width, values<double>(random, n * width));
    auto table = make<ferry::pinned_space>("weights", rows, width, start);
    auto plain = make<ferry::pinned_space>("plain", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    auto plain_state = ferry::optim::make_state(rule, plain);
    const auto plan = ferry::make_plan(instance, ids, rows);
    static_cast<void>(plan.unique_count());
    const auto three_steps = [&](auto& weights, auto& moments) {
      for (int step = 0; step < 3; ++step)
        ferry::step(instance, rule, weights, moments, plan, grads, ferry::path::ordered{},
                    ferry::step_count::catch_up{})
            .detach();
    };
    // By now the objects exist that a state makes once.
    three_steps(plain, plain_state);
    three_steps(table, state);
    three_steps(plain, plain_state);
    instance.fence("ferry_test::large");
    const auto expected = take(plain);
    std::atomic<bool> go{false};
    check(cudaLaunchHostFunc(
        stream,
        [](void* word) {
          while (!*static_cast<std::atomic<bool>*>(word)) std::this_thread::yield();
        },
        &go));
    three_steps(table, state);
    go = true;
    instance.fence("ferry_test::large");
    CHECK(same_bits(take(table), expected));
  }
  check(cudaStreamDestroy(stream));
}

}  // namespace ferry_test::large_rule_graph_cuda_test
