// SPDX-License-Identifier: Apache-2.0
#include "distributed/forwarding_transport.hpp"
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

/// Meetings of the ranks: how many a verb takes by kernels, and what they do when a rank fails or is slow.
namespace ferry_test::meetings_test {

namespace {

/// Threads that count the meetings of rank 0.
class counting_threads final : public forwarding_transport {
 public:
  int meetings = 0;

  using forwarding_transport::forwarding_transport;
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    count(rank);
    inner().all_gather(rank, note, mine, theirs);
  }
  void exchange(int rank, const ferry::detail::call_note& note,
                std::span<const ferry::detail::outgoing_part> targets,
                std::span<const ferry::detail::incoming_part> sources,
                ferry::detail::device_lane* lane) override {
    count(rank);
    inner().exchange(rank, note, targets, sources, lane);
  }
  void end_reads(int rank, const ferry::detail::call_note& note, const char* failed,
                 std::span<const std::byte> mine, std::byte* theirs) override {
    count(rank);
    inner().end_reads(rank, note, failed, mine, theirs);
  }
  [[nodiscard]] bool shares_addresses() const override { return true; }

 private:
  void count(int rank) {
    if (rank == 0) ++meetings;
  }
};

}  // namespace

TEST_CASE("ranks whose kernels route their batches meet as often as docs/distributed.md says",
          "[distributed][kernels]") {
  const watchdog guard("meetings");
  for (const int ranks : {2, 3, 4}) {
    const auto group = std::make_shared<counting_threads>(ranks, std::chrono::seconds(30));
    const ferry::communicator comm(group);
    const exec_space first;
    constexpr std::size_t rows = 53, columns = 8, bags = 5, size = 3;
    ferry::sharded_table<float, device> big("w", comm, rows, columns);
    ferry::init::uniform(first, big, -1, 1, 7);
    const ferry::optim::adam rule{.lr = 0.01};
    auto states = ferry::optim::make_state(rule, big);
    comm.run([&](int rank) {
      const exec_space exec;
      const auto count = [&](int expected, const char* name, const auto& verb) {
        comm.barrier();
        if (rank != 0) return verb();
        const int before = group->meetings;  // of rank 0, which no other thread changes
        verb();
        const int meetings = group->meetings - before;
        const std::string text = std::string(name) + ": " + std::to_string(meetings);
        expect(meetings == expected, text.c_str());
      };
      std::vector<std::int64_t> list;
      for (std::size_t p = 0; p < bags * size; ++p)
        list.push_back(static_cast<std::int64_t>((p * 7 + static_cast<std::size_t>(rank) * 20) % rows));
      std::vector<std::int64_t> apart;  // no row of another rank
      for (std::int64_t row = rank; row < static_cast<std::int64_t>(rows); row += ranks) apart.push_back(row);
      const auto ids = on_device(exec, {}, list), separate = on_device(exec, {}, apart);
      const auto values = on_device(exec, {}, std::vector<float>(list.size() * columns, 0.5f), columns);
      const auto separate_values =
          on_device(exec, {}, std::vector<float>(apart.size() * columns, 0.5f), columns);
      const auto grads = on_device(exec, {}, std::vector<float>(bags * columns, 0.25f), columns);
      const std::vector<float> weights(list.size(), 0.5f);
      ferry::tensor<float, host> weight_grads("weight_grads", weights.size());
      ferry::tensor<float, device> out("out", list.size(), columns), pooled("pooled", bags, columns);
      constexpr auto bag = static_cast<std::int64_t>(size);
      std::vector<std::int64_t> offsets;
      for (std::size_t b = 0; b <= bags; ++b) offsets.push_back(static_cast<std::int64_t>(b) * bag);
      std::optional<ferry::sharded_plan<exec_space>> plan;
      const auto batch = ferry::make_plan(exec, ids, rows);

      count(2, "make_plan", [&] { plan = ferry::make_plan(exec, ids, big); });
      count(2, "gather", [&] { ferry::gather(exec, big, ids, out).wait(); });
      count(2, "gather, exchange",
            [&] { ferry::gather(exec, big, ids, out, ferry::path::exchange{}).wait(); });
      count(2, "gather with a plan", [&] { ferry::gather(exec, big, *plan, out).wait(); });
      count(2, "gather_bags", [&] { ferry::gather_bags(exec, big, ids, offsets, pooled).wait(); });
      count(2, "scatter", [&] { ferry::scatter(exec, big, ids, values).wait(); });
      count(3, "scatter, reject", [&] {
        ferry::scatter(exec, big, separate, separate_values, ferry::duplicates::reject{}).wait();
      });
      count(2, "scatter_add", [&] { ferry::scatter_add(exec, big, ids, values).wait(); });
      count(2, "scatter_add with a plan", [&] { ferry::scatter_add(exec, big, *plan, values).wait(); });
      count(2, "scatter_add, by rank",
            [&] { ferry::scatter_add(exec, big, batch, values, ferry::reduce::by_rank{}).wait(); });
      count(2, "step", [&] { ferry::step(exec, rule, big, states, ids, values).wait(); });
      count(2, "step_bags", [&] { ferry::step_bags(exec, rule, big, states, ids, offsets, grads).wait(); });
      count(2, "step with a plan",
            [&] { ferry::step(exec, rule, big, states, *plan, values, ferry::nonfinite::reject{}).wait(); });
      count(2, "step_bags with a plan",
            [&] { ferry::step_bags(exec, rule, big, states, *plan, offsets, grads).wait(); });
      count(3, "step_bags, max", [&] {
        ferry::step_bags(exec, rule, big, states, ids, offsets, grads, ferry::pooling::max{}).wait();
      });
      count(3, "step_bags, max with a plan", [&] {
        ferry::step_bags(exec, rule, big, states, *plan, offsets, grads, ferry::pooling::max{}).wait();
      });
      count(4, "step_bags, gradients of weights", [&] {
        ferry::step_bags(exec, rule, big, states, ids, offsets, grads, weights, weight_grads,
                         ferry::pooling::sum{})
            .wait();
      });
    });
  }
}

