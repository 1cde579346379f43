// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::rounding_test {

// rounding::stochastic in steps on half_t and bhalf_t tables.

constexpr ferry::rounding::stochastic at_random;

template <class T>
double next_to(T value, int up) {
  return number(T::from_bits(static_cast<std::uint16_t>(value.bits() + up)));
}

/// Weights of one sign, so that bits count as numbers do.
template <class T>
std::vector<T> weights(std::mt19937_64& random, std::size_t count) {
  std::uniform_real_distribution<float> any(0.25f, 8.0f);
  std::vector<T> result(count);
  for (auto& w : result) w = T(any(random));
  return result;
}
std::vector<float> small_gradients(std::mt19937_64& random, std::size_t count) {
  std::uniform_real_distribution<float> any(-1.0f, 1.0f);
  std::vector<float> result(count);
  for (auto& g : result) g = any(random);
  return result;
}

/// The weights of the step before they are rounded: one element after the other in float.
template <class T>
std::vector<float> exact(const ferry::optim::sgd& rule, const std::vector<T>& start,
                         const std::vector<float>& gradients, std::int64_t step) {
  const auto update = rule.coefficients<float>(step);
  std::vector<float> result;
  for (std::size_t i = 0; i < start.size(); ++i) {
    float weight = start[i], none[1] = {};
    update.apply(weight, gradients[i], none);
    result.push_back(weight);
  }
  return result;
}

std::vector<std::int64_t> in_order(std::size_t rows) {
  std::vector<std::int64_t> result(rows);
  for (std::size_t row = 0; row < rows; ++row) result[row] = static_cast<std::int64_t>(row);
  return result;
}

template <class T>
std::vector<std::uint16_t> bits_of(const std::vector<T>& numbers) {
  std::vector<std::uint16_t> result;
  for (const auto value : numbers) result.push_back(value.bits());
  return result;
}

/// One step on every row of a new table.
template <class Space, class T, class Indices, class... Policies>
std::vector<std::uint16_t> stepped(const ferry::optim::sgd& rule, const std::vector<T>& start,
                                   const std::vector<float>& gradients, std::size_t width, std::uint64_t seed,
                                   std::int64_t steps_before, const Indices& ids, Policies... policies) {
  const std::size_t rows = start.size() / width;
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  state.set_seed(seed);
  state.set_steps(steps_before);
  ferry::step(exec_space{}, rule, table, state, ids,
              make<ferry::device_space>("grads", rows, width, gradients), policies...)
      .wait();
  return bits_of(take(table));
}

TEMPLATE_TEST_CASE("a weight becomes a neighbour, by the bits of its seed, step, row and column",
                   "[optim][rounding]", ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1100);
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = std::is_same_v<TestType, ferry::half_t> ? 1e-3 : 1e-2};
  const std::size_t rows = 29;
  for (const std::size_t width : {1u, 3u, 4u, 6u, 64u, 67u, 130u}) {
    const auto start = weights<TestType>(random, rows * width);
    const auto gradients = small_gradients(random, rows * width);
    const std::uint64_t seed = random();
    const std::int64_t before = 41;
    const auto goal = exact(rule, start, gradients, before + 1);
    std::vector<std::uint16_t> expected;
    const ferry::kernels::step_randomness bits{seed, static_cast<std::uint64_t>(before + 1)};
    for (std::size_t i = 0; i < goal.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i / width), column = static_cast<std::int64_t>(i % width);
      expected.push_back(TestType::at_random(goal[i], bits.draw(row, column / 4).word[column % 4]).bits());
      const auto result = TestType::from_bits(expected.back());
      const auto nearest = TestType(goal[i]);
      const double distance = number(result) - static_cast<double>(goal[i]);
      CHECK((distance == 0.0 || (distance > 0.0 ? next_to(result, -1) < static_cast<double>(goal[i])
                                                : next_to(result, 1) > static_cast<double>(goal[i]))));
      if (static_cast<double>(goal[i]) == number(nearest)) CHECK(result.bits() == nearest.bits());
    }
    const auto every = in_order(rows);
    const auto plan = ferry::make_plan(exec, every, rows);
    const auto check_in = [&]<class Space>(Space) {
      for_each_path<Space, ferry::device_space, work::changes>([&](auto path) {
        CAPTURE(Space::name, path.name, width);
        CHECK(stepped<Space>(rule, start, gradients, width, seed, before, every, path, at_random) ==
              expected);
        if constexpr (std::is_same_v<Space, ferry::mapped_space> &&
                      std::is_same_v<decltype(path), ferry::path::automatic>) {
          CHECK(stepped<Space>(rule, start, gradients, width, seed, before, plan, path, at_random) ==
                expected);
          CHECK(stepped<Space>(rule, start, gradients, width, seed, before, every, path, at_random,
                               ferry::duplicates::assume_unique{}) == expected);
        }
      });
    };
    check_in(ferry::device_space{});
    check_in(ferry::mapped_space{});
    check_in(ferry::pageable_space{});
    if (width < 64) continue;
    using space = ferry::mapped_space;
    CHECK(stepped<space>(rule, start, gradients, width, seed, before + 1, every, at_random) != expected);
    CHECK(stepped<space>(rule, start, gradients, width, seed + 1, before, every, at_random) != expected);
    CHECK(stepped<space>(rule, start, gradients, width, seed ^ (std::uint64_t{1} << 40), before, every,
                         at_random) != expected);
    CHECK(stepped<space>(rule, start, gradients, width, seed, before, every) != expected);
    CHECK(stepped<space>(rule, start, gradients, width, seed, before + (std::int64_t{1} << 32), every,
                         at_random) != expected);
  }
}

