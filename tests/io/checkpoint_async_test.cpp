// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_kit.hpp"
#include "support/captured_stderr.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <csignal>

/// Saves in the background, and saves of changes.
namespace ferry_test::checkpoint_async_test {

namespace optim = ferry::optim;
using ferry::mapped_space;

/// A size of several chunks.
constexpr std::size_t many = 90000, wide = 40;

std::uint64_t bytes_of_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

template <class Space>
std::vector<float> loaded(const std::string& path) {
  ferry::tensor<float, Space> target("to", many, wide);
  ferry::io::checkpoint run(path);
  run.add("table", target);
  run.load();
  return take(target);
}

TEST_CASE("later verbs do not show in a save in the background", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", many, wide);
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  for (const std::size_t room : {std::size_t{0}, std::size_t{5} << 20, ~std::size_t{0}}) {
    for (int turn = 0; turn < 3; ++turn) {
      ferry::init::constant(exec, table, static_cast<float>(turn) + 1.0f);
      auto saving = run.save_async(exec, {.snapshot_bytes = room});
      ferry::init::constant(exec, table, -5.0f);
      saving.wait();
      CHECK(saving.ready());
      CHECK(loaded<ferry::pageable_space>(run.path()) ==
            std::vector<float>(many * wide, static_cast<float>(turn) + 1.0f));
    }
  }
}

TEST_CASE("training goes on while its checkpoint is written", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  using run_type = training_run<float, mapped_space, optim::adam, ferry::step_count::catch_up>;
  run_type training(optim::adam{.lr = 0.01}), resumed(optim::adam{}, 1);
  ferry::io::checkpoint saving(folder.path() + "/run"), loading(folder.path() + "/run");
  training.add_to(saving);
  resumed.add_to(loading);
  for (std::int64_t begin = 0; begin < 20; begin += 4) {
    auto saved = saving.save_async(exec);
    training.train(begin, begin + 4);
    saved.wait();
    loading.load();
    CHECK(resumed.state.steps() == begin);
    resumed.train(begin, begin + 4);
    training.require_same(resumed);
  }
}

TEST_CASE("tickets of saves outlive their checkpoint, and errors wait in them", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  ferry::ticket late;
  {
    ferry::tensor<float, ferry::device_space> table("table", many, wide);
    ferry::init::constant(exec, table, 3.0f);
    ferry::io::checkpoint run(folder.path() + "/run");
    run.add("table", table);
    late = run.save_async(exec);
    run.save_async(exec).detach();
    late = run.save_async(exec);
    auto moved = std::move(run);
  }
  CHECK(late.ready());  // the destructor of the checkpoint waits
  late.wait();
  CHECK(loaded<ferry::pageable_space>(folder.path() + "/run") == std::vector<float>(many * wide, 3.0f));

  // A folder takes the place of the manifest while the save is being written.
  ferry::tensor<float, ferry::device_space> table("table", many, wide);
  ferry::init::constant(exec, table, 4.0f);
  ferry::io::checkpoint run(folder.path() + "/other");
  run.add("table", table);
  REQUIRE(::mkdir((folder.path() + "/other").c_str(), 0777) == 0);
  auto failing = run.save_async(exec);
  const bool in_time = ::mkdir((folder.path() + "/other/manifest").c_str(), 0777) == 0;
  if (in_time)
    CHECK_THROWS_AS(failing.wait(), ferry::io_error);
  else
    failing.wait();
}

TEST_CASE("the error of a detached save is heard once", "[io][checkpoint]") {
  const temporary_folder folder;
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", many, wide);
  ferry::init::constant(exec, table, 5.0f);
  std::optional<ferry::io::checkpoint> run(folder.path() + "/run");
  run->add("table", table);
  run->save();
  // A file may not grow beyond 1 MiB while a save is in flight.
  const auto failing_save = [&] {
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 1 << 20;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    auto saving = run->save_async(exec, {.snapshot_bytes = ~std::size_t{0}});
    while (!saving.ready()) {
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, signal_before);
    return saving;
  };
  const std::string sentence = "File too large";
  const auto throws_it = MessageMatches(ContainsSubstring(sentence));

  failing_save().detach();
  CHECK_THROWS_MATCHES(run->save(), ferry::io_error, throws_it);
  run->save();
  failing_save().detach();
  CHECK_THROWS_MATCHES(run->save_async(exec).wait(), ferry::io_error, throws_it);
  run->save_async(exec).wait();
  // Its ticket throws it, and then nobody else.
  auto saving = failing_save();
  CHECK_THROWS_MATCHES(saving.wait(), ferry::io_error, throws_it);
  run->save();
  saving = failing_save();
  run->save();
  CHECK_THROWS_MATCHES(saving.wait(), ferry::io_error, throws_it);
  // No wait for other work hears of it.
  failing_save().detach();
  ferry::tensor<float, ferry::device_space> second("other", many, wide);
  ferry::copy(exec, table, second).wait();
  const auto printed = [&](const auto& act) {
    captured_stderr output;
    act();
    return count_of(output.text(), sentence);
  };
  CHECK(printed([&] { run->load(); }) == 1);
  CHECK(printed([&] { run->save(); }) == 0);
  CHECK(printed([&] {
          failing_save().detach();
          run.reset();
        }) == 1);
  run.emplace(folder.path() + "/run");
  run->add("table", table);
  saving = failing_save();
  CHECK(printed([&] { run.reset(); }) == 0);
  CHECK(printed([&] { saving.detach(); }) == 1);
  CHECK(loaded<ferry::pageable_space>(folder.path() + "/run") == std::vector<float>(many * wide, 5.0f));
}

TEST_CASE("two savers of one folder are told apart", "[io][checkpoint]") {
  const temporary_folder folder;
  float number = 1;
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("number", number);
  run.save();
  const ferry::detail::folder_lock second(run.path());
  CHECK_THROWS_MATCHES(run.save(), ferry::io_error,
                       MessageMatches(ContainsSubstring("another checkpoint object or process is saving")));
  run.load();
}

}  // namespace ferry_test::checkpoint_async_test
