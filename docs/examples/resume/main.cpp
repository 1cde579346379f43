// SPDX-License-Identifier: Apache-2.0
// A loop that resumes within an epoch.
//
//   resume FOLDER    trains, and saves into the folder. Kill it at any time and start it again: it goes on
//   resume           trains once without a stop, and once with stops: the same bits
#include <ferry/io.hpp>
#include <ferry/loader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;

struct hyperparameters {
  double lr = 0.01;
  std::int32_t rows = 20000;
  std::int32_t width = 16;
};

/// The gradient of (row - target)^2 / 2.
struct loss_gradient {
  ferry::tensor_view<const float, ferry::device_space> rows;
  ferry::tensor_view<float, ferry::device_space> grads;
  float target;

  KOKKOS_FUNCTION void operator()(std::size_t position) const {
    for (std::size_t j = 0; j < rows.width(); ++j) grads(position, j) = rows(position, j) - target;
  }
};

constexpr std::int64_t samples = 100000, batch = 512, epochs = 3, batches_between_saves = 50;

/// Trains until the end, or until `most` batches have been trained. Returns the weights.
std::vector<float> train(const std::string& folder, std::int64_t most) {
  const exec_space exec;
  const hyperparameters model;
  ferry::optim::adam adam{.lr = model.lr};
  ferry::tensor<float, ferry::mapped_space> table("weights", model.rows, model.width);
  ferry::init::normal(exec, table, 0.0, 0.1, 42);
  auto state = ferry::optim::make_state(adam, table);

  // The loop needs these to go on: the position in the data, engines of random numbers, notes.
  std::int64_t position = 0;
  std::mt19937_64 engine(7);
  std::normal_distribution<float> targets;
  std::string note = "begun at batch 0";
  ferry::io::checkpoint run(folder, {.keep = 3});
  run.add("weights", table);
  run.add("adam", adam, state);
  run.add("position", position);
  run.add("engine", engine);
  run.add("targets", targets);
  run.add("note", note);
  run.add("model", model, "hyperparameters 1");  // const: a checkpoint of another model is refused
  if (run.exists()) {
    run.load();
    std::printf("goes on at batch %lld, %s\n", static_cast<long long>(position), note.c_str());
    note = "resumed at batch " + std::to_string(position);
  }

  std::vector<std::int64_t> ids(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * 7919 % 20000);
  ferry::tensor<float, ferry::device_space> grads("grads", batch, model.width);
  // After load(): the rows of the first batches are read at once.
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(ids),
                                {.batch = batch, .shuffle = 1, .epochs = epochs, .first_batch = position});
  for (std::int64_t epoch = position / batches.batches_per_epoch(); epoch < epochs; ++epoch)
    while (auto got = batches.next()) {
      const auto rows = got->gathered();
      const auto part = grads.first(rows.rows());
      const ferry::tensor_view<const float, ferry::device_space> inputs(rows.data(), rows.extents_of());
      Kokkos::parallel_for("loss_gradient", Kokkos::RangePolicy<exec_space>(exec, 0, rows.rows()),
                           loss_gradient{inputs, part.view(), targets(engine)});
      ferry::step(exec, adam, table, state, got->plan(), part).wait();
      position = batches.position();
      if (position % batches_between_saves == 0) run.save();
      if (position == most) return {};
    }
  run.save("last");
  std::vector<float> weights(table.size());
  ferry::copy(exec, table, weights).wait();
  return weights;
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  if (argc > 1) {
    static_cast<void>(train(argv[1], -1));
    return 0;
  }
  const std::string folder =
      std::filesystem::temp_directory_path() / ("ferry_resume_" + std::to_string(std::random_device{}()));
  std::filesystem::create_directory(folder);
  const auto whole = train(folder + "/whole", -1);
  for (const std::int64_t stop : {30, 120, 390, 475}) static_cast<void>(train(folder + "/stopped", stop));
  const bool same = train(folder + "/stopped", -1) == whole;
  std::filesystem::remove_all(folder);
  std::printf("a run with four stops has %s bits as one without\n", same ? "the same" : "OTHER");
  return same ? 0 : 1;
}
