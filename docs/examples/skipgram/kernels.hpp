// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"
#include "noise.hpp"
#include "pair_loader.hpp"
#include "sampling.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>

/// The model's kernels: named functors, launched by trainer.cpp. A pair of words has `per_pair` samples: its
/// context word first, then the noise words.
namespace skipgram::kernels {

template <class T>
using device_view = ferry::tensor_view<T, ferry::device_space>;
using team_policy = Kokkos::TeamPolicy<execution, Kokkos::IndexType<std::int64_t>>;
using team_member = team_policy::member_type;

/// How teams are cut: on a device one warp for each pair, four of them in a team; on the host one thread for
/// a run of pairs, whose loops over columns the compiler vectorises.
struct team_shape {
  static constexpr bool on_host = ferry::HostExecutionSpace<execution>;
  static constexpr int threads = on_host ? 1 : 4;
  static constexpr int lanes = on_host ? 1 : 32;
  static constexpr int pairs = on_host ? 64 : 4;

  static team_policy policy(const execution& exec, std::int64_t count) {
    return {exec, static_cast<int>((count + pairs - 1) / pairs), threads, lanes};
  }
};

/// Losses and scores are summed as integers: the sum is the same in every order, so for any number of
/// threads.
inline constexpr double fixed_point_one = 1 << 20;
/// A pair's loss that no useful model has; larger ones count as this.
inline constexpr float diverged = 1e6f;

/// samples[pair][0] = contexts[pair]; the others are drawn, again and again until the noise word and the
/// centre word are on the asked side of the hold-out. One thread for each sample.
struct draw_samples {
  ferry::tensor_view<const std::int32_t, pair_batch::memory_space> centres, contexts;
  device_view<std::int32_t> samples;
  noise_distribution::sampler noise;
  hold_out held_out;
  bool want_held_out;
  std::int64_t per_pair;
  std::int64_t first_pair;  ///< number of this batch's first pair within its epoch
  std::uint64_t epoch;

  /// Enough to find one of a thousand; a vocabulary too small to have one makes do with the last word drawn.
  static constexpr std::uint64_t attempts = 1024;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t pair = i / per_pair;
    if (i % per_pair == 0) {
      samples(i) = contexts(pair);
      return;
    }
    const std::int32_t centre = centres(pair);
    const auto first = static_cast<std::uint64_t>(first_pair * per_pair + i) * attempts;
    const auto use = want_held_out ? purpose::noise_of_held_out : purpose::noise;
    std::int32_t word = 0;
    for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
      const auto random = random_bits(held_out.seed, use, epoch, first + attempt);
      word = noise.draw(random.word[0], random.word[1]);
      if (held_out(centre, word) == want_held_out) break;
    }
    samples(i) = word;
  }
};

/// The dot product of two rows, by the lanes of one warp (device) or in eight running sums (host): either way
/// the order of the additions is fixed.
KOKKOS_FORCEINLINE_FUNCTION float dot(const team_member& team, const float* KOKKOS_RESTRICT a,
                                      const float* KOKKOS_RESTRICT b, std::int64_t width) {
  float sum = 0.0f;
  if constexpr (team_shape::on_host) {
    float partial[8] = {};
    std::int64_t j = 0;
    for (; j + 8 <= width; j += 8)
      for (int l = 0; l < 8; ++l) partial[l] += a[j + l] * b[j + l];
    for (; j < width; ++j) partial[j % 8] += a[j] * b[j];
    for (int l = 0; l < 8; ++l) sum += partial[l];
  } else {
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, width), [&](std::int64_t j, float& mine) { mine += a[j] * b[j]; },
        sum);
  }
  return sum;
}

/// Loss and gradients of the logistic loss: -log s(c.x) for the context word, -log s(-c.x) for each noise
/// word, with s the logistic function. One warp (device) or thread (host) takes a pair; its lanes take the
/// columns.
struct logistic_gradients {
  device_view<const std::int32_t> samples;
  device_view<const float> centre_rows, sample_rows;
  device_view<float> centre_gradients, sample_gradients;
  device_view<std::int64_t> losses;
  std::int64_t per_pair;