TEMPLATE_TEST_CASE("random bits are the same where rows are seen as a whole, and in double",
                   "[optim][rounding]", ferry::half_t, ferry::bhalf_t) {
  using space = ferry::mapped_space;
  auto random = generator(1105);
  const exec_space exec;
  // Clips nothing, but needs the norm.
  const ferry::optim::chain rule{ferry::optim::sgd{.lr = 1e-2}, ferry::optim::clip_norm{1e9}};
  const std::size_t rows = 29;
  for (const std::size_t width : {1u, 6u, 64u, 131u}) {
    const auto start = weights<TestType>(random, rows * width);
    const auto gradients = small_gradients(random, rows * width);
    const std::vector<double> wide(gradients.begin(), gradients.end());
    const auto goal = exact(rule.rule, start, gradients, 1);
    const std::uint64_t seed = random();
    const ferry::kernels::step_randomness bits{seed, 1};
    std::vector<std::uint16_t> expected, expected_of_double;
    for (std::size_t i = 0; i < goal.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i / width), column = static_cast<std::int64_t>(i % width);
      const auto drawn = bits.draw(row, column / 4).word[column % 4];
      expected.push_back(TestType::at_random(goal[i], drawn).bits());
      const double fine = number(start[i]) - 1e-2 * wide[i];
      const auto result = TestType::at_random(ferry::detail::to_float_odd(fine), drawn);
      expected_of_double.push_back(result.bits());
      CHECK((number(result) >= fine ? next_to(result, -1) < fine : next_to(result, 1) > fine));
    }
    for_each_path<space, ferry::device_space, work::changes>([&](auto path) {
      CAPTURE(path.name, width);
      const auto run = [&](const auto& named, const auto& grads) {
        auto table = make<space>("weights", rows, width, start);
        auto state = ferry::optim::make_state(named, table);
        state.set_seed(seed);
        ferry::step(exec, named, table, state, in_order(rows),
                    make<ferry::device_space>("grads", rows, width, grads), path, at_random)
            .wait();
        return bits_of(take(table));
      };
      CHECK(run(rule, gradients) == expected);
      CHECK(run(rule.rule, wide) == expected_of_double);
    });
  }
}

