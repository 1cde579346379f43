// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

#include <ferry/compat/optimizer_factory.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ferry_bench {
namespace {

/// The workload that SpeedTorch was made for: 131072 random rows of 128 floats, out of tables of half a gigabyte and of
/// ten, the sizes that peers/gather.py takes by itself.
template <class Space, class Path>
void time_size(session& run, const std::string& name, double gigabytes, Path path) {
  const bool quick = run.chosen().quick;
  const auto bytes = static_cast<std::size_t>(gigabytes * (quick ? 1e7 : 1e9));
  if (!quick && bytes > run.host_table_bytes())
    return run.results().skipped(name, "the table is larger than those of this run");
  const auto width = run.chosen().width;
  filled_table<Space> table(run, bytes);
  const auto view = table.rows_of(width * 4);
  const auto sets = index_sets::make<any_row>(run, run.chosen().step_n, view.rows());
  batch_tensor batch("batch", run.chosen().step_n, width);
  facts setting = table.setting();
  setting.emplace_back("width", width);
  setting.emplace_back("path", std::string(path.name));
  time_gather(run, name, setting, view, sets, batch, 1, over_the_link(), path);
}

void speedtorch(session& run) {
  for (const auto& [text, gigabytes] : {std::pair{"0.5GB", 0.5}, std::pair{"10GB", 10.0}}) {
    time_size<ferry::mapped_space>(run, std::string("speedtorch.mapped.") + text, gigabytes,
                                   ferry::path::direct{});
    time_size<ferry::pinned_space>(run, std::string("speedtorch.pinned.") + text, gigabytes,
                                   ferry::path::automatic{});
  }
}

/// Calls of `work`, one at a time, each after a `prepare` of its own that is not timed.
template <class Prepare, class Work>
measured measure_prepared(const session& run, const Prepare& prepare, const Work& work) {
  const int warm_up = run.chosen().warm_up, repeats = run.chosen().repeats;
  stopwatch watch(run.exec());
  measured reading;
  for (int call = 0; call < warm_up + 2 * repeats; ++call) {
    prepare(call);
    if (call < warm_up) {
      work(call).wait();
    } else if (call < warm_up + repeats) {
      const auto begin = std::chrono::steady_clock::now();
      work(call).wait();
      reading.wall.add(1e3 * seconds_since(begin));
    } else {
      watch.start();
      auto ticket = work(call);
      reading.device.add(watch.stop());
      ticket.wait();
    }
  }
  return reading;
}

/// sent(inputs[p], c) must be what the table's formula gives for (rows[p], c): what a loop relies on.
struct wrong_sent {
  const float* sent;
  const std::int64_t* inputs;
  const std::int64_t* rows;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t position = i / expected.width, column = i % expected.width;
    if (sent[inputs[position] * expected.width + column] != expected(rows[position], column)) ++wrong;
  }
};

/// SpeedTorch's loop: the rows of a batch visit the device before the forward pass and go back after the
/// optimizer's step. Every batch has other rows. The loop has its indices on the host; `.device_indices` is
/// the call with indices in device memory.
template <class Space>
class switchers {
 public:
  switchers(session& run, std::string end, std::int64_t rows)
      : run_(run),
        end_(std::move(end)),
        width_(run.chosen().width),
        model_("words", static_cast<std::size_t>(rows), static_cast<std::size_t>(width_)),
        sets_(index_sets::make<any_row>(run, run.chosen().step_n, static_cast<std::size_t>(rows))) {
    for (int s = 0; s < sets_.count(); ++s) listed_.push_back(to_host(sets_[s]));
    model_.custom_init(run.exec(), element_value{width_});
  }

  void time_model() {
    const auto& exec = run_.exec();
    const auto check = [&] {
      ferry::init::custom(exec, model_.weight(), poison_value{});
      send(1);
      return wrong_rows_of(model_.weight(), 0);
    };
    const auto nothing = [](int) {};
    time(
        "model.before_forward_pass", "", "host", 1, over_the_link(), nothing,
        [&](int call) { return model_.before_forward_pass(exec, listed(call)); }, check);
    time(
        "model.before_forward_pass", ".device_indices", "device", 1, over_the_link(), nothing,
        [&](int call) { return model_.before_forward_pass(exec, sets_[call]); }, check);
    time(
        "model.after_optimizer_step", "", "plan", 1, back_over_the_link(), [&](int call) { send(call); },
        [&](int) { return model_.after_optimizer_step(exec); },
        [&] {
          const std::int64_t changed = changed_in(model_.table(), 0);
          send(1);
          ferry::init::custom(exec, model_.weight(), element_value{width_, 1});
          model_.after_optimizer_step(exec).wait();
          return changed + wrong_rows_in(model_.table(), 1);
        });
  }

