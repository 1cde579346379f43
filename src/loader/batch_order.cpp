// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/batch_order.hpp>

#include <ferry/error.hpp>
#include <ferry/loader/permutation.hpp>

#include <algorithm>
#include <limits>

namespace ferry::detail {

batch_order::batch_order(std::int64_t samples, const prefetch_options& options, const char* user)
    : samples_(samples), options_(options), user_(user) {
  const auto complain = [user](const char* option, std::int64_t value, const std::string& range) {
    throw invalid_argument(std::string("ferry::") + user + ": " + option + " is " + std::to_string(value) +
                           ", must be " + range);
  };
  if (samples < 0) complain("the number of samples of the source", samples, ">= 0");
  if (options.batch < 1) complain("batch", options.batch, ">= 1");
  if (options.workers < 1 || options.workers > 1024) complain("workers", options.workers, "from 1 to 1024");
  if (options.depth < 0 || options.depth == 1 || options.depth > 4096)
    complain("depth", options.depth, "0 or from 2 to 4096");
  if (options.epochs < 0) complain("epochs", options.epochs, ">= 0");
  if (options.first_epoch < 0) complain("first_epoch", options.first_epoch, ">= 0");
  if (options.ranks < 1) complain("ranks", options.ranks, ">= 1");
  if (options.rank < 0 || options.rank >= options.ranks)
    complain("rank", options.rank, "from 0 to " + std::to_string(options.ranks - 1) + ", below ranks");
  if (options.timeout.count() < 0) complain("timeout", options.timeout.count(), ">= 0");
  if (options.batch > std::numeric_limits<std::int64_t>::max() / options.ranks)
    complain("batch", options.batch, "so small that batch x ranks is a number of 64 bits");
  step_ = options.batch * options.ranks;
  batches_ = samples / step_;
  if (options.last == last_batch::keep && samples % step_ != 0) ++batches_;
  if (options.first_batch < 0 || options.first_batch > all_batches())
    complain("first_batch", options.first_batch,
             "from 0 to " + std::to_string(all_batches()) + ", the batches of all epochs");
}

std::string batch_order::message(const char* text) const {
  return std::string("ferry::") + user_ + ": " + text;
}

std::int64_t batch_order::all_batches() const {
  constexpr auto endless = std::numeric_limits<std::int64_t>::max();
  if (batches_ == 0) return 0;
  return options_.epochs == 0 || options_.epochs > endless / batches_ ? endless : options_.epochs * batches_;
}

void batch_order::list(std::int64_t batch, std::vector<std::int64_t>& samples) const {
  const std::int64_t first = batch % batches_ * step_;
  const std::int64_t batch_samples = std::min(step_, samples_ - first);
  const std::int64_t begin = first + share(batch_samples, options_.rank);
  const std::int64_t count = first + share(batch_samples, options_.rank + 1) - begin;
  samples.resize(static_cast<std::size_t>(count));
  if (options_.shuffle) {
    const permutation order(samples_, *options_.shuffle, static_cast<std::uint64_t>(epoch_of(batch)));
    for (std::int64_t i = 0; i < count; ++i) samples[static_cast<std::size_t>(i)] = order(begin + i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) samples[static_cast<std::size_t>(i)] = begin + i;
  }
}

std::int64_t batch_order::share(std::int64_t count, std::int64_t rank) const {
  return count / options_.ranks * rank + count % options_.ranks * rank / options_.ranks;
}

}  // namespace ferry::detail
