// SPDX-License-Identifier: Apache-2.0
// A child of fork() has a copy of every object and none of the threads. It may end in any way, and work where it
// was forked before Kokkos::initialize. Else each call that needs threads or devices is refused before it changes
// anything. Files, locks and sockets of the parent stay as they are.
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>
#include <ferry/io.hpp>
#include <ferry/io/checkpoint.hpp>
#include <ferry/io/save_npy.hpp>
#include <ferry/loader.hpp>
#include <ferry/loader/prefetcher.hpp>
#include <ferry/loader/row_prefetcher.hpp>

#include "check.hpp"

#include <Kokkos_Core.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultHostExecutionSpace;
using table_type = ferry::tensor<float, ferry::pageable_space>;
using source_type = decltype(ferry::samples_of(std::declval<std::vector<std::int32_t>&>()));
constexpr std::size_t rows = 20000, width = 32, positions = 4000;

/// How a child ends that runs `act`: 0 where that returns true. A child that hangs is ended after 20 seconds.
bool ends_well(const char* name, const std::function<bool()>& act) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    bool well = false;
    try {
      well = act();
    } catch (const std::exception& lost) {
      std::printf("%s: %s\n", name, lost.what());
    }
    std::fflush(nullptr);
    ::_exit(well ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well) std::printf("%s: the child's status is %#x\n", name, static_cast<unsigned>(status));
  return well;
}

/// True if the call is refused, by a sentence that says why.
bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const ferry::invalid_argument& said) {
    if (std::strstr(said.what(), "forked") != nullptr) return true;
    std::printf("%s\n", said.what());
  }
  return false;
}

/// The objects that live while children are forked. Static, so that exit() destroys the child's copies.
struct living_objects {
  std::optional<table_type> table, batch;
  std::vector<std::int32_t> indices = std::vector<std::int32_t>(positions);
  ferry::row_plan plan;
  ferry::ticket gathered;
  std::optional<ferry::prefetcher<exec_space, source_type>> batches;
  std::optional<ferry::io::checkpoint> run;
};
living_objects objects;

void begin(const exec_space& exec) {
  objects.table.emplace("table", rows, width);
  objects.batch.emplace("batch", positions, width);
  ferry::init::uniform(exec, *objects.table, -1, 1, 7);
  for (std::size_t i = 0; i < positions; ++i) objects.indices[i] = static_cast<std::int32_t>(i * 5 % rows);
  objects.gathered = ferry::gather(exec, *objects.table, objects.indices, *objects.batch);
  objects.plan = ferry::make_plan(exec, objects.indices, rows);
}
void end() {
  objects.run.reset();
  objects.batches.reset();
  objects.gathered = {};
  objects.plan = {};
  objects.batch.reset();
  objects.table.reset();
}

