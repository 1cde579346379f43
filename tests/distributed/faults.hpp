// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

/// Writes in which one rank passes something bad: a table of verbs and flaws. All ranks learn of it, nothing is
/// written anywhere, and the group serves on.
namespace ferry_test {

enum class flaw { none, index, twice, offset, late, few, many, wide, infinite, option };
enum class write_verb { scatter, reject, add, by_rank, step, bags, weighted, maxima };

struct faulty_write {
  write_verb verb;
  const char* name;
  std::vector<flaw> flaws;
};
inline std::vector<faulty_write> faulty_writes() {
  using enum flaw;
  return {{write_verb::scatter, "scatter", {index, wide, few}},
          {write_verb::reject, "scatter", {index, twice}},
          {write_verb::add, "scatter_add", {index, wide, few}},
          {write_verb::by_rank, "scatter_add", {index, wide}},
          {write_verb::step, "step", {index, wide, infinite, option}},
          {write_verb::bags, "step_bags", {index, offset, late, many, infinite}},
          {write_verb::weighted, "step_bags", {index, offset, few, infinite}},
          {write_verb::maxima, "step_bags", {index, offset, late, many, infinite}}};
}

/// A table and its state, and what a rank passes: four positions, in two bags. Rank 1 of three or more has none.
struct faulty_call {
  static constexpr std::size_t columns = 6;
  const exec_space first{};
  ferry::communicator comm;
  ferry::sharded_table<float, device> table;
  ferry::optim::adam rule{};
  std::shared_ptr<decltype(ferry::optim::make_state(rule, table))> state;
  std::vector<float> before;
  float value = 0.5f;  ///< of the batches; another one after each write

  explicit faulty_call(const ferry::communicator& group)
      : comm(group),
        table("w", group, 10 * static_cast<std::size_t>(group.size()) + 10, columns),
        state(
            std::make_shared<typename decltype(state)::element_type>(ferry::optim::make_state(rule, table))) {
    ferry::init::uniform(first, table, -1, 1, 5);
    before = contents(first, table);
  }
  [[nodiscard]] bool has_positions(int rank) const { return comm.size() < 3 || rank != 1; }

  /// The call of one rank, by a sharded_plan or by indices on its device or, of odd ranks, in host memory.
  void act(int rank, const exec_space& exec, write_verb verb, flaw wrong, bool planned,
           ferry::tensor<float, device>& weight_grads) {
    std::vector<std::int64_t> rows, offsets(3, 0);
    if (has_positions(rank)) {
      for (std::int64_t p = 1; p <= 4; ++p) rows.push_back(10 * rank + p);
      offsets = {0, 1, 4};
    }
    if (wrong == flaw::index) rows[2] = 7777;
    if (wrong == flaw::twice) rows[2] = rank == 0 ? 10 * comm.size() - 7 : 3;
    if (wrong == flaw::offset) offsets[1] = 9;
    if (wrong == flaw::late) offsets[0] = 1;
    const bool has_bags = verb >= write_verb::bags;
    const std::size_t count =
        has_bags ? (wrong == flaw::many ? 5 : 2) : rows.size() - (wrong == flaw::few ? 1 : 0);
    const auto target = comm.device(rank);
    ferry::tensor<float, device> values("values", target, count, columns + (wrong == flaw::wide ? 1 : 0));
    ferry::init::constant(exec, values,
                          wrong == flaw::infinite ? std::numeric_limits<float>::infinity() : value);
    const auto weights =
        on_device(exec, target,
                  std::vector<float>(has_bags && wrong == flaw::few ? 3 : rows.size(), rank == 0 ? -2 : 1));
    const ferry::optim::adam mine{.lr = wrong == flaw::option ? -1.0 : 0.1};
    constexpr ferry::nonfinite::reject reject{};
    const auto call = [&](const auto& named, const auto& bags) {
      switch (verb) {
        case write_verb::scatter:
          return ferry::scatter(exec, table, named, values).wait();
        case write_verb::reject:
          return ferry::scatter(exec, table, named, values, ferry::duplicates::reject{}).wait();
        case write_verb::add:
          return ferry::scatter_add(exec, table, named, values).wait();
        case write_verb::by_rank:
          return ferry::scatter_add(exec, table, named, values, ferry::reduce::by_rank{}).wait();
        case write_verb::step:
          return ferry::step(exec, mine, table, *state, named, values, reject).wait();
        case write_verb::bags:
          return ferry::step_bags(exec, mine, table, *state, named, bags, values, ferry::pooling::sum{},
                                  reject)
              .wait();
        case write_verb::weighted:
          return ferry::step_bags(exec, mine, table, *state, named, bags, values, weights, weight_grads,
                                  ferry::pooling::mean{}, reject)
              .wait();
        case write_verb::maxima:
          return ferry::step_bags(exec, mine, table, *state, named, bags, values, ferry::pooling::max{},
                                  reject)
              .wait();
      }
    };
    const auto list = on_device(exec, target, rows), bags = on_device(exec, target, offsets);
    if (planned)
      call(ferry::make_plan(exec, list, table), bags);
    else if (rank % 2 == 1)
      call(rows, offsets);
    else
      call(list, bags);
  }