TEST_CASE("values that ranks pass after reads reach all, or the error of a rank does", "[distributed]") {
  const watchdog guard("agree_on");
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int failing : {-1, 0, ranks - 1}) {
      const auto comm = group_of(ranks);
      std::vector<int> numbers(static_cast<std::size_t>(ranks));
      std::atomic<int> own_errors{0}, peer_errors{0};
      comm.run([&](int rank) {
        const auto self = static_cast<std::size_t>(rank);
        numbers[self] = 10 * rank;
        ferry::detail::collective call(comm, ferry::detail::call_note("test"));
        try {
          call.guarded([&] {
            const int* const mine = &numbers[self];
            call.begin_reads();
            const auto addresses = call.all_gather(std::span(&mine, 1));
            if (rank == failing) throw std::runtime_error("lost a page");
            const std::array<int, 2> read{*addresses[(self + 1) % addresses.size()], rank};
            const auto gathered = call.agree_on(std::span<const int>(read));
            bool right = gathered.size() == 2 * addresses.size();
            for (std::size_t r = 0; right && r < addresses.size(); ++r)
              right = gathered[2 * r] == 10 * static_cast<int>((r + 1) % addresses.size()) &&
                      gathered[2 * r + 1] == static_cast<int>(r);
            expect(right, "values after reads");
            call.agree();
          });
        } catch (const ferry::peer_error& lost) {
          ++peer_errors;
          expect(std::string(lost.what()).find("lost a page") != std::string::npos, lost.what());
        } catch (const std::runtime_error&) {
          ++own_errors;
        }
        comm.barrier();  // the group can be used
      });
      CHECK(own_errors == (failing < 0 ? 0 : 1));
      CHECK(peer_errors == (failing < 0 ? 0 : ranks - 1));
    }
  }
}

TEST_CASE("a rank whose deadline passes after its reads waits for those of the others", "[distributed]") {
  const watchdog guard("slow reads");
  constexpr std::chrono::milliseconds deadline{50};
  const auto comm = threads_of(3, deadline);
  std::atomic<bool> has_left{false}, read_late{false};
  comm.run([&](int rank) {
    int number = rank;
    expect(!said<ferry::communication_error>([&] {
              ferry::detail::collective call(comm, ferry::detail::call_note("test"));
              call.guarded([&] {
                const int* const mine = &number;
                call.begin_reads();
                const auto addresses = call.all_gather(std::span(&mine, 1));
                if (rank == 1) {
                  std::this_thread::sleep_for(4 * deadline);
                  read_late = has_left.load() || *addresses[0] != 0;
                }
                (void)call.agree_on(std::span<const int>(&number, 1));
              });
            }).empty(),
           "the deadline");
    if (rank != 1) has_left = true;
  });
  CHECK_FALSE(read_late);
}

}  // namespace ferry_test::meetings_test