void check_verbs(const exec_space& exec) {
  ferry::optim::adam adam;
  auto state = ferry::optim::make_state(adam, *objects.table);
  ferry::rowwise_int8_tensor<ferry::pageable_space> codes("codes", rows, width);
  ferry::quantize(exec, *objects.table, codes).wait();
  std::vector<std::int32_t> offsets(11);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int32_t>(i * positions / 10);
  table_type pooled("pooled", 10, width);
  const auto comm = ferry::communicator::threads(2);
  struct {
    const char* name;
    std::function<void()> call;
  } const calls[] = {
      {"gather", [&] { ferry::gather(exec, *objects.table, objects.indices, *objects.batch).wait(); }},
      {"staged",
       [&] {
         ferry::gather(exec, *objects.table, objects.indices, *objects.batch, ferry::path::staged{}).wait();
       }},
      {"small",
       [&] {
         ferry::gather(exec, *objects.table, std::vector<int>{1, 2}, objects.batch->first(2)).wait();
       }},
      {"plan", [&] { ferry::gather(exec, *objects.table, objects.plan, *objects.batch).wait(); }},
      {"scatter", [&] { ferry::scatter(exec, *objects.table, objects.indices, *objects.batch).wait(); }},
      {"scatter_add",
       [&] { ferry::scatter_add(exec, *objects.table, objects.indices, *objects.batch).wait(); }},
      {"step",
       [&] { ferry::step(exec, adam, *objects.table, state, objects.indices, *objects.batch).wait(); }},
      {"step with a plan",
       [&] { ferry::step(exec, adam, *objects.table, state, objects.plan, *objects.batch).wait(); }},
      {"make_plan", [&] { static_cast<void>(ferry::make_plan(exec, objects.indices, rows)); }},
      {"unique", [&] { static_cast<void>(ferry::unique(exec, objects.indices, rows)); }},
      {"copy", [&] { ferry::copy(exec, objects.table->first(positions), *objects.batch).wait(); }},
      {"clone", [&] { static_cast<void>(ferry::clone(exec, *objects.table).get()); }},
      {"gather into a new tensor",
       [&] {
         static_cast<void>(ferry::gather<ferry::pageable_space>(exec, *objects.table, objects.indices).get());
       }},
      {"zeros", [&] { ferry::init::zeros(exec, *objects.table); }},
      {"normal", [&] { ferry::init::normal(exec, *objects.table, 0, 1, 3); }},
      {"make_state", [&] { static_cast<void>(ferry::optim::make_state(adam, *objects.table)); }},
      {"grad_norm", [&] { static_cast<void>(ferry::optim::grad_norm(exec, *objects.batch).wait()); }},
      {"clip_grad_norm", [&] { ferry::optim::clip_grad_norm(exec, 1.0, *objects.batch).wait(); }},
      {"quantize", [&] { ferry::quantize(exec, *objects.table, codes).wait(); }},
      {"dequantize", [&] { ferry::dequantize(exec, codes, *objects.table).wait(); }},
      {"gather of codes", [&] { ferry::gather(exec, codes, objects.indices, *objects.batch).wait(); }},
      {"gather_bags",
       [&] { ferry::gather_bags(exec, *objects.table, objects.indices, offsets, pooled).wait(); }},
      {"after", [&] { ferry::after(exec, exec_space()); }},
      {"barrier", [&] { comm.run([&](int) { comm.barrier(); }); }},
  };
  const auto before = std::vector<float>(objects.table->data(), objects.table->data() + rows * width);
  for (const auto& entry : calls)
    FERRY_TEST_CHECK(ends_well(entry.name, [&] {
      return is_refused(entry.call) && state.steps() == 0 &&
             std::memcmp(objects.table->data(), before.data(), rows * width * sizeof(float)) == 0;
    }));
  // A handle of work that has ended is as good as the parent's, and memory can be read and allocated.
  FERRY_TEST_CHECK(ends_well("memory", [&] {
    table_type fresh("fresh", 10, 3);
    (*objects.batch)(0, 0) += 1;
    objects.gathered.wait();
    return true;
  }));
}

/// A save in the background that is still in flight at the fork. Returns whether it was.
bool check_save(const exec_space& exec, const std::string& path, int how) {
  const auto folder = path + "/save";
  objects.table.emplace("table", 25 * rows, width);
  ferry::init::constant(exec, *objects.table, how);
  objects.run.emplace(folder);
  objects.run->add("table", *objects.table);
  auto saving = objects.run->save_async(exec);
  const bool in_flight = !saving.ready();
  FERRY_TEST_CHECK(ends_well("save_async", [&] {
    bool well = true;
    if (how == 0) std::exit(0);
    if (how == 1) objects.run.reset();
    if (how == 2) saving = {};
    if (how == 3) saving.detach();
    if (how == 4 && in_flight)
      well = is_refused([&] { objects.run->save(); }) && is_refused([&] { objects.run->load(); }) &&
             is_refused([&] { saving.wait(); }) && saving.ready();
    if (how == 5) {  // the child keeps nobody out, and nobody in
      objects.run.reset();
      saving = {};
      ferry::io::checkpoint second(path + "/other");
      second.add("table", *objects.table);
      second.save();
    }
    if (how == 6) {
      *objects.run = ferry::io::checkpoint(path + "/third");
      objects.run.reset();
    }
    return well;
  }));
  saving.wait();
  objects.run.reset();
  table_type loaded("loaded", 25 * rows, width);
  ferry::io::checkpoint second(folder);
  second.add("table", loaded);
  second.load();
  second.save();
  bool whole = true;
  for (std::size_t i = 0; i < 25 * rows * width; ++i)
    whole = whole && loaded.data()[i] == static_cast<float>(how);
  FERRY_TEST_CHECK(whole);
  return in_flight;
}

