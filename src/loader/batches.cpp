// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/batch_source.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/permutation.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace ferry {

permutation::permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) : size_(size) {
  if (size < 0)
    throw invalid_argument(detail::joined("ferry::permutation: the size is ", size, ", must be >= 0"));
  const auto last = static_cast<std::uint64_t>(size > 0 ? size - 1 : 0);
  half_ = (static_cast<int>(std::bit_width(last)) + 1) / 2;
  if (half_ == 0) half_ = 1;
  mask_ = (std::uint64_t{1} << half_) - 1;
  for (std::size_t round = 0; round < rounds; round += 2) {
    // Another stream of the seed than those of initial values.
    const auto bits = random::block_of(seed, epoch, static_cast<std::uint32_t>(0x70726d00u + round));
    keys_[round] = std::uint64_t{bits.word[0]} << 32 | bits.word[1];
    keys_[round + 1] = std::uint64_t{bits.word[2]} << 32 | bits.word[3];
  }
}

std::int64_t permutation::operator()(std::int64_t position) const {
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = mixed(value);
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

std::uint64_t permutation::mixed(std::uint64_t value) const {
  std::uint64_t left = value >> half_;
  std::uint64_t right = value & mask_;
  for (const std::uint64_t key : keys_) {
    // The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), which is enough to mix a half.
    std::uint64_t bits = right + key;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    bits ^= bits >> 31;
    left ^= bits & mask_;
    std::swap(left, right);
  }
  return left << half_ | right;
}

}  // namespace ferry

namespace ferry::detail {

batch_order::batch_order(std::int64_t samples, const prefetch_options& options, const char* user)
    : samples_(samples), options_(options), user_(user) {
  const auto complain = [user](const char* option, std::int64_t value, const std::string& range) {
    throw invalid_argument(joined("ferry::", user, ": ", option, " is ", value, ", must be ", range));
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
    complain("rank", options.rank, joined("from 0 to ", options.ranks - 1, ", below ranks"));
  if (options.timeout.count() < 0) complain("timeout", options.timeout.count(), ">= 0");
  if (options.batch > std::numeric_limits<std::int64_t>::max() / options.ranks)
    complain("batch", options.batch, "so small that batch x ranks is a number of 64 bits");
  step_ = options.batch * options.ranks;
  batches_ = samples / step_;
  if (options.last == last_batch::keep && samples % step_ != 0) ++batches_;
  if (options.first_batch < 0 || options.first_batch > all_batches())
    complain("first_batch", options.first_batch,
             joined("from 0 to ", all_batches(), ", the batches of all epochs"));
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

namespace {

constexpr auto most_slot_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

[[noreturn]] void refuse_slots(const char* user) {
  throw invalid_argument(
      joined("ferry::", user,
             ": the slots of the ring do not fit the address space; choose a smaller batch or depth"));
}

}  // namespace

void slot_layout::add(const batch_shape& shape, std::size_t element_bytes, std::int64_t batch) {
  std::vector<std::size_t> sizes{static_cast<std::size_t>(batch)};
  sizes.insert(sizes.end(), shape.extents.begin(), shape.extents.end());
  slot_field field;
  field.label = shape.label;
  field.extents = ferry::shape<dynamic_rank>::make({sizes.data(), sizes.size()}, shape.label, element_bytes);
  field.offset = bytes;
  field.row_bytes = field.extents.width() * element_bytes;
  const std::size_t more = (field.extents.size() * element_bytes + 255) / 256 * 256;
  fields.push_back(std::move(field));
  if (more > most_slot_bytes - bytes) refuse_slots(user);
  bytes += more;
}

slot_layout source_facts::layout(std::int64_t batch, const char* user) const {
  slot_layout layout;
  layout.user = user;
  for (std::size_t i = 0; i < element_bytes.size(); ++i) layout.add(fields[i], element_bytes[i], batch);
  return layout;
}

std::size_t slot_layout::bytes_of(std::size_t slots) const {
  if (bytes != 0 && slots > most_slot_bytes / bytes) refuse_slots(user);
  return bytes * slots;
}

batch_shape batch_shape_of(const untyped_array& table, const untyped_array& first) {
  const array_shape& shape = table.shape;
  if (shape.rank == 0 || !shape.has_dense_rows())
    throw invalid_argument("ferry::samples_of: " + table.note().describe() +
                           " has no rows, or its rows are strided; use ferry::copy to make a dense table");
  if (shape.rows() != first.shape.rows())
    throw invalid_argument("ferry::samples_of: " + table.note().describe() + " and " +
                           first.note().describe() + " differ in their number of rows");
  batch_shape field;
  field.label = shape.label;
  for (std::size_t i = 1; i < shape.rank; ++i)
    field.extents.push_back(static_cast<std::size_t>(shape.extents[i]));
  return field;
}

void take_rows(const batch_request& request, const untyped_array& table, std::byte* data) {
  if (table.shape.accesses != nullptr) table.shape.accesses->wait_for_writes();
  const std::size_t bytes = static_cast<std::size_t>(table.shape.width()) * table.element_bytes;
  if (bytes == 0) return;
  const std::int64_t stride = table.shape.row_stride() * static_cast<std::int64_t>(table.element_bytes);
  const auto* rows = static_cast<const std::byte*>(table.data);
  const auto& samples = request.samples;
  constexpr std::size_t distance = 8;  // random rows: the memory's latency counts
  for (std::size_t i = 0; i < samples.size(); ++i, data += bytes) {
#if defined(__GNUC__)
    if (i + distance < samples.size()) __builtin_prefetch(rows + samples[i + distance] * stride);
#endif
    std::memcpy(data, rows + samples[i] * stride, bytes);
  }
}

}  // namespace ferry::detail