TEMPLATE_TEST_CASE("the mean of rounded weights is the exact weight", "[optim][rounding]", ferry::half_t,
                   ferry::bhalf_t) {
  constexpr std::size_t rows = 2000, width = 100;
  auto random = generator(1110);
  const double unit = std::is_same_v<TestType, ferry::half_t> ? 0x1p-10 : 0x1p-7;  // of [1, 2)
  for (const int eighths : {1, 3, 7}) {
    const std::vector<TestType> start(rows * width, TestType(1.5f));
    const double change = unit * eighths / 8.0;
    const std::vector<float> gradients(rows * width, static_cast<float>(-change));
    const auto seed = random();
    double up = 0.0;
    const ferry::optim::sgd rule{.lr = 1.0};
    for (const auto bits :
         stepped<ferry::device_space>(rule, start, gradients, width, seed, 0, in_order(rows), at_random)) {
      REQUIRE((bits == start[0].bits() || bits == start[0].bits() + 1));
      up += bits == start[0].bits() ? 0.0 : 1.0;
    }
    const double count = rows * width, share = eighths / 8.0;
    CAPTURE(eighths, up / count);
    CHECK(std::fabs(up / count - share) < 5.0 * std::sqrt(share * (1.0 - share) / count));
  }
}

// Rounding at random to a 16-bit format, against its definition in double.

template <class T>
struct format;
template <>
struct format<ferry::half_t> {
  static constexpr int bits = 10, least = -14, random_bits = 13;
  static constexpr double beyond = 0x1p16;
};
template <>
struct format<ferry::bhalf_t> {
  static constexpr int bits = 7, least = -126, random_bits = 16;
  static constexpr double beyond = 0x1p128;
};

/// The neighbours of a finite value by magnitude, and where it lies between them. Above the largest number
/// both are the nearest number of IEEE 754, which is infinity from half a unit on.
template <class T>
struct between {
  double down, up, fraction;

  explicit between(double value) {
    const double size = std::fabs(value);
    const int exponent = size == 0.0 ? format<T>::least : std::max(std::ilogb(size), format<T>::least);
    const double unit = std::ldexp(1.0, exponent - format<T>::bits);
    down = std::floor(size / unit) * unit;
    fraction = (size - down) / unit;
    up = fraction == 0.0 ? down : down + unit;
    if (up < format<T>::beyond) return;
    if (fraction >= 0.5) down = INFINITY;
    up = down;
    fraction = 0.0;
  }
};

float float_of(std::uint32_t bits) {
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// Any bit pattern, or one whose exponent the format has.
template <class T>
float any_float(std::mt19937_64& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  if (random() % 4 == 0) return float_of(bits);
  constexpr int lowest = std::is_same_v<T, ferry::half_t> ? 127 - 26 : 0;
  constexpr int highest = std::is_same_v<T, ferry::half_t> ? 127 + 15 : 254;
  const auto exponent =
      static_cast<std::uint32_t>(lowest + static_cast<int>(random() % (highest - lowest + 1)));
  return float_of((bits & 0x807fffffu) | exponent << 23);
}

template <class T>
double rounded(float value, std::uint32_t random) {
  return static_cast<double>(static_cast<float>(T::at_random(value, random)));
}

TEMPLATE_TEST_CASE("rounding at random gives one of the two neighbours", "[optim][rounding]", ferry::half_t,
                   ferry::bhalf_t) {
  auto random = generator(1000);
  for (int i = 0; i < 300000; ++i) {
    const float value = any_float<TestType>(random);
    const auto bits = static_cast<std::uint32_t>(random());
    const double got = rounded<TestType>(value, bits);
    const auto wide = static_cast<double>(value);
    bool fine;
    if (value != value) {
      fine = got != got;
    } else if (std::fabs(wide) >= format<TestType>::beyond) {
      fine = got == std::copysign(INFINITY, wide);
    } else {
      const between<TestType> neighbours(wide);
      fine = std::signbit(got) == std::signbit(wide) &&
             (std::fabs(got) == neighbours.down || std::fabs(got) == neighbours.up);
    }
    if (!fine) {
      CAPTURE(value, bits, got);
      FAIL("not a neighbour");
    }
  }
}

TEMPLATE_TEST_CASE("a finite value becomes infinite only if the nearest number is", "[optim][rounding]",
                   ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1004);
  constexpr bool half = std::is_same_v<TestType, ferry::half_t>;
  const double largest = half ? 65504.0 : 0x1.fep127, unit = half ? 32.0 : 0x1p120;
  const auto check = [&](float value, double right) {
    for (const auto bits : {std::uint32_t{0}, ~std::uint32_t{0}, static_cast<std::uint32_t>(random())}) {
      CAPTURE(value, bits);
      REQUIRE(rounded<TestType>(value, bits) == right);
      REQUIRE(rounded<TestType>(-value, bits) == -right);
    }
  };
  for (int i = 0; i < 4096; ++i) {  // float has at least 2^12 values there
    check(static_cast<float>(largest + unit * i / 8192), largest);
    check(static_cast<float>(largest + unit * (0.5 + i / 8192.0)), INFINITY);
  }
  // Below the largest number both neighbours are finite.
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<float>(largest - unit * static_cast<double>(1 + random() % 8191) / 8192);
    CAPTURE(value);
    REQUIRE(rounded<TestType>(value, 0u) == largest - unit);
    REQUIRE(rounded<TestType>(value, ~0u) == largest);
  }
}

