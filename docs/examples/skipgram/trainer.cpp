// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

#include "kernels.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace skipgram {

namespace {

/// Pairs to rank: at least 50000, in whole batches.
std::int64_t enough_batches(std::size_t batch) {
  constexpr std::size_t enough = 50'000;
  return static_cast<std::int64_t>((enough + batch - 1) / batch * batch);
}

embedding_spec spec_of(const std::string& label, const corpus& text, const options& chosen, double spread) {
  return {label,      chosen.space,           chosen.path, chosen.optimizer, chosen.dtype, text.words.size(),
          chosen.dim, chosen.learning_rate(), spread,      chosen.seed};
}

/// Kokkos does not lock what it knows of a kernel on each device, so the threads of ranks launch in turn. ferry's
/// verbs do so by themselves.
std::mutex one_launches;

std::unique_ptr<embedding> make(const execution& exec, const rank_group* ranks, const embedding_spec& spec) {
  return ranks == nullptr ? make_embedding(exec, spec) : ranks->make_embedding(exec, spec);
}

}  // namespace

// As in word2vec, context vectors start at zero: before the first step all scores are equal and the ranking
// is random.
trainer::trainer(const execution& exec, const corpus& text, const options& chosen, const rank_group* ranks)
    : exec_(exec),
      text_(text),
      options_(chosen),
      ranks_(ranks),
      per_pair_(static_cast<std::int64_t>(chosen.negatives) + 1),
      noise_(exec, text.counts),
      held_out_(text, chosen, part::held_out, 0, enough_batches(chosen.batch)),
      centre_(make(exec, ranks, spec_of("centre", text, chosen, 0.5 / static_cast<double>(chosen.dim)))),
      context_(make(exec, ranks, spec_of("context", text, chosen, 0.0))) {}

epoch_report trainer::train(std::uint64_t epoch, progress_bar& progress) {
  const auto started = std::chrono::steady_clock::now();
  const epoch_pairs pairs(text_, options_, part::training, epoch);
  epoch_report report;
  double loss = 0.0;  // of this rank, to show
  pair_loader loader = load(exec_, pairs, options_);
  std::vector<std::int64_t> losses(static_cast<std::size_t>(loader.batches_per_epoch()));
  std::size_t collected = 0;
  const auto collect = [&](batch_slot& slot) {
    if (slot.in_flight.empty()) return;
    const totals counts = finish(slot);
    losses[collected++] = counts.sum;
    loss += static_cast<double>(counts.sum) / kernels::fixed_point_one;
    account(report, counts, static_cast<std::int64_t>(slot.pairs));
  };
  const auto batches = static_cast<double>(loader.batches_per_epoch());
  while (const auto words = loader.next()) {
    batch_slot& slot = slots_[static_cast<std::size_t>(words->number()) % 2];
    collect(slot);  // of the batch before the last
    fit(slot, part_of(words->rows()).second, true);
    enqueue(slot, *words, epoch, true);
    progress.show(static_cast<double>(words->number() + 1) / batches, report.pairs,
                  report.pairs == 0 ? 0.0 : loss / static_cast<double>(report.pairs));
  }
  // In the order of the batches: the last one but one first.
  const std::size_t next = collected % 2;
  collect(slots_[next]);
  collect(slots_[1 - next]);
  progress.clear();
  // Sums of integers by batch, then one sum over the batches: the same for every number of ranks.
  std::vector<std::int64_t> moved{report.pairs, report.rows, report.bytes};
  sum_over_ranks(losses);
  sum_over_ranks(moved);
  report.pairs = moved[0];
  report.rows = moved[1];
  report.bytes = moved[2];
  loss = 0.0;
  for (const std::int64_t loss_of_pair : losses)
    loss += static_cast<double>(loss_of_pair) / kernels::fixed_point_one;
  report.loss = report.pairs == 0 ? 0.0 : loss / static_cast<double>(report.pairs);
  if (report.loss > 1e3)
    throw std::runtime_error("the training has diverged, the mean loss is " + std::to_string(report.loss) +
                             "; try a smaller --lr (it is " + std::to_string(options_.learning_rate()) +
                             ") or a smaller --batch");
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

ranking trainer::rank_held_out() {
  ranking result;
  std::int64_t score = 0;
  pair_loader loader = load(exec_, held_out_, options_);
  while (const auto words = loader.next()) {
    batch_slot& slot = slots_[0];
    fit(slot, part_of(words->rows()).second, false);
    enqueue(slot, *words, 0, false);
    score += finish(slot).sum;
    result.pairs += static_cast<std::int64_t>(slot.pairs);
  }
  std::vector<std::int64_t> counts{score, result.pairs};
  sum_over_ranks(counts);
  score = counts[0];
  result.pairs = counts[1];
  const std::int64_t comparisons = result.pairs * (per_pair_ - 1);
  if (comparisons > 0) result.auc = static_cast<double>(score) / (2.0 * static_cast<double>(comparisons));
  return result;
}

word_vectors trainer::vectors() const {
  word_vectors vectors{std::vector<float>(text_.words.size() * options_.dim), options_.dim};
  centre_->copy_to(vectors.values).wait();
  return vectors;
}

/// The first pair of a batch that this rank works on, and how many.
std::pair<std::size_t, std::size_t> trainer::part_of(std::size_t pairs) const {
  if (ranks_ == nullptr) return {0, pairs};
  const auto [first, last] = ranks_->part_of(static_cast<std::int64_t>(pairs));
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)};
}

