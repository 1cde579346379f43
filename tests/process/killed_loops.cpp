// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>
#include <ferry/loader.hpp>

#include "check.hpp"

#include <Kokkos_Core.hpp>

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Processes that train are killed at chosen batches and at random moments, and started again until they end: the
/// weights, the state and all variables have the bits of a process that never stopped.
namespace {

constexpr std::int64_t rows = 600, width = 6, samples = 1000, batch = 16, epochs = 3;
constexpr std::int64_t batches_per_epoch = 63;  // the last one has 8 samples
constexpr std::int64_t all_batches = epochs * batches_per_epoch;
constexpr std::size_t room = 1 << 16;

/// The words of a training process, in memory that survives it.
struct shared_end {
  std::atomic<std::int64_t> position{-1};  ///< of the batch that is trained
  std::atomic<std::size_t> bytes{0};       ///< of the result; 0 until the end
  unsigned char result[room];
};

/// The moment of a batch at which a process kills itself.
enum class moment { before_step, after_step, after_save };

struct loop_options {
  std::string folder;
  int ahead = 1;
  bool in_background = false;
  std::int64_t dies_at = -1;
  moment dies = moment::after_step;
};

struct counters {
  std::int32_t version = 1;
  double sum = 0;
};

template <class T>
void append(shared_end& end, std::size_t& bytes, const T* data, std::size_t count) {
  if (bytes + count * sizeof(T) > room) std::_Exit(5);
  std::memcpy(end.result + bytes, data, count * sizeof(T));
  bytes += count * sizeof(T);
}

void train(const loop_options& options, shared_end& end) {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::optim::adam adam{.lr = 0.05};
  ferry::tensor<float, ferry::pageable_space> table("table", rows, width);
  ferry::init::normal(exec, table, 0.0, 1.0, 3);
  auto state = ferry::optim::make_state(adam, table);
  std::int64_t position = 0;
  std::mt19937 engine(5);
  std::normal_distribution<float> noise;
  std::vector<float> losses;  // grows
  std::string note = "begin";
  counters counts;
  const std::int64_t size = samples;
  ferry::io::checkpoint run(options.folder, {.keep = 3});
  run.add("table", table);
  run.add("adam", adam, state);
  run.add("position", position);
  run.add("engine", engine);
  run.add("noise", noise);
  run.add("losses", losses);
  run.add("note", note);
  run.add("counts", counts, "counters 1");
  run.add("samples", size);
  if (run.exists()) run.load();
  if (static_cast<std::int64_t>(losses.size()) != position) std::_Exit(6);

  std::vector<std::int64_t> ids(static_cast<std::size_t>(2 * samples));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * i % rows);
  const auto source = ferry::made_by(
      samples,
      [&](const ferry::batch_request& request, std::span<std::int64_t> pairs) {
        for (std::size_t i = 0; i < pairs.size(); ++i)
          pairs[i] = ids[static_cast<std::size_t>(request.samples[i / 2]) * 2 + i % 2];
      },
      ferry::batch_field<std::int64_t>("pair", 2));
  ferry::tensor<float, ferry::pageable_space> grads("grads", 2 * batch, width);
  const auto dies = [&](std::int64_t place, moment now) {
    if (place == options.dies_at && now == options.dies) ::raise(SIGKILL);
  };
  ferry::row_prefetcher batches(exec, table, source,
                                {.batch = batch,
                                 .workers = 2,
                                 .shuffle = 17,
                                 .epochs = epochs,
                                 .first_batch = position,
                                 .ahead = options.ahead});
  for (std::int64_t epoch = position / batches_per_epoch; epoch < epochs; ++epoch)
    while (auto got = batches.next()) {
      end.position = position;
      if (got->epoch() != epoch) std::_Exit(7);
      dies(position, moment::before_step);
      std::vector<float> gathered(got->gathered().size());
      ferry::copy(exec, got->gathered(), gathered).wait();
      float loss = 0;
      for (std::size_t i = 0; i < gathered.size(); ++i) {
        loss += gathered[i] * gathered[i];
        grads.data()[i] = gathered[i] + 0.125F * noise(engine);
      }
      ferry::step(exec, adam, table, state, got->plan(), grads.first(got->gathered().rows())).wait();
      position = batches.position();
      losses.push_back(loss);
      note = "batch " + std::to_string(position);
      counts.sum += loss;
      dies(position - 1, moment::after_step);
      if (position % 3 == 0) {
        if (options.in_background)
          run.save_async(exec, {.changes = position % 2 == 0 && position > 3}).wait();
        else
          run.save({.changes = position % 2 == 0 && position > 3});
      }
      if (position % 50 == 0) run.save("fifty");
      dies(position - 1, moment::after_save);
    }
  std::size_t bytes = 0;
  append(end, bytes, table.data(), table.size());
  for (int f = 0; f < state.fields(); ++f) {
    std::vector<float> field(state.field(f).size());
    ferry::copy(exec, state.field(f), field).wait();
    append(end, bytes, field.data(), field.size());
  }
  append(end, bytes, losses.data(), losses.size());
  append(end, bytes, note.data(), note.size());
  append(end, bytes, &counts.sum, 1);
  append(end, bytes, &position, 1);
  const std::uint64_t next = engine();
  append(end, bytes, &next, 1);
  end.bytes = bytes;
}

