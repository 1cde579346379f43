// SPDX-License-Identifier: Apache-2.0
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

/// Prints the size of the registers that host kernels use, and a hash of the bits of what they compute: the same for every
/// size, see check_registers.py.
namespace {

using host = Kokkos::DefaultHostExecutionSpace;
template <class T>
using tensor = ferry::tensor<T, ferry::pageable_space>;
constexpr std::size_t rows = 60;

class case_maker {
 public:
  explicit case_maker(std::size_t width) : width_(width), random_(width) {}

  /// Numbers of all magnitudes, some of them special.
  template <class T>
  tensor<T> numbers(const char* label, std::size_t count, bool specials) {
    tensor<T> array(label, count, width_);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < array.size(); ++i) {
      const auto pick = random_() % 64;
      auto number = static_cast<T>(normal(random_) * (pick < 8 ? 1e-6 : 1.0));
      if (specials && pick == 63) number = static_cast<T>(pick % 2 == 0 ? 0.0 : -0.0);
      if (specials && pick == 62) number = std::numeric_limits<T>::denorm_min();
      if (specials && pick == 61 && i % 3 == 0) number = std::numeric_limits<T>::infinity();
      if (specials && pick == 60 && i % 5 == 0) number = std::numeric_limits<T>::quiet_NaN();
      array.data()[i] = number;
    }
    return array;
  }
  std::vector<std::int32_t> indices(std::size_t count) {
    std::vector<std::int32_t> result(count);
    for (auto& index : result) index = static_cast<std::int32_t>(random_() % rows);
    return result;
  }
  /// One number for all NaNs, else the bits.
  template <class T, class Space>
  void add(const ferry::tensor<T, Space>& array) {
    for (std::size_t i = 0; i < array.size(); ++i) {
      T number = array.data()[i];
      if (number != number) number = std::numeric_limits<T>::quiet_NaN();
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &number, sizeof number);
      for (const unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 0x100000001b3u;
    }
  }
  void print(const std::string& name) {
    std::printf("%s %zu %016llx\n", name.c_str(), width_, static_cast<unsigned long long>(hash_));
    hash_ = 0xcbf29ce484222325u;
  }

 private:
  std::size_t width_;
  std::mt19937_64 random_;
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

template <class T, class Rule>
void steps(const char* name, const Rule& rule, std::size_t width) {
  const host exec;
  case_maker cases(width);
  auto table = cases.numbers<T>("table", rows, false);
  auto state = ferry::optim::make_state(rule, table);
  for (int step = 0; step < 3; ++step) {
    const auto grads = cases.numbers<T>("grads", 200, step == 2);
    ferry::step(exec, rule, table, state, cases.indices(200), grads).wait();
    const auto few = cases.numbers<T>("few", 3, false);
    ferry::step(exec, rule, table, state, std::vector<std::int32_t>{5, 1, 7}, few).wait();
  }
  cases.add(table);
  for (int f = 0; f < state.fields(); ++f) cases.add(state.field(f));
  cases.print(name);
}

template <class T>
void moves(const char* name, std::size_t width) {
  const host exec;
  case_maker cases(width);
  auto table = cases.numbers<T>("table", rows, true);
  const auto values = cases.numbers<T>("values", 200, true);
  const auto ids = cases.indices(200);
  ferry::scatter(exec, table, ids, values).wait();
  cases.add(table);
  ferry::scatter_add(exec, table, ids, values).wait();
  cases.add(table);
  tensor<T> batch("batch", 200, width);
  ferry::gather(exec, table, ids, batch).wait();
  cases.add(batch);
  const auto finite = cases.numbers<T>("finite", 200, false);
  ferry::rowwise_int8_tensor<ferry::pageable_space> codes("codes", rows, width);
  ferry::quantize(exec, table, codes).wait();
  ferry::scatter(exec, codes, ids, finite).wait();
  ferry::gather(exec, codes, ids, batch).wait();
  cases.add(batch);
  tensor<T> pooled("pooled", 20, width);
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b < 20; ++b) offsets.push_back(b * b / 2);
  ferry::gather_bags(exec, table, ids, offsets, pooled).wait();
  cases.add(pooled);
  cases.print(name);
}

void all() {
  namespace optim = ferry::optim;
  for (const std::size_t width : {1u, 3u, 4u, 7u, 8u, 12u, 16u, 29u, 48u, 64u, 131u}) {
    moves<float>("moves float", width);
    moves<double>("moves double", width);
    steps<float>("sgd", optim::sgd{.lr = 0.1}, width);
    steps<float>("sgd momentum", optim::sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}, width);
    steps<float>("adagrad", optim::adagrad{}, width);
    steps<float>("adam", optim::adam{}, width);
    steps<float>("adam amsgrad", optim::adam{.amsgrad = true}, width);
    steps<float>("adamw", optim::adamw{}, width);
    steps<float>("sparse_adam", optim::sparse_adam{}, width);
    steps<float>("nadam", optim::nadam{}, width);
    steps<float>("adadelta", optim::adadelta{}, width);
    steps<float>("adamax", optim::adamax{}, width);
    steps<float>("rmsprop", optim::rmsprop{.momentum = 0.5, .centered = true}, width);
    steps<float>("rprop", optim::rprop{}, width);
    steps<float>("asgd", optim::asgd{}, width);
    steps<float>("lion", optim::lion{}, width);
    steps<float>("ftrl", optim::ftrl{}, width);
    steps<float>("rowwise_adagrad", optim::rowwise_adagrad{}, width);
    steps<double>("sgd double", optim::sgd{.lr = 0.1}, width);
    steps<double>("adam double", optim::adam{}, width);
    steps<double>("lion double", optim::lion{}, width);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
#if defined(FERRY_HAS_AVX2_VERSIONS)
  std::printf("registers %d processor %d\n", ferry::host::register_bytes(),
              __builtin_cpu_supports("avx2") != 0 ? 32 : 0);
#else
  std::printf("one version\n");
#endif
  all();
}
