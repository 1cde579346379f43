// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

/// A checkpoint that was saved in the format version of today. Every later ferry loads it.
namespace ferry_test::checkpoint_golden_test {

TEST_CASE("a checkpoint of an earlier build loads", "[io][checkpoint]") {
  // FERRY_WRITE_GOLDEN=folder writes it anew.
  const char* fresh = std::getenv("FERRY_WRITE_GOLDEN");
  const std::string path = fresh != nullptr ? fresh : tests_folder() + "/io/golden/checkpoint_v2";
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
  ferry::optim::adam adam{.lr = 0.125, .betas = {0.5, 0.75}};
  auto state = ferry::optim::make_state(adam, table);
  std::int64_t epoch = 12;
  std::vector<float> weights(40), moments(40);
  for (std::size_t i = 0; i < 40; ++i) {
    weights[i] = static_cast<float>(i) / 2;
    moments[i] = static_cast<float>(i) - 7;
  }
  ferry::io::checkpoint run(path);
  run.add("weights", table);
  run.add("adam", adam, state);
  run.add("epoch", epoch);
  if (fresh != nullptr) {
    put(table, std::vector<float>(40, 0.0f));
    put(state.field("exp_avg"), moments);
    state.set_steps(3);
    state.set_seed(99);
    run.save();
    auto most = weights;
    most[17] = 0;
    put(table, most);
    run.save();
    put(table, weights);
    run.save({.changes = true});
  }
  put(table, std::vector<float>(40, -1.0f));
  adam = {};
  epoch = 0;
  run.load();
  CHECK(take(table) == weights);
  CHECK(take(state.field("exp_avg")) == moments);
  CHECK(adam == ferry::optim::adam{.lr = 0.125, .betas = {0.5, 0.75}});
  CHECK(state.steps() == 3);
  CHECK(state.seed() == 99);
  CHECK(epoch == 12);
}

}  // namespace ferry_test::checkpoint_golden_test