/// Runs a training process; kills it after `microseconds` unless these are negative. True if it has ended well.
bool ended(const loop_options& options, shared_end& end, std::int64_t microseconds) {
  end.position = -1;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    ::alarm(120);
    try {
      Kokkos::initialize();
      train(options, end);
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "%s\n", lost.what());
      std::fflush(nullptr);
      std::_Exit(3);
    }
    std::_Exit(0);
  }
  int status = 0;
  if (microseconds >= 0) {
    while (end.position < 0 && ::waitpid(child, &status, WNOHANG) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    ::kill(child, SIGKILL);
  }
  ::waitpid(child, &status, 0);
  FERRY_TEST_CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                   (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<unsigned char> result_of(const shared_end& end) { return {end.result, end.result + end.bytes}; }

}  // namespace

int main() {
  std::string root =
      (std::getenv("TMPDIR") != nullptr ? std::string(std::getenv("TMPDIR")) : std::string("/tmp")) +
      "/ferry_loops_XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) return 1;
  void* const memory =
      ::mmap(nullptr, sizeof(shared_end), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& end = *new (memory) shared_end;
  FERRY_TEST_CHECK(ended({root + "/whole"}, end, -1));
  const auto whole = result_of(end);
  FERRY_TEST_CHECK(whole.size() > rows * width * 3 * sizeof(float));

  // At chosen batches: the first and the last of an epoch, some between, around saves.
  int kills = 0;
  for (const int ahead : {1, 4})
    for (const moment dies : {moment::before_step, moment::after_step, moment::after_save}) {
      end.bytes = 0;
      loop_options options{root + "/chosen-" + std::to_string(kills), ahead, ahead == 4};
      options.dies = dies;
      for (const std::int64_t place : {0, 1, 2, 3, 31, 61, 62, 63, 64, 125, 126, 150, 187, 188}) {
        options.dies_at = place;
        FERRY_TEST_CHECK(!ended(options, end, -1));
        ++kills;
      }
      options.dies_at = -1;
      FERRY_TEST_CHECK(ended(options, end, -1));
      FERRY_TEST_CHECK(result_of(end) == whole);
    }

  // At random moments, within saves and loads, too.
  std::mt19937 random(std::random_device{}());
  for (const bool in_background : {false, true}) {
    end.bytes = 0;
    const loop_options options{root + (in_background ? "/background" : "/random"), 2, in_background};
    for (int kill = 0; kill < 25 && end.bytes == 0; ++kill, ++kills)
      static_cast<void>(ended(options, end, std::uniform_int_distribution<std::int64_t>(0, 60000)(random)));
    FERRY_TEST_CHECK(ended(options, end, -1));
    FERRY_TEST_CHECK(result_of(end) == whole);
  }
  std::printf("%d kills of %lld batches\n", kills, static_cast<long long>(all_batches));
  std::filesystem::remove_all(root);
  return failures == 0 ? 0 : 1;
}