  /// The two moments of SparseAdam. The rows are those of the model's plan, whose making is not timed again.
  void time_optimizer() {
    const auto& exec = run_.exec();
    ferry::speedtorch::optimizer_factory adam(ferry::optim::sparse_adam{}, model_);
    const int fields = adam.fields();
    const auto salt = [](int field) { return static_cast<std::uint64_t>(2 + field); };
    for (int i = 0; i < fields; ++i) ferry::init::custom(exec, adam.field(i), element_value{width_, salt(i)});
    time(
        "optimizer.before_forward_pass", "", "plan", fields, over_the_link(), [&](int call) { send(call); },
        [&](int) { return adam.before_forward_pass(exec); },
        [&] {
          std::int64_t wrong = 0;
          for (int i = 0; i < fields; ++i) ferry::init::custom(exec, adam.rows(i), poison_value{});
          send(1);
          adam.before_forward_pass(exec).wait();
          for (int i = 0; i < fields; ++i) wrong += wrong_rows_of(adam.rows(i), salt(i));
          return wrong;
        });
    const auto send_both = [&](int call) {
      send(call);
      adam.before_forward_pass(exec).wait();
    };
    time(
        "optimizer.after_optimizer_step", "", "plan", fields, back_over_the_link(), send_both,
        [&](int) { return adam.after_optimizer_step(exec); },
        [&] {
          std::int64_t wrong = 0;
          for (int i = 0; i < fields; ++i) wrong += changed_in(adam.field(i), salt(i));
          send_both(1);
          for (int i = 0; i < fields; ++i)
            ferry::init::custom(exec, adam.rows(i), element_value{width_, salt(fields + i)});
          adam.after_optimizer_step(exec).wait();
          for (int i = 0; i < fields; ++i) wrong += wrong_rows_in(adam.field(i), salt(fields + i));
          return wrong;
        });
  }

 private:
  /// `check` moves the rows of set 1 once more and returns the number of wrong elements.
  template <class Prepare, class Work, class Check>
  void time(const std::string& verb, const std::string& way, const std::string& indices, int fields,
            const traffic& moved, const Prepare& prepare, const Work& work, const Check& check) {
    figure result;
    result.name = "speedtorch." + verb + end_ + way;
    result.ceiling = run_.ceiling(moved.ceiling);
    result.time = measure_prepared(run_, prepare, work);
    const std::int64_t wrong = check();
    const std::int64_t distinct = model_.plan().unique_count();
    result.setting = {{"space", std::string(Space::name)},
                      {"memory", model_.table().describe()},
                      {"table_gib", static_cast<double>(model_.table().size()) * 4 / 0x1p30},
                      {"rows", static_cast<std::int64_t>(model_.table().rows())},
                      {"width", width_},
                      {"n", static_cast<std::int64_t>(sets_[1].size())},
                      {"distinct", distinct},
                      {"row_bytes", 4 * width_},
                      {"tables", std::int64_t{fields}},
                      {"indices", indices},
                      {"burst", std::int64_t{1}}};
    result.bytes = 4.0 * static_cast<double>(width_ * distinct * fields);
    result.counts = "payload, distinct rows";
    conclude(run_, result, wrong);
  }

  [[nodiscard]] const std::vector<std::int64_t>& listed(int call) const {
    return listed_[static_cast<std::size_t>(call) % listed_.size()];
  }
  void send(int call) { model_.before_forward_pass(run_.exec(), listed(call)).wait(); }

  template <class Rows>
  std::int64_t wrong_rows_of(const Rows& sent, std::uint64_t salt) const {
    return count_of(run_.exec(), "ferry_bench::check", static_cast<std::int64_t>(sets_[1].size()) * width_,
                    wrong_sent{sent.data(), model_.positive_inputs().data(), sets_[1].data(),
                               element_value{width_, salt}});
  }
  template <class Table>
  std::int64_t wrong_rows_in(const Table& table, std::uint64_t salt) const {
    return count_of(run_.exec(), "ferry_bench::check", static_cast<std::int64_t>(sets_[1].size()) * width_,
                    wrong_scattered{table.data(), sets_[1].data(), model_.positive_inputs().data(),
                                    element_value{width_, salt}});
  }
  template <class Table>
  std::int64_t changed_in(const Table& table, std::uint64_t salt) const {
    return count_of(run_.exec(), "ferry_bench::check", static_cast<std::int64_t>(table.size()),
                    changed_elements{table.data(), element_value{width_, salt}});
  }

  session& run_;
  std::string end_;
  std::int64_t width_;
  ferry::speedtorch::model_factory<float, Space> model_;
  index_sets sets_;
  std::vector<std::vector<std::int64_t>> listed_;
};

template <class Space>
void time_switchers(session& run, const std::string& end, double gigabytes) {
  const bool quick = run.chosen().quick;
  const double bytes = gigabytes * (quick ? 1e7 : 1e9);
  const auto room = static_cast<double>(run.host_table_bytes());
  if (!quick && bytes > room)
    return run.results().skipped("speedtorch.model" + end, "the table is larger than those of this run");
  switchers<Space> pair(run, end, static_cast<std::int64_t>(bytes) / (4 * run.chosen().width));
  pair.time_model();
  // A table of the run has at most half of what was free, unless its size was given: two of them fit.
  if (!quick && 3 * bytes > 2 * room)
    return run.results().skipped("speedtorch.optimizer" + end,
                                 "table and state are larger than two tables of this run");
  pair.time_optimizer();
}

void loop(session& run) {
  for (const auto& [text, gigabytes] : {std::pair{".0.5GB", 0.5}, std::pair{".10GB", 10.0}}) {
    time_switchers<ferry::mapped_space>(run, std::string(".mapped") + text, gigabytes);
    time_switchers<ferry::pinned_space>(run, std::string(".pinned") + text, gigabytes);
  }
}

const registration mine{"speedtorch", speedtorch};
const registration looped{"speedtorch.loop", loop};

}  // namespace
}  // namespace ferry_bench
