// SPDX-License-Identifier: Apache-2.0
// A paged cache of keys and values whose sequences outgrow device memory: blocks of idle sequences go to pinned
// memory and come back while a stand-in for a model computes on others.
//
//   kv_offload [STEPS [LAYERS]]
//
// The cache lies by layers on the device, [layers, 2, blocks, heads, tokens, dim], and by blocks on the host, [blocks,
// layers, 2, heads, tokens, dim]. One copy_rows moves the blocks of several sequences. The program compares every element
// with what a plain loop expects, and prints rates and the share of the copies that the model hides.
#include <ferry/ferry.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <random>
#include <string>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using element = ferry::half_t;
using clock_type = std::chrono::steady_clock;

struct cache_shape {
  std::size_t layers = 8, heads = 8, tokens = 16, dim = 64;
  std::size_t sequences = 48, sequence_blocks = 4,
              resident = 16;  // sequences, blocks of one, sequences on the device
  [[nodiscard]] std::size_t block_elements() const { return layers * 2 * heads * tokens * dim; }
};

/// The element of a block before any step: small integers, which halves add exactly.
KOKKOS_FUNCTION int first_value(std::int64_t block, std::int64_t position) {
  return static_cast<int>((block * 131 + position * 7) % 61);
}

/// Stand-in for a model: adds 1 to the blocks of the active sequences, after some arithmetic on each element.
struct model_step {
  element* cache;             ///< [layers, 2, blocks, heads, tokens, dim]
  const std::int64_t* slots;  ///< of the active blocks
  std::int64_t count, blocks, block_run, planes, work;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t element_offset = i % block_run, plane = i / block_run % planes,
                       item = i / block_run / planes;
    element& value = cache[(plane * blocks + slots[item]) * block_run + element_offset];
    float x = ferry::convert<float>(value);
    for (std::int64_t k = 0; k < work; ++k) x = x * 1.5F - x * 0.5F;  // exactly x
    value = ferry::convert<element>(x + 1.0F);
  }
};

/// Which sequences lie in the device's slots, the one used least recently in front.
class residents {
 public:
  explicit residents(const cache_shape& shape) : blocks_(static_cast<std::int64_t>(shape.sequence_blocks)) {
    first_slots_.assign(shape.sequences, -1);
    for (std::size_t s = 0; s < shape.resident; ++s) free_.push_back(static_cast<std::int64_t>(s) * blocks_);
  }

  [[nodiscard]] bool holds(int sequence) const {
    return first_slots_[static_cast<std::size_t>(sequence)] >= 0;
  }
  void touch(int sequence) {
    order_.remove(sequence);
    order_.push_back(sequence);
  }
  /// Gives a sequence slots. The lists receive its blocks and slots, and those of a sequence that leaves.
  struct move_lists {
    std::vector<std::int64_t> out_slots, out_blocks, in_blocks, in_slots;
  };
  void admit(int sequence, move_lists& moves) {
    if (free_.empty()) {
      const int victim = order_.front();
      order_.pop_front();
      list(victim, moves.out_blocks, moves.out_slots);
      free_.push_back(std::exchange(first_slots_[static_cast<std::size_t>(victim)], -1));
    }
    first_slots_[static_cast<std::size_t>(sequence)] = free_.back();
    free_.pop_back();
    list(sequence, moves.in_blocks, moves.in_slots);
    touch(sequence);
  }
  void list(int sequence, std::vector<std::int64_t>& blocks, std::vector<std::int64_t>& slots) const {
    for (std::int64_t b = 0; b < blocks_; ++b) {
      blocks.push_back(sequence * blocks_ + b);
      slots.push_back(first_slots_[static_cast<std::size_t>(sequence)] + b);
    }
  }
  [[nodiscard]] const std::list<int>& order() const { return order_; }

 private:
  std::int64_t blocks_;
  std::vector<std::int64_t> first_slots_;
  std::vector<std::int64_t> free_;
  std::list<int> order_;
};