TEMPLATE_TEST_CASE("numbers of the format stay as they are whatever the random bits", "[optim][rounding]",
                   ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1001);
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto exact = TestType::from_bits(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(exact);
    for (const auto r : {std::uint32_t{0}, ~std::uint32_t{0}, std::uint32_t{1} << 31,
                         static_cast<std::uint32_t>(random())}) {
      const auto second = TestType::at_random(value, r);
      const bool same = value == value ? second.bits() == exact.bits()
                                       : static_cast<float>(second) != static_cast<float>(second);
      if (!same) {
        CAPTURE(bits, r, second.bits());
        FAIL("an exact number was rounded");
      }
    }
  }
}

TEMPLATE_TEST_CASE("the share of random bits that round up is the lost fraction", "[optim][rounding]",
                   ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1002);
  constexpr int bits = format<TestType>::random_bits;
  constexpr std::uint32_t patterns = 1u << bits;
  for (int i = 0; i < 150; ++i) {
    float value = any_float<TestType>(random);
    while (!(std::fabs(static_cast<double>(value)) < format<TestType>::beyond))
      value = any_float<TestType>(random);
    const between<TestType> neighbours(static_cast<double>(value));
    std::uint32_t up = 0;
    int changes = 0;
    bool last = false;
    for (std::uint32_t k = 0; k < patterns; ++k) {
      const bool is_up = neighbours.up != neighbours.down &&
                         std::fabs(rounded<TestType>(value, k << (32 - bits))) == neighbours.up;
      changes += k != 0 && is_up != last ? 1 : 0;
      last = is_up;
      up += is_up ? 1u : 0u;
    }
    CAPTURE(value);
    CHECK(changes <= 1);  // monotone in the random bits
    CHECK(std::fabs(static_cast<double>(up) / patterns - neighbours.fraction) <= 1.0 / patterns);
  }
}

/// Neither the lowest nor the highest random bits depend on the kind of number: 0 rounds towards zero, and all ones away
/// from it unless less is lost than they can tell.
template <class T>
void directions(float lowest, float highest) {
  auto random = generator(1003);
  std::uniform_real_distribution<float> any(lowest, highest);
  for (int i = 0; i < 1000; ++i) {
    const float value = any(random);
    const between<T> neighbours(static_cast<double>(value));
    CAPTURE(value);
    if (neighbours.fraction < 0x1p-12) continue;
    REQUIRE(rounded<T>(value, 0u) == neighbours.down);
    REQUIRE(rounded<T>(value, ~0u) == neighbours.up);
    REQUIRE(rounded<T>(-value, 0u) == -neighbours.down);
    REQUIRE(rounded<T>(-value, ~0u) == -neighbours.up);
  }
}

TEST_CASE("small random bits round towards zero", "[optim][rounding]") {
  directions<ferry::half_t>(1.0f, 4.0f);
  directions<ferry::bhalf_t>(1.0f, 4.0f);
  directions<ferry::bhalf_t>(0x1p-128f, 0x1p-126f);
  directions<ferry::half_t>(0x1p-24f, 0x1p-14f);
}

}  // namespace ferry_test::rounding_test
