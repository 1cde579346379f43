// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// A piece of work that a host thread posts for the device: items [first, first + count) of the verb's list.
struct ring_post {
  std::int64_t first;
  std::int64_t count;
  std::int64_t holes;  ///< not 0: some items have no row
};

/// The words by which one host worker and one team of the device pass slots to each other, in page-locked
/// memory. Host and device write different words, on separate cache lines.
struct ring_words {
  static constexpr int depth = 4;  ///< slots, at most

  alignas(64) std::int64_t posted;       ///< twice the number of posts, plus one after the last
  alignas(64) std::int64_t completions;  ///< posts that the device has finished
  alignas(64) ring_post posts[depth];
  alignas(64) std::int64_t begun;  ///< used by the host alone: the worker has begun, or its posts were ended
};

/// The device's side of a ring: moves the items of one post after the other between its slot and device
/// memory, until the worker declares the end. The mover knows where items are on the device:
///
///   unit, wide                  a thread moves one unit at a time, or an opaque16 if `wide` is set
///   units()                     units per item
///   load<unit>(slot, post, i)   unit i of the post's items
///   store<unit>(slot, post, i, value)
///
/// Device mapping: one team per worker. The team's threads take neighbouring units; each has four loads in
/// flight, since a load over the link takes one to two microseconds. One thread polls for posts.
///
/// This kernel waits for the host. Kernel launches block under tools that serialise kernels, so a thread that
/// the kernel does not wait for must launch it. It is not launched through Kokkos, which fences if a tool
/// listens.
template <class Exec, class Mover>
struct serve_ring {
  using link = execution_backend<Exec>;
  static constexpr int at_once = 4;

  Mover mover;
  ring_words* words;
  std::byte* slots;
  std::int64_t slot_bytes;
  int depth;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    ring_words& team_words = words[team.league_rank()];
    std::byte* ring = slots + team.league_rank() * depth * slot_bytes;
    for (std::int64_t k = 0;; ++k) {
      ring_post post{0, 0, 0};
      if (team.team_rank() == 0) post = wait_for(team_words, k);
      team.team_broadcast(post, 0);
      if (post.count == 0) return;
      std::byte* const slot = ring + k % depth * slot_bytes;
      if (mover.wide)
        move<opaque16>(team, slot, post);
      else
        move<typename Mover::unit>(team, slot, post);
      link::fence_link();
      team.team_barrier();
      if (team.team_rank() != 0) continue;
      link::fence_link();
      *static_cast<volatile std::int64_t*>(&team_words.completions) = k + 1;
    }
  }

 private:
  KOKKOS_FUNCTION static ring_post wait_for(const ring_words& team_words, std::int64_t k) {
    std::int64_t posted = 0;
    do {
      posted = *static_cast<const volatile std::int64_t*>(&team_words.posted);
    } while (posted / 2 <= k && posted % 2 == 0);
    if (posted / 2 <= k) return ring_post{0, 0, 0};
    link::fence_link();
    return link::read_over_link(&team_words.posts[k % ring_words::depth]);
  }

  template <class Unit, class Team>
  KOKKOS_FUNCTION void move(const Team& team, std::byte* slot, const ring_post& post) const {
    const std::int64_t total = post.count * mover.units();
    const std::int64_t size = team.team_size();
    for (std::int64_t begin = team.team_rank(); begin < total; begin += at_once * size) {
      Unit unit[at_once];
      for (int u = 0; u < at_once; ++u)
        if (begin + u * size < total) unit[u] = mover.template load<Unit>(slot, post, begin + u * size);
      for (int u = 0; u < at_once; ++u)
        if (begin + u * size < total) mover.template store<Unit>(slot, post, begin + u * size, unit[u]);
    }
  }
};

/// Sets a word in page-locked memory when all work enqueued before has ended. Launched like serve_ring.
template <class Exec>
struct raise_word {
  std::int64_t* word;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    execution_backend<Exec>::fence_link();
    if (team.team_rank() == 0) *static_cast<volatile std::int64_t*>(word) = 1;
  }
};

/// Serves one post with all threads of an instance, for host backends, which have no link to overlap with.
template <class Mover>
struct serve_post {
  Mover mover;
  std::byte* slot;
  ring_post post;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (mover.wide)
      move<opaque16>(i);
    else
      move<typename Mover::unit>(i);
  }

 private:
  template <class Unit>
  KOKKOS_FUNCTION void move(std::int64_t i) const {
    mover.template store<Unit>(slot, post, i, mover.template load<Unit>(slot, post, i));
  }
};

/// Moves items from a slot: item k goes to row source.position(k) of `out`, unless source.row(k) says that it
/// has none. Stride and width are in units.
template <class Exec, class Unit, class Source>
struct rows_from_slot {
  using unit = Unit;
  void* out;
  std::int64_t out_stride;
  detail::fast_divisor width;
  Source source;
  bool wide;

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t units() const { return width.divisor(); }
  template <class Any>
  KOKKOS_FUNCTION Any load(const std::byte* slot, const ring_post&, std::int64_t i) const {
    return execution_backend<Exec>::read_over_link(reinterpret_cast<const Any*>(slot) + i);
  }
  template <class Any>
  KOKKOS_FUNCTION void store(std::byte*, const ring_post& post, std::int64_t i, const Any& value) const {
    const std::int64_t number = width.quotient(i);
    const std::int64_t item = post.first + number;
    if (post.holes != 0 && source.row(item, false) < 0) return;
    static_cast<Any*>(out)[source.position(item) * out_stride + (i - number * width.divisor())] = value;
  }
};

/// Moves items to a slot: item k is row source.row(k) of `table`. The place of an item without a row keeps
/// its contents. Stride and width are in units.
template <class Unit, class Source>
struct rows_to_slot {
  using unit = Unit;
  const void* table;
  std::int64_t table_stride;
  detail::fast_divisor width;
  Source source;
  bool wide;

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t units() const { return width.divisor(); }
  template <class Any>
  KOKKOS_FUNCTION Any load(const std::byte*, const ring_post& post, std::int64_t i) const {
    const std::int64_t number = width.quotient(i);
    const std::int64_t row = source.row(post.first + number, false);
    return row < 0 ? Any{}
                   : static_cast<const Any*>(table)[row * table_stride + (i - number * width.divisor())];
  }
  template <class Any>
  KOKKOS_FUNCTION void store(std::byte* slot, const ring_post&, std::int64_t i, const Any& value) const {
    reinterpret_cast<Any*>(slot)[i] = value;
  }
};

}  // namespace ferry::kernels
