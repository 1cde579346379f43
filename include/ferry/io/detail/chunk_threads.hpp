// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/function_ref.hpp>

#include <atomic>
#include <cstddef>

namespace ferry::detail {

/// Number of threads for the chunks of a checkpoint.
int chunk_threads();

/// Chunks that several threads take one after the other.
class chunk_counter {
 public:
  explicit chunk_counter(std::size_t count) : count_(count) {}

  /// False where none is left.
  [[nodiscard]] bool take(std::size_t& chunk) {
    chunk = next_++;
    return chunk < count_;
  }
  void stop() { next_ = count_; }

 private:
  std::size_t count_;
  std::atomic<std::size_t> next_{0};
};

/// Calls worker(chunks) by the calling thread and by threads that end with the call, at most `threads` in
/// all. They are not those of the worker pool: a save in the background may outlive Kokkos. After an error no
/// further chunk is given out; the first error is rethrown.
void share_chunks(std::size_t count, int threads, function_ref<void(chunk_counter&)> worker);

/// Calls work()(i) for each i in [0, count), see share_chunks: each thread calls work() once.
template <class Work>
void for_each_chunk(std::size_t count, int threads, const Work& work) {
  share_chunks(count, threads, [&](chunk_counter& chunks) {
    auto one = work();
    for (std::size_t i = 0; chunks.take(i);) one(i);
  });
}

}  // namespace ferry::detail