  KOKKOS_FUNCTION void operator()(const team_member& team) const {
    const auto count = static_cast<std::int64_t>(losses.rows());
    const auto first = static_cast<std::int64_t>(team.league_rank()) * team_shape::pairs;
    const auto last = first + team_shape::pairs < count ? first + team_shape::pairs : count;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, first, last),
                         [&](std::int64_t pair) { one(team, pair); });
  }

 private:
  KOKKOS_FUNCTION void one(const team_member& team, std::int64_t pair) const {
    const auto width = static_cast<std::int64_t>(centre_rows.width());
    const float* KOKKOS_RESTRICT centre = centre_rows.data() + pair * width;
    float* KOKKOS_RESTRICT toward_centre = centre_gradients.data() + pair * width;
    const auto columns = Kokkos::ThreadVectorRange(team, width);
    float loss = 0.0f;
    Kokkos::parallel_for(columns, [&](std::int64_t j) { toward_centre[j] = 0.0f; });
    for (std::int64_t k = 0; k < per_pair; ++k) {
      const std::int64_t place = pair * per_pair + k;
      const float* KOKKOS_RESTRICT sample = sample_rows.data() + place * width;
      float* KOKKOS_RESTRICT toward_sample = sample_gradients.data() + place * width;
      const float score = dot(team, centre, sample, width);
      const float decay = Kokkos::exp(-Kokkos::abs(score));  // at most 1: never overflows
      const float logistic = (score >= 0.0f ? 1.0f : decay) / (1.0f + decay);
      const bool is_context = k == 0;
      // A noise word that happens to be the context word says nothing against it.
      const bool counts = is_context || samples(place) != samples(pair * per_pair);
      const float slope = counts ? (is_context ? logistic - 1.0f : logistic) : 0.0f;
      const float wrong = is_context ? -score : score;
      if (counts) loss += Kokkos::log1p(decay) + (wrong > 0.0f ? wrong : 0.0f);
      Kokkos::parallel_for(columns, [&](std::int64_t j) {
        toward_sample[j] = slope * centre[j];
        toward_centre[j] += slope * sample[j];
      });
    }
    const double clipped = loss < diverged ? loss : diverged;  // also where the loss is not a number
    Kokkos::single(Kokkos::PerThread(team),
                   [&] { losses(pair) = static_cast<std::int64_t>(clipped * fixed_point_one); });
  }
};

/// How the context word ranks among the noise words: 2 for each that it beats, 1 for each that it ties with.
/// Threads map as above.
struct rank_context {
  device_view<const float> centre_rows, sample_rows;
  device_view<std::int64_t> scores;
  std::int64_t per_pair;

  KOKKOS_FUNCTION void operator()(const team_member& team) const {
    const auto count = static_cast<std::int64_t>(scores.rows());
    const auto first = static_cast<std::int64_t>(team.league_rank()) * team_shape::pairs;
    const auto last = first + team_shape::pairs < count ? first + team_shape::pairs : count;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, first, last),
                         [&](std::int64_t pair) { one(team, pair); });
  }

 private:
  KOKKOS_FUNCTION void one(const team_member& team, std::int64_t pair) const {
    const auto width = static_cast<std::int64_t>(centre_rows.width());
    const float* centre = centre_rows.data() + pair * width;
    const float* samples = sample_rows.data() + pair * per_pair * width;
    const float context = dot(team, centre, samples, width);
    std::int64_t score = 0;
    for (std::int64_t k = 1; k < per_pair; ++k) {
      const float noise = dot(team, centre, samples + k * width, width);
      score += context > noise ? 2 : context == noise ? 1 : 0;
    }
    Kokkos::single(Kokkos::PerThread(team), [&] { scores(pair) = score; });
  }
};

/// Sums the losses or scores of a batch; notes on the way how many different rows it touched, which only the
/// device knows. One thread for each pair.
struct sum_up {
  device_view<const std::int64_t> values;
  const std::int64_t* unique_centres;
  const std::int64_t* unique_samples;
  device_view<std::int64_t> totals;  ///< [0] is the result of the reduction

  KOKKOS_FUNCTION void operator()(std::int64_t pair, std::int64_t& sum) const {
    sum += values(pair);
    if (pair == 0) {
      totals(1) = *unique_centres;
      totals(2) = *unique_samples;
    }
  }
};

}  // namespace skipgram::kernels