void check_files(const std::string& path) {
  // Files that are being written when the process forks, and a lock of a folder.
  const auto name = path + "/array.npy";
  {
    auto file = std::make_unique<ferry::detail::atomic_file>("save_npy", name);
    auto data = std::make_unique<ferry::detail::piece_file>(path, 1);
    auto lock = std::make_unique<ferry::detail::folder_lock>(path);
    FERRY_TEST_CHECK(ends_well("files", [&] {
      file.reset();
      data.reset();
      lock.reset();
      return true;
    }));
    FERRY_TEST_CHECK(std::filesystem::exists(ferry::detail::data_path(path, 1)));
    bool locked = false;
    try {
      const ferry::detail::folder_lock second_lock(path);
    } catch (const ferry::io_error&) {
      locked = true;
    }
    FERRY_TEST_CHECK(locked);
    file->commit();
  }
  FERRY_TEST_CHECK(std::filesystem::exists(name));
}

void check_prefetcher(const exec_space& exec) {
  objects.batches.emplace(exec, ferry::samples_of(objects.indices),
                          ferry::prefetch_options{.batch = 5, .workers = 2});
  FERRY_TEST_CHECK(objects.batches->next().has_value());
  FERRY_TEST_CHECK(ends_well("prefetcher", [&] {
    const bool well = is_refused([&] { static_cast<void>(objects.batches->next()); }) &&
                      is_refused([&] { static_cast<void>(objects.batches->times()); });
    objects.batches.reset();
    return well;
  }));
  FERRY_TEST_CHECK(ends_well("exit with a prefetcher", []() -> bool { std::exit(0); }));
  FERRY_TEST_CHECK(objects.batches->next().has_value());
  objects.batches.reset();
}

/// Forks while other threads are anywhere in calls of ferry, with any of its locks.
void check_other_threads(const exec_space& exec) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      table_type mine("mine", 8, width);
      while (!stop) {
        ferry::gather(exec_space(), *objects.table, std::vector<int>{1, 2, 3}, mine.first(3)).wait();
        table_type second("other", 1000, 4);
        ferry::gather(exec_space(), *objects.table, std::vector<int>{4}, mine.first(1), ferry::path::staged{})
            .detach();
      }
    });
  for (int i = 0; i < 200; ++i)
    FERRY_TEST_CHECK(ends_well("other threads", [&] {
      const bool well =
          is_refused([&] { ferry::gather(exec, *objects.table, objects.indices, *objects.batch).wait(); });
      objects.gathered = {};
      objects.batch.reset();
      objects.table.reset();
      return well;
    }));
  stop = true;
  for (auto& item : threads) item.join();
}

/// A child that was forked before Kokkos::initialize has threads of its own.
bool check_early_child() {
  return ends_well("an early child", [] {
    Kokkos::initialize(Kokkos::InitializationSettings().set_num_threads(2));
    const exec_space exec;
    begin(exec);
    objects.gathered.wait();
    bool well = true;
    for (std::size_t i = 0; i < positions * width; ++i)
      well =
          well &&
          objects.batch->data()[i] ==
              objects.table->data()[static_cast<std::size_t>(objects.indices[i / width]) * width + i % width];
    end();
    Kokkos::finalize();
    return well;
  });
}

}  // namespace

int main() {
  FERRY_TEST_CHECK(check_early_child());
  Kokkos::initialize(Kokkos::InitializationSettings().set_num_threads(2));
  {
    const exec_space exec;
    FERRY_TEST_CHECK(ends_well("no verb before the fork", [&] {
      table_type table("table", rows, width);
      return is_refused([&] { ferry::init::zeros(exec, table); });
    }));
    begin(exec);
    check_verbs(exec);
    check_other_threads(exec);
    check_prefetcher(exec);
    std::string path = (std::filesystem::temp_directory_path() / "ferry_forked_XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return 1;
    check_files(path);
    int in_flight = 0;
    for (int how = 0; how < 7; ++how) in_flight += check_save(exec, path, how) ? 1 : 0;
    FERRY_TEST_CHECK(in_flight > 0);
    std::filesystem::remove_all(path);
    end();
    FERRY_TEST_CHECK(ends_well("exit", []() -> bool { std::exit(0); }));
  }
  Kokkos::finalize();
  return failures == 0 ? 0 : 1;
}