void trainer::sum_over_ranks(std::vector<std::int64_t>& numbers) const {
  if (ranks_ != nullptr) ranks_->sum(exec_, numbers);
}

/// The slot's memory is made once; only an epoch's last batch is smaller.
void trainer::fit(batch_slot& slot, std::size_t pairs, bool trains) {
  const bool fits = slot.pairs == pairs && (!trains || slot.centre_gradients.rows() == pairs);
  if (!fits)
    slot =
        batch_slot(ferry::device_of(exec_), pairs, static_cast<std::size_t>(per_pair_), options_.dim, trains);
}

/// Everything a batch does, in the order of the execution space instance. Nothing here waits for it but the
/// verbs on sharded tables, which meet the other ranks.
void trainer::enqueue(batch_slot& slot, const pair_batch& words, std::uint64_t epoch, bool trains) {
  const auto pairs = static_cast<std::int64_t>(slot.pairs);
  const std::size_t first = part_of(words.rows()).first;
  const auto [all_centres, all_contexts] = words.arrays();
  const auto centre_words = all_centres.rows_between(first, first + slot.pairs);
  const auto context_words = all_contexts.rows_between(first, first + slot.pairs);
  using range = Kokkos::RangePolicy<execution, Kokkos::IndexType<std::int64_t>>;
  std::unique_lock launching(one_launches);
  Kokkos::parallel_for("skipgram::draw_samples", range(exec_, 0, pairs * per_pair_),
                       kernels::draw_samples{centre_words.view(),
                                             context_words.view(),
                                             slot.samples.view(),
                                             noise_.view(),
                                             {options_.seed, options_.held_out},
                                             !trains,
                                             per_pair_,
                                             words.samples().front() + static_cast<std::int64_t>(first),
                                             epoch});
  launching.unlock();

  // Sorted once, used by gather and step alike.
  const auto centres = ferry::make_plan(exec_, centre_words, text_.words.size());
  const auto samples = ferry::make_plan(exec_, slot.samples, text_.words.size());
  slot.in_flight.push_back(centre_->gather(centres, slot.centre_rows));
  slot.in_flight.push_back(context_->gather(samples, slot.sample_rows));

  launching.lock();
  const auto teams = kernels::team_shape::policy(exec_, pairs);
  const auto centre_rows = std::as_const(slot.centre_rows).view();
  const auto sample_rows = std::as_const(slot.sample_rows).view();
  if (trains) {
    Kokkos::parallel_for(
        "skipgram::logistic_gradients", teams,
        kernels::logistic_gradients{std::as_const(slot.samples).view(), centre_rows, sample_rows,
                                    slot.centre_gradients.view(), slot.sample_gradients.view(),
                                    slot.values.view(), per_pair_});
    launching.unlock();
    slot.in_flight.push_back(centre_->step(centres, slot.centre_gradients));
    slot.in_flight.push_back(context_->step(samples, slot.sample_gradients));
    launching.lock();
  } else {
    Kokkos::parallel_for("skipgram::rank_context", teams,
                         kernels::rank_context{centre_rows, sample_rows, slot.values.view(), per_pair_});
  }

  using result = Kokkos::View<std::int64_t, execution::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::parallel_reduce("skipgram::sum_up", range(exec_, 0, pairs),
                          kernels::sum_up{std::as_const(slot.values).view(), centres.storage()->unique_count,
                                          samples.storage()->unique_count, slot.totals.view()},
                          result(slot.totals.data()));
  launching.unlock();
  slot.in_flight.push_back(ferry::copy(exec_, slot.totals, slot.totals_here));
}

/// Waits for the slot's batch; throws what its verbs found.
trainer::totals trainer::finish(batch_slot& slot) const {
  for (ferry::ticket& transfer : slot.in_flight) transfer.wait();
  slot.in_flight.clear();
  if (slot.pairs == 0) return {};
  const std::int64_t* counts = slot.totals_here.data();
  return {counts[0], counts[1], counts[2]};
}

/// A gather reads a row of the table and writes one of the batch; a step reads a gradient for each pair and
/// reads and writes weights and state of each different row once.
void trainer::account(epoch_report& report, const totals& counts, std::int64_t pairs) const {
  const auto batch_row = static_cast<std::int64_t>(options_.dim * sizeof(float));
  const auto add = [&](const embedding& table, std::int64_t positions, std::int64_t unique) {
    report.rows += positions + unique;
    report.bytes += positions * (table.weight_bytes() + batch_row);
    report.bytes += unique * 2 * (table.weight_bytes() + table.state_bytes()) + positions * batch_row;
  };
  add(*centre_, pairs, counts.unique_centres);
  add(*context_, pairs * per_pair_, counts.unique_samples);
  report.pairs += pairs;
}

}  // namespace skipgram