  /// The kind and words of the error of a rank.
  [[nodiscard]] std::pair<std::string, std::string> expected(flaw wrong, int culprit, bool is_culprit) const {
    const std::string name = " of rank " + std::to_string(culprit);
    const std::string kind = is_culprit ? "own: " : "peer: ";
    switch (wrong) {
      case flaw::none:
        return {};
      case flaw::index:
        return {"range: ", "index 7777 at position 2" + name};
      case flaw::offset:
        return {"range: ", "offsets[1] = 9" + name};
      case flaw::late:
        return {"range: ", "offsets[0] = 1" + name};
      case flaw::twice:
        return {"own: ", "the lowest is row " + std::to_string(culprit == 0 ? 10 * comm.size() - 7 : 3)};
      case flaw::infinite:
        return {"own: ", name};
      case flaw::few:
        return {kind, "3"};
      case flaw::many:
        return {kind, "5"};
      case flaw::wide:
        return {kind, "'values'"};
      case flaw::option:
        return {kind, "lr"};
    }
    return {};
  }

  /// One call of all ranks, in which the culprit passes something bad.
  void check(const faulty_write& write, flaw wrong, int culprit, bool planned) {
    const std::string words = std::string(write.name) + " (" + std::to_string(static_cast<int>(write.verb)) +
                              "), flaw " + std::to_string(static_cast<int>(wrong)) + " of rank " +
                              std::to_string(culprit) + " of " + std::to_string(comm.size()) +
                              (planned ? ", planned" : "") + ": ";
    const auto steps = state->steps();
    run_ranks(comm, [&](int rank, const auto& exec) {
      ferry::tensor<float, device> weight_grads("weight_grads", comm.device(rank),
                                                has_positions(rank) ? 4 : 0);
      ferry::init::constant(exec, weight_grads, -77);
      const auto text = error_of(
          [&] { act(rank, exec, write.verb, rank == culprit ? wrong : flaw::none, planned, weight_grads); });
      const auto [kind, part] = expected(wrong, culprit, rank == culprit);
      expect(text.empty() == (wrong == flaw::none) && text.starts_with(kind) && has(text, part),
             words + text);
      if (kind == "peer: ") expect(has(text, "rank " + std::to_string(culprit) + " failed"), words + text);
      // One table looks for bad gradients when it steps, too: after the gradients of weights.
      if (wrong == flaw::none || wrong == flaw::infinite) return;
      std::vector<float> numbers(weight_grads.rows());
      if (!numbers.empty()) ferry::copy(exec, weight_grads, numbers).wait();
      expect(numbers == std::vector<float>(numbers.size(), -77), words + "gradients of weights");
    });
    const auto after = contents(first, table);
    expect((after == before) == (wrong != flaw::none), words + "the table");
    expect((state->steps() == steps) == (wrong != flaw::none || write.verb < write_verb::step),
           words + "steps");
    before = after;
    value += 0.25f;
  }
};

/// All lines of the table on a group of two ranks or more.
inline void check_faults(const ferry::communicator& comm) {
  faulty_call kit(comm);
  for (const auto& write : faulty_writes())
    for (const bool planned : {false, true}) {
      for (const flaw wrong : write.flaws)
        for (const int culprit : {0, comm.size() - 1}) kit.check(write, wrong, culprit, planned);
      kit.check(write, flaw::none, 0, planned);
    }
}

}  // namespace ferry_test
