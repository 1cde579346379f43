// SPDX-License-Identifier: Apache-2.0
#include "distributed/device_kit.hpp"
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

#include <limits>
#include <string>
#include <vector>

/// step_bags that finds the maxima of sharded bags, if one rank passes something bad: each rank reads the shards of all
/// before it learns of that.
namespace ferry_test::maxima_faults_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using device = ferry::device_space;

enum class flaw { index, offset, late, many, infinite, none };

std::string said_of(flaw wrong, int rank) {
  const std::string name = " of rank " + std::to_string(rank);
  switch (wrong) {
    case flaw::index:
      return "index 77 at position 2" + name;
    case flaw::offset:
      return "offsets[1] = 9" + name;
    case flaw::late:
      return "offsets[0] = 1" + name;
    case flaw::many:
      return "5";
    case flaw::infinite:
      return "of rank " + std::to_string(rank);
    case flaw::none:
      break;
  }
  return "";
}

}  // namespace

TEST_CASE("an error of one rank that finds maxima leaves the rows of all as they are",
          "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("errors of maxima");
  constexpr std::size_t width = 6;
  for (const int ranks : {2, 3, 4}) {
    const auto comm =
        ferry::communicator::devices(all_in_turn(ranks), {.deadline = std::chrono::seconds(30)});
    const Kokkos::DefaultExecutionSpace first;
    ferry::sharded_table<float, device> big("w", comm, 20, width);
    const ferry::optim::adam rule{};
    auto states = ferry::optim::make_state(rule, big);
    ferry::init::uniform(first, big, -1, 1, 5);
    auto before = contents(first, big);
    for (const int bad : {0, ranks - 1})
      for (const bool planned : {false, true})
        for (const flaw wrong :
             {flaw::index, flaw::offset, flaw::late, flaw::many, flaw::infinite, flaw::none}) {
          std::vector<std::string> messages(static_cast<std::size_t>(ranks));
          comm.run([&](int rank, const auto& exec) {
            const flaw rank_flaw = rank == bad ? wrong : flaw::none;
            const bool has_nothing = ranks > 2 && rank == 1;
            std::vector<std::int64_t> rows{1, 2, 3, 4}, offsets{0, 1, 4};
            if (has_nothing) rows.clear(), offsets.assign(3, 0);
            if (rank_flaw == flaw::index) rows[2] = 77;
            if (rank_flaw == flaw::offset) offsets[1] = 9;
            if (rank_flaw == flaw::late) offsets[0] = 1;
            const ferry::device home = comm.device(rank);
            const auto named = on_device(exec, home, rows), bags = on_device(exec, home, offsets);
            ferry::tensor<float, device> grads("grads", home, rank_flaw == flaw::many ? 5 : 2, width);
            ferry::init::constant(exec, grads,
                                  rank_flaw == flaw::infinite ? std::numeric_limits<float>::infinity() : 1);
            const auto step = [&](const auto& list) {
              ferry::step_bags(exec, rule, big, states, list, bags, grads, ferry::pooling::max{},
                               ferry::nonfinite::reject{})
                  .wait();
            };
            try {
              if (planned)
                step(ferry::make_plan(exec, named, big));
              else
                step(named);
            } catch (const ferry::error& said) {
              messages[static_cast<std::size_t>(rank)] = said.what();
            }
          });
          INFO(ranks << " ranks, flaw " << static_cast<int>(wrong) << " of rank " << bad << ", planned "
                     << planned);
          for (const std::string& message : messages)
            if (wrong == flaw::none)
              CHECK(message.empty());
            else
              CHECK_THAT(message, ContainsSubstring(said_of(wrong, bad)));
          const auto after = contents(first, big);
          CHECK((after == before) == (wrong != flaw::none));
          before = after;
        }
    CHECK(states.steps() == 4);
  }
}

}  // namespace ferry_test::maxima_faults_test
