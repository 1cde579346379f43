// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_kit.hpp"

#include <ferry/io.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Saves of changes of entries whose changed rows verbs keep.
namespace ferry_test::checkpoint_tracked_test {

namespace {

namespace optim = ferry::optim;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr std::size_t many = 50000, wide = 33;
constexpr std::size_t row_bytes = wide * sizeof(float);

/// Bytes of pieces in the data file of save `number`; a piece is followed by at most 63 others.
std::uint64_t written(const std::string& run, std::uint64_t number) {
  struct stat status {};
  REQUIRE(::stat((run + "/data-" + std::to_string(number)).c_str(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_size) - 4096;
}

std::vector<float> loaded(const std::string& path) {
  ferry::tensor<float, ferry::pageable_space> target("to", many, wide);
  ferry::io::checkpoint run(path);
  run.add("table", target);
  run.load({.partial = true});
  return take(target);
}

}  // namespace

TEST_CASE("a save of changes of a tracked table writes the rows that verbs wrote", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  auto random = generator(511);
  ferry::tensor<float, ferry::mapped_space> table("table", many, wide);
  put(table, values<float>(random, many * wide));
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  CHECK_THROWS_MATCHES(run.track("tabel"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("nothing was added as 'tabel'")));
  CHECK_THROWS_MATCHES(run.mark_all("table"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'table' is not tracked")));
  run.track("table");
  run.save();
  std::uint64_t number = 1;
  for (int turn = 0; turn < 12; ++turn) {
    const std::size_t count = 1 + random() % 300;
    const auto rows = indices<std::int32_t>(random, count, many);
    const auto batch = make<ferry::device_space>("batch", count, wide, values<float>(random, count * wide));
    ferry::scatter_add(exec, table, rows, batch).detach();  // the save waits
    if (turn % 3 == 2)
      run.save_async(exec, {.changes = true, .snapshot_bytes = turn % 2 == 0 ? 0 : ~std::size_t{0}}).wait();
    else
      run.save({.changes = true});
    ++number;
    CHECK(loaded(run.path()) == take(table));
    CHECK(written(run.path(), number) <= count * (row_bytes + 4) + 64 * 2);
  }
  run.save({.changes = true});
  CHECK(written(run.path(), ++number) == 0);

  // Writes that no verb made are not looked for.
  const auto before = take(table);
  table(17, 3) += 1.0f;
  table(many - 1, 0) += 1.0f;
  run.save({.changes = true});
  ++number;
  CHECK(loaded(run.path()) == before);
  const std::vector<std::uint32_t> touched{many - 1, 17, 17};
  CHECK_THROWS_AS(run.mark_changed("table", std::vector<std::int64_t>{17, many}), ferry::out_of_range);
  CHECK_THROWS_AS(run.mark_changed("table", std::vector<std::int64_t>{-1}), ferry::out_of_range);
  run.save({.changes = true});
  CHECK(written(run.path(), ++number) == 0);
  run.mark_changed("table", touched);
  run.save({.changes = true});
  CHECK(loaded(run.path()) == take(table));
  CHECK(written(run.path(), ++number) <= 2 * (row_bytes + 4) + 64 * 2);
  put(table, values<float>(random, many * wide));
  run.mark_all("table");
  run.save({.changes = true});
  CHECK(loaded(run.path()) == take(table));
}

TEST_CASE("marks belong to the checkpoint of the folder", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  auto random = generator(512);
  ferry::tensor<float, ferry::device_space> table("table", many, wide);
  ferry::init::uniform(exec, table, -1, 1, 7);
  ferry::io::checkpoint run(folder.path() + "/run"), second(folder.path() + "/run"),
      device_array(folder.path() + "/there");
  for (auto* member : {&run, &second, &device_array}) {
    member->add("table", table);
    member->track("table");
    member->save();
  }
  const auto change = [&] {
    const auto rows = indices<std::int64_t>(random, 10, many);
    ferry::scatter(exec, table, rows,
                   make<ferry::device_space>("batch", 10, wide, values<float>(random, 10 * wide)))
        .wait();
  };
  // Each of three objects has marks of its own, and none trusts them after a save of another one.
  for (int turn = 0; turn < 20; ++turn) {
    change();
    auto* const saver = std::vector<ferry::io::checkpoint*>{&run, &second, &device_array}[random() % 3];
    saver->save({.changes = true});
    CHECK(loaded(saver->path()) == take(table));
  }
  // A load makes the table that of the file; later changes are marked.
  const auto content = take(table);
  run.save();
  change();
  run.load();
  CHECK(take(table) == content);
  change();
  run.save({.changes = true});
  CHECK(loaded(run.path()) == take(table));
  // Another object knows that the load has written everything.
  device_array.save({.changes = true});
  CHECK(loaded(device_array.path()) == take(table));

  // A save that fails keeps the marks for the next one.
  change();
  {
    const ferry::detail::folder_lock busy(run.path());
    CHECK_THROWS_AS(run.save({.changes = true}), ferry::io_error);
  }
  change();
  run.save({.changes = true});
  CHECK(loaded(run.path()) == take(table));
  // The next save has changes made during a save in the background.
  change();
  auto saving = run.save_async(exec, {.changes = true, .snapshot_bytes = 0});
  change();
  saving.wait();
  run.save({.changes = true});
  CHECK(loaded(run.path()) == take(table));
}

TEMPLATE_TEST_CASE("tracked training resumes from its changes", "[io][checkpoint]", ferry::step_count::global,
                   ferry::step_count::per_row, ferry::step_count::catch_up) {
  const temporary_folder folder;
  const exec_space exec;
  using run_type = training_run<float, ferry::device_space, optim::adam, TestType>;
  run_type training(optim::adam{.lr = 0.01}), resumed(optim::adam{}, 1);
  ferry::io::checkpoint saving(folder.path() + "/run"), loading(folder.path() + "/run");
  training.add_to(saving);
  resumed.add_to(loading);
  for (const auto* name : {"weights", "optimizer"}) saving.track(name);
  saving.save();
  for (std::int64_t begin = 0; begin < 24; begin += 3) {
    training.train(begin, begin + 3, true);
    if (begin % 2 == 0)
      saving.save({.changes = true});
    else
      saving.save_async(exec, {.changes = true}).wait();
    loading.load();
    training.require_same(resumed);
    if (begin % 4 == 0) {  // goes on from the file, with marks of its own
      if (begin == 0)
        for (const auto* name : {"weights", "optimizer"}) loading.track(name);
      resumed.train(begin + 3, begin + 4, true);
      loading.load();
      training.require_same(resumed);
    }
  }
}

TEST_CASE("long rows, records, single numbers and slices are tracked", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  auto random = generator(513);
  const optim::adam rule{.lr = 0.1};
  ferry::tensor<std::uint8_t, ferry::device_space> lines("lines", 9, 1000001);
  ferry::tensor<float, ferry::mapped_space> bias("bias", 3000), part("part", 500, 7);
  auto records = optim::make_records<float, ferry::mapped_space>(rule, "records", 400, 6);
  ferry::init::uniform(exec, records.table(), -1, 1, 3);
  ferry::init::uniform(exec, lines, 0, 255, 1);
  ferry::init::uniform(exec, bias, 0, 1, 1);
  ferry::init::uniform(exec, part, 0, 1, 1);
  auto slice = part.rows_between(100, 300);
  ferry::io::checkpoint run(folder.path() + "/run"), back(folder.path() + "/run");
  run.add("lines", lines), run.add("bias", bias), run.add("part", slice), run.add("adam", rule, records);
  for (const auto* name : {"lines", "bias", "part", "adam", "adam/weights"}) run.track(name);
  ferry::tensor<std::uint8_t, ferry::pageable_space> lines_back("lines", 9, 1000001);
  ferry::tensor<float, ferry::pageable_space> bias_back("bias", 3000), part_back("part", 200, 7),
      weights_back("weights", 400, 6);
  auto state_back = optim::make_state(rule, weights_back);
  back.add("lines", lines_back), back.add("bias", bias_back), back.add("part", part_back);
  back.add("adam/weights", weights_back), back.add("adam", rule, state_back);
  run.save();
  for (std::uint64_t turn = 2; turn < 10; ++turn) {
    const auto line = indices<std::int64_t>(random, 1, 9);
    ferry::scatter(exec, lines, line,
                   make<ferry::device_space>("line", 1, 1000001, values<std::uint8_t>(random, 1000001)))
        .wait();
    const auto numbers = indices<std::int64_t>(random, 20, 3000);
    ferry::scatter(exec, bias, numbers, make<ferry::device_space>("numbers", values<float>(random, 20)))
        .wait();
    const auto rows = indices<std::int64_t>(random, 20, 400);
    const auto grads = make<ferry::device_space>("grads", 20, 6, values<float>(random, 120));
    ferry::step(exec, rule, records, rows, grads).wait();
    const auto some = indices<std::int64_t>(random, 15, 500);
    ferry::scatter(exec, part, some, make<ferry::device_space>("some", 15, 7, values<float>(random, 105)))
        .wait();
    run.save({.changes = true});
    if (turn == 2) CHECK(written(run.path(), turn) < 1300000);  // later whole chunks are written again
    back.load();
    CHECK(take(lines_back) == take(lines));
    CHECK(take(bias_back) == take(bias));
    ferry::tensor<float, ferry::pageable_space> now("now", 200, 7), weights("weights", 400, 6),
        first("exp_avg", 400, 6);
    ferry::copy(exec, slice, now).wait();
    ferry::copy(exec, records.table(), weights).wait();
    ferry::copy(exec, records.field("exp_avg"), first).wait();
    CHECK(take(part_back) == take(now));
    CHECK(take(weights_back) == take(weights));
    CHECK(take(state_back.field("exp_avg")) == take(first));
  }
  std::vector<float> plain(8);
  run.add("plain", plain);
  CHECK_THROWS_MATCHES(run.track("plain"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'plain' has no tensor")));
}

TEST_CASE("no mark is lost while another thread writes", "[io][checkpoint]") {
  const temporary_folder folder;
  auto random = generator(514);
  ferry::tensor<float, ferry::mapped_space> table("table", many, wide);
  put(table, values<float>(random, many * wide));
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  run.track("table");
  run.save();
  std::atomic<bool> stop{false};
  std::thread writer([&, own = generator(515)]() mutable {
    const exec_space exec;
    while (!stop) {
      const auto rows = indices<std::int64_t>(own, 50, many);
      std::vector<float> elements(50 * wide, static_cast<float>(own() % 1000));
      ferry::scatter(exec, table, rows, ferry::tensor_view(elements.data(), 50, wide)).wait();
    }
  });
  // Such a save may hold any content of a row that is being written. The row is in the next one.
  // Saves in the background write a copy, whose checksums are right in any case.
  for (int turn = 0; turn < 15; ++turn) run.save_async(exec_space{}, {.changes = true}).wait();
  stop = true;
  writer.join();
  run.save({.changes = true});
  CHECK(loaded(run.path()) == take(table));
}

}  // namespace ferry_test::checkpoint_tracked_test