class offload {
 public:
  explicit offload(const cache_shape& shape)
      : shape_(shape),
        mover_(Kokkos::Experimental::partition_space(model_, 1).at(0)),
        device_("device_cache", shape.layers, 2, shape.resident * shape.sequence_blocks, shape.heads,
                shape.tokens, shape.dim),
        host_("host_cache", shape.sequences * shape.sequence_blocks, shape.layers, 2, shape.heads,
              shape.tokens, shape.dim),
        steps_(shape.sequences, 0),
        residents_(shape) {
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const std::size_t run = shape.block_elements();
      host_.data()[i] = ferry::convert<element>(static_cast<float>(
          first_value(static_cast<std::int64_t>(i / run), static_cast<std::int64_t>(i % run))));
    }
  }

  /// Moves blocks out, then in, on the mover's instance.
  void move(const residents::move_lists& moves) {
    const ferry::duplicates::assume_unique unique;
    const auto device_rows = ferry::rows_along<2>(device_);
    auto device_targets = ferry::rows_along<2>(device_);
    auto host_targets = ferry::rows_along<0>(host_);
    const auto host_rows = ferry::rows_along<0>(host_);
    if (!moves.out_slots.empty())
      ferry::copy_rows(mover_, device_rows, moves.out_slots, host_targets, moves.out_blocks, unique).detach();
    if (!moves.in_slots.empty())
      ferry::copy_rows(mover_, host_rows, moves.in_blocks, device_targets, moves.in_slots, unique).detach();
    moved_ += (moves.out_slots.size() + moves.in_slots.size()) * shape_.block_elements() * sizeof(element);
  }

  void compute(const std::vector<int>& active, std::int64_t work) {
    std::vector<std::int64_t> blocks, slots;
    for (const int sequence : active) {
      residents_.list(sequence, blocks, slots);
      ++steps_[static_cast<std::size_t>(sequence)];
    }
    ferry::tensor<std::int64_t, ferry::device_space> list("slots", slots.size());
    ferry::copy(model_, slots, list).detach();
    const auto planes = static_cast<std::int64_t>(2 * shape_.layers);
    const auto block_run = static_cast<std::int64_t>(shape_.heads * shape_.tokens * shape_.dim);
    const auto count = static_cast<std::int64_t>(slots.size());
    Kokkos::parallel_for("model",
                         Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(
                             model_, 0, count * planes * block_run),
                         model_step{device_.data(), list.data(), count,
                                    static_cast<std::int64_t>(device_.extent(2)), block_run, planes, work});
    model_.fence("kv_offload::list");  // the list of slots lives until here
  }

  /// The sequences of each step; runs all steps. With `overlaps` blocks for the next step move while the model computes.
  double run(const std::vector<std::vector<int>>& schedule, bool overlaps, bool computes, bool copies,
             std::int64_t work) {
    moved_ = 0;
    const auto begin = clock_type::now();
    fetch(schedule.front(), copies);
    for (std::size_t step = 0; step < schedule.size(); ++step) {
      if (copies) ferry::after(model_, mover_);
      const bool has_next = step + 1 < schedule.size();
      for (const int sequence : schedule[step]) residents_.touch(sequence);
      if (overlaps && has_next) {
        if (copies) ferry::after(mover_, model_);
        fetch(schedule[step + 1], copies);
      }
      if (computes) compute(schedule[step], work);
      if (!overlaps && has_next) fetch(schedule[step + 1], copies);
    }
    mover_.fence("kv_offload::end");
    return std::chrono::duration<double>(clock_type::now() - begin).count();
  }

  /// Brings all blocks to the host and compares every element with its expected value.
  std::size_t wrong_elements() {
    residents::move_lists moves;
    for (const int sequence : residents_.order())
      residents_.list(sequence, moves.out_blocks, moves.out_slots);
    move(moves);
    mover_.fence("kv_offload::check");
    std::size_t wrong = 0;
    const std::size_t run = shape_.block_elements();
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const std::size_t block = i / run;
      const int expected = first_value(static_cast<std::int64_t>(block), static_cast<std::int64_t>(i % run)) +
                           steps_[block / shape_.sequence_blocks];
      if (ferry::convert<float>(host_.data()[i]) != static_cast<float>(expected)) ++wrong;
    }
    return wrong;
  }

  [[nodiscard]] double moved_bytes() const { return static_cast<double>(moved_); }

 private:
  /// Sequences of this step stay: they were touched last, and two steps fit.
  void fetch(const std::vector<int>& sequences, bool copies) {
    residents::move_lists moves;
    for (const int sequence : sequences)
      if (residents_.holds(sequence)) residents_.touch(sequence);
    for (const int sequence : sequences)
      if (!residents_.holds(sequence)) residents_.admit(sequence, moves);
    if (copies) move(moves);
  }

  cache_shape shape_;
  exec_space model_;
  exec_space mover_;
  ferry::tensor<element, ferry::device_space, ferry::dynamic_rank> device_;
  ferry::tensor<element, ferry::pinned_space, ferry::dynamic_rank> host_;
  std::vector<int> steps_;
  residents residents_;
  std::size_t moved_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 40;
  cache_shape shape;
  if (argc > 2) shape.layers = static_cast<std::size_t>(std::atoi(argv[2]));
  if (steps < 1 || steps > 1000 || shape.layers < 1) {
    std::fprintf(stderr, "usage: %s [STEPS (1 to 1000) [LAYERS]]\n", argv[0]);
    return 2;
  }

  // Six sequences a step, of 48: most are not on the device.
  std::mt19937 random(7);
  std::vector<std::vector<int>> schedule;
  std::vector<int> sequences(shape.sequences);
  for (std::size_t s = 0; s < sequences.size(); ++s) sequences[s] = static_cast<int>(s);
  for (int step = 0; step < steps; ++step) {
    std::shuffle(sequences.begin(), sequences.end(), random);
    schedule.emplace_back(sequences.begin(), sequences.begin() + 6);
  }

  offload cache(shape);
  cache.run(schedule, false, true, true, 1);  // first calls load kernels
  const double copy_seconds = cache.run(schedule, false, false, true, 0);
  const double bytes = cache.moved_bytes();
  // The model takes as long as the copies: its work is found by a first run.
  const double unit_seconds = cache.run(schedule, false, true, true, 20) - copy_seconds;
  const auto work =
      static_cast<std::int64_t>(20 * std::max(1.0, 1.2 * copy_seconds / std::max(unit_seconds, 1e-6)));
  const double in_turn = cache.run(schedule, false, true, true, work);
  const double together = cache.run(schedule, true, true, true, work);
  const std::size_t wrong = cache.wrong_elements();
  std::printf("%d steps, blocks of %.0f KiB: %.2f GiB moved at %.1f GB/s\n", steps,
              static_cast<double>(shape.block_elements() * sizeof(element)) / 1024, bytes / 0x1p30,
              bytes / copy_seconds * 1e-9);
  std::printf("in turn %.1f ms, together %.1f ms: %.0f %% of the copies are hidden\n", in_turn * 1e3,
              together * 1e3, 100 * std::clamp((in_turn - together) / copy_seconds, 0.0, 1.0));
  std::printf(wrong == 0 ? "all elements are right\n" : "%zu elements are wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
