// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/rows/init.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace ferry {

namespace detail {

/// torch's fan_in and fan_out: an array is [out x in x receptive field...].
struct fans {
  double inputs = 0.0;
  double outputs = 0.0;
};

template <class T, class Space>
fans fans_of(const char* verb, const array_ref<T, Space>& array) {
  if (array.rank < 2)
    throw invalid_argument(joined("ferry::init::", verb, ": ", array.describe(),
                                  " has less than 2 extents, so it has no fan in and fan out"));
  double field = 1.0;
  for (std::size_t i = 2; i < array.rank; ++i) field *= static_cast<double>(array.extents[i]);
  return {static_cast<double>(array.extents[1]) * field, static_cast<double>(array.extents[0]) * field};
}

inline void require_gain(const char* verb, double gain) {
  if (!is_finite(gain) || gain < 0.0)
    throw invalid_argument(
        joined("ferry::init::", verb, ": the gain is ", gain, ", must be >= 0 and finite"));
}

}  // namespace detail

namespace init {

/// Nonlinearities after a layer, for gain_of and the Kaiming initialisations; torch.nn.init's names.
enum class nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// Which number of connections the Kaiming initialisations keep the variance over: fan_in that of the forward
/// pass, fan_out that of the backward pass.
enum class fan_mode { fan_in, fan_out };

/// torch.nn.init.calculate_gain. `slope` is the negative slope of leaky_relu; torch's default is 0.01.
inline double gain_of(nonlinearity after, double slope = 0.01) {
  switch (after) {
    case nonlinearity::tanh:
      return 5.0 / 3.0;
    case nonlinearity::relu:
      return std::sqrt(2.0);
    case nonlinearity::leaky_relu:
      return std::sqrt(2.0 / (1.0 + slope * slope));
    case nonlinearity::selu:
      return 3.0 / 4.0;
    default:
      return 1.0;
  }
}

/// torch.nn.init.xavier_uniform_ (Glorot and Bengio, 2010): uniform in [-b, b) with
/// b = gain sqrt(6 / (fan_in + fan_out)). The array is [out x in], further extents are the receptive field;
/// a table of embeddings is [rows x width], as torch.nn.Embedding's weight. As with all of ferry::init the
/// values are a pure function of seed and position. Throws invalid_argument for an array with less than 2
/// extents and for a gain that is negative or not finite.
template <class Exec, class Array>
  requires(detail::Fits<detail::xavier_arguments, const Exec&, Array, double, std::uint64_t>)
void xavier_uniform(const Exec& exec, Array&& array, double gain, std::uint64_t seed) {
  const auto fan = detail::fans_of("xavier_uniform", make_ref(array));
  detail::require_gain("xavier_uniform", gain);
  const double bound =
      fan.inputs + fan.outputs > 0.0 ? gain * std::sqrt(6.0 / (fan.inputs + fan.outputs)) : 0.0;
  uniform(exec, array, -bound, bound, seed);
}

/// torch.nn.init.xavier_normal_: normal with mean 0 and deviation gain sqrt(2 / (fan_in + fan_out)); else as
/// xavier_uniform.
template <class Exec, class Array>
  requires(detail::Fits<detail::xavier_arguments, const Exec&, Array, double, std::uint64_t>)
void xavier_normal(const Exec& exec, Array&& array, double gain, std::uint64_t seed) {
  const auto fan = detail::fans_of("xavier_normal", make_ref(array));
  detail::require_gain("xavier_normal", gain);
  const double deviation =
      fan.inputs + fan.outputs > 0.0 ? gain * std::sqrt(2.0 / (fan.inputs + fan.outputs)) : 0.0;
  normal(exec, array, 0.0, deviation, seed);
}

/// Options of the Kaiming initialisations, with torch's names and defaults.
struct kaiming_options {
  double a = 0.0;                                 ///< negative slope of leaky_relu
  fan_mode mode = fan_mode::fan_in;               ///< see fan_mode
  nonlinearity after = nonlinearity::leaky_relu;  ///< torch's `nonlinearity`
};

/// torch.nn.init.kaiming_uniform_ (He et al., 2015): uniform in [-b, b) with b = sqrt(3) gain / sqrt(fan),
/// where the gain is that of the nonlinearity. Else as xavier_uniform.
template <class Exec, class Array>
  requires(detail::Fits<detail::kaiming_arguments, const Exec&, Array, kaiming_options, std::uint64_t>)
void kaiming_uniform(const Exec& exec, Array&& array, const kaiming_options& options, std::uint64_t seed) {
  const auto fan = detail::fans_of("kaiming_uniform", make_ref(array));
  const double connections = options.mode == fan_mode::fan_in ? fan.inputs : fan.outputs;
  const double gain = gain_of(options.after, options.a);
  detail::require_gain("kaiming_uniform", gain);
  const double bound = connections > 0.0 ? std::sqrt(3.0) * (gain / std::sqrt(connections)) : 0.0;
  uniform(exec, array, -bound, bound, seed);
}

/// torch.nn.init.kaiming_normal_: normal with mean 0 and deviation gain / sqrt(fan); else as kaiming_uniform.
template <class Exec, class Array>
  requires(detail::Fits<detail::kaiming_arguments, const Exec&, Array, kaiming_options, std::uint64_t>)
void kaiming_normal(const Exec& exec, Array&& array, const kaiming_options& options, std::uint64_t seed) {
  const auto fan = detail::fans_of("kaiming_normal", make_ref(array));
  const double connections = options.mode == fan_mode::fan_in ? fan.inputs : fan.outputs;
  const double gain = gain_of(options.after, options.a);
  detail::require_gain("kaiming_normal", gain);
  normal(exec, array, 0.0, connections > 0.0 ? gain / std::sqrt(connections) : 0.0, seed);
}

/// torch.nn.init.trunc_normal_: the normal distribution with `mean` and `deviation`, restricted to [low,
/// high] and computed from one uniform number by the inverse of its distribution function. torch's defaults
/// are mean 0, deviation 1, low -2 and high 2. Floats are computed in double if the interval has less than a
/// 256th of the probability. Throws invalid_argument unless deviation > 0 and low <= high,
/// and if the interval is so far from the mean that it has no probability in double.
template <class Exec, class Array>
  requires(detail::Fits<detail::trunc_normal_arguments, const Exec&, Array, double, double, double, double,
                        std::uint64_t>)
void trunc_normal(const Exec& exec, Array&& array, double mean, double deviation, double low, double high,
                  std::uint64_t seed) {
  detail::require_init<Exec, Array>();
  using element = detail::element_of<Array>;
  static_assert(FloatingElement<element>,
                "ferry: init::trunc_normal needs elements of float, double, half_t or bhalf_t.");
  const auto complain = [&](const std::string& complaint) {
    detail::refuse_init("trunc_normal", make_ref(array).note(), complaint);
  };
  if (!(deviation > 0.0) || !detail::is_finite(deviation) || !detail::is_finite(mean))
    complain(ferry::detail::joined("the mean is ", mean, " and the deviation ", deviation,
                                   "; the first must be finite, the second > 0 and finite"));
  if (!(low <= high)) complain(ferry::detail::joined("[", low, ", ", high, "] is no interval"));
  // In the lower tail a probability has more digits than in the upper one, where it is next to 1.
  const bool mirrored = low > mean;
  const double first = mirrored ? (mean - high) / deviation : (low - mean) / deviation;
  const double last = mirrored ? (mean - low) / deviation : (high - mean) / deviation;
  const auto below = [](double z) { return 0.5 * std::erfc(-z * 0.70710678118654752440); };
  const double lower = below(first), upper = below(last);
  if (!(upper > lower) && low < high)
    complain(ferry::detail::joined("[", low, ", ", high, "] has no probability under mean ", mean,
                                   " and deviation ", deviation));
  const double scale = mirrored ? -deviation : deviation;
  const std::string label = "ferry::init::trunc_normal";
  if constexpr (kernels::is_drawn_as_float<element>) {
    // Points of random::normal_quantile_at. Floats distinguish 2^24 of them.
    const double begin = std::ceil(lower * 0x1p32), end = std::floor(upper * 0x1p32);
    if (end - begin >= 0x1p24) {
      const detail::numbers_between<element> range(low, high, false);
      detail::generate(exec, label, make_ref(array),
                       kernels::drawn_value<element, random::normal_floats>{
                           {seed, static_cast<float>(mean), static_cast<float>(scale), range.least,
                            range.most, static_cast<std::int32_t>(begin - 0x1p31),
                            static_cast<std::uint32_t>(std::min(end - begin, 0x1p32 - 1.0)), 4}});
      return;
    }
  }
  detail::generate(exec, label, make_ref(array),
                   kernels::normal_value<element>{mean, scale, low, high, lower, upper, seed});
}

}  // namespace init
}  // namespace ferry
