// SPDX-License-Identifier: Apache-2.0
// Particles in two tables, one for each half of a periodic domain: after each step those that have crossed the boundary
// migrate.
//
//   particles [STEPS [PARTICLES]]
//
// The rows that leave one table are appended to the other by one copy_rows, and rows of the end fill the holes by another
// one, within the table. The program compares every particle with its position after that many steps.
#include <ferry/ferry.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using particle_table = ferry::tensor<float, ferry::device_space>;
using index_list = ferry::tensor<std::int64_t, ferry::device_space>;

constexpr int columns = 16;  // position, velocity, two halves of a number, and what else a particle carries
constexpr float length = 1024.0F;

/// The particle of a number: whole numbers, which floats add exactly.
KOKKOS_FUNCTION float start_of(std::int64_t number) { return static_cast<float>(number * 193 % 1024); }
KOKKOS_FUNCTION float velocity_of(std::int64_t number) { return static_cast<float>(number * 7 % 31 - 15); }

struct create_particles {
  float* rows;
  KOKKOS_FUNCTION void operator()(std::int64_t number) const {
    float* const row = rows + number * columns;
    row[0] = start_of(number);
    row[1] = velocity_of(number);
    row[2] = static_cast<float>(number / 4096);
    row[3] = static_cast<float>(number % 4096);
    for (int c = 4; c < columns; ++c) row[c] = static_cast<float>((number + c) % 1000);
  }
};

struct advance {
  float* rows;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    float& x = rows[i * columns];
    x += rows[i * columns + 1];
    if (x < 0.0F) x += length;
    if (x >= length) x -= length;
  }
};

/// Lists the rows that belong to the other half, in ascending order.
struct list_leaving {
  const float* rows;
  std::int64_t* leaving;
  bool is_upper;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& number, bool is_final) const {
    const bool leaves = (rows[i * columns] >= length / 2) != is_upper;
    if (leaves && is_final) leaving[number] = i;
    number += leaves ? 1 : 0;
  }
};
/// Lists the rows from `begin` on that belong to this half.
struct list_staying {
  const float* rows;
  std::int64_t* staying;
  std::int64_t begin;
  bool is_upper;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& number, bool is_final) const {
    const bool stays = (rows[(begin + i) * columns] >= length / 2) == is_upper;
    if (stays && is_final) staying[number] = begin + i;
    number += stays ? 1 : 0;
  }
};

using range = Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>;

/// The particles of one half.
class half_domain {
 public:
  half_domain(const exec_space& exec, bool is_upper, std::int64_t capacity)
      : exec_(exec),
        is_upper_(is_upper),
        rows_(is_upper ? "upper" : "lower", capacity, columns),
        leaving_("leaving", capacity),
        tail_("tail", capacity) {}

  /// Looks for particles that have left. Returns their number.
  std::int64_t find_leaving() {
    std::int64_t number = 0;
    Kokkos::parallel_scan("particles::leaving", range(exec_, 0, count),
                          list_leaving{rows_.data(), leaving_.data(), is_upper_}, number);
    exec_.fence("particles::leaving");
    return number;
  }
  /// Copies the rows that leave behind the other half's last one.
  void send(half_domain& neighbour, std::int64_t number) {
    ferry::copy_rows(exec_, rows_, first(leaving_, number), neighbour.rows_,
                     ferry::row_range{neighbour.count, number})
        .detach();
  }
  /// Fills the holes before the new end with rows from behind it.
  void close_holes(std::int64_t number) {
    const std::int64_t end = count - number;
    std::int64_t moved = 0;
    Kokkos::parallel_scan("particles::tail", range(exec_, 0, number),
                          list_staying{rows_.data(), tail_.data(), end, is_upper_}, moved);
    exec_.fence("particles::tail");
    // The list of leaving rows ascends: its first ones lie before the end.
    ferry::copy_rows(exec_, rows_, first(tail_, moved), rows_, first(leaving_, moved),
                     ferry::duplicates::assume_unique{}, ferry::overlap::buffer{})
        .detach();
    count = end;
  }
  void move() { Kokkos::parallel_for("particles::advance", range(exec_, 0, count), advance{rows_.data()}); }

  particle_table& rows() { return rows_; }
  std::int64_t count = 0;

 private:
  static ferry::tensor_view<const std::int64_t, ferry::device_space> first(const index_list& list,
                                                                           std::int64_t number) {
    const std::vector<std::size_t> extents{static_cast<std::size_t>(number)};
    return {list.data(),
            ferry::shape<ferry::dynamic_rank>::make(extents, list.label(), sizeof(std::int64_t))};
  }

  exec_space exec_;
  bool is_upper_;
  particle_table rows_;
  index_list leaving_, tail_;
};

/// Exchanges the particles that have crossed the boundary. Returns their number.
std::int64_t migrate(half_domain& lower, half_domain& upper) {
  const std::int64_t up = lower.find_leaving(), down = upper.find_leaving();
  lower.send(upper, up);
  upper.send(lower, down);
  lower.count += down;
  upper.count += up;
  lower.close_holes(up);
  upper.close_holes(down);
  return up + down;
}

/// Rows that are not those of their particle after `steps` steps, or lie in the wrong half; marks the particles visits.
std::int64_t wrong_particles(const exec_space& exec, half_domain& half, bool is_upper, int steps,
                             std::vector<int>& visits) {
  ferry::tensor<float, ferry::pageable_space> rows("check", half.rows().rows(), columns);
  ferry::copy(exec, half.rows(), rows).wait();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < half.count; ++i) {
    const auto number = static_cast<std::int64_t>(rows(i, 2)) * 4096 + static_cast<std::int64_t>(rows(i, 3));
    if (number < 0 || number >= static_cast<std::int64_t>(visits.size())) {
      ++wrong;
      continue;
    }
    ++visits[static_cast<std::size_t>(number)];
    float x = std::fmod(start_of(number) + static_cast<float>(steps) * velocity_of(number), length);
    if (x < 0) x += length;
    bool right = rows(i, 0) == x && (x >= length / 2) == is_upper;
    for (int c = 4; c < columns; ++c) right = right && rows(i, c) == static_cast<float>((number + c) % 1000);
    wrong += right ? 0 : 1;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  const std::int64_t particles = argc > 2 ? std::atoll(argv[2]) : 1000000;
  if (steps < 1 || particles < 1 || particles > 16000000) {
    std::fprintf(stderr, "usage: %s [STEPS [PARTICLES (up to 16000000)]]\n", argv[0]);
    return 2;
  }
  const exec_space exec;
  // All start in the lower table; the first migration sorts them.
  half_domain lower(exec, false, particles), upper(exec, true, particles);
  Kokkos::parallel_for("particles::create", range(exec, 0, particles), create_particles{lower.rows().data()});
  lower.count = particles;

  std::int64_t migrated = 0;
  double seconds = 0;
  for (int step = 0; step <= steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    migrated += migrate(lower, upper);
    exec.fence("particles::step");
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (step == steps) break;
    lower.move();
    upper.move();
  }
  std::vector<int> visits(static_cast<std::size_t>(particles), 0);
  std::int64_t wrong =
      wrong_particles(exec, lower, false, steps, visits) + wrong_particles(exec, upper, true, steps, visits);
  for (const int times : visits) wrong += times == 1 ? 0 : 1;
  std::printf("%lld migrations in %d steps, %.3f ms a step\n", static_cast<long long>(migrated), steps,
              seconds / (steps + 1) * 1e3);
  std::printf(wrong == 0 ? "all particles are right\n" : "%lld particles are wrong\n",
              static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
