// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cxxabi.h>
#include <execinfo.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// How many functions lie between a verb and Kokkos, the verb among them. The program is compiled without inlining, but for the
/// overload of launch() that forwards a kernel to the library's.
namespace ferry_test {

namespace {

/// The library's launch(), whose name a program does not see.
constexpr std::size_t launches_of_library = 1;

/// The functions of ferry from the one that called the library's launch() outwards, for each label of a kernel.
using calls = std::map<std::string, std::vector<std::string>>;
calls* observed = nullptr;
std::mutex guard;  // ranks are threads

std::string demangled(const char* symbol) {
  const std::string line(symbol);
  const auto begin = line.find('('), end = line.find('+', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  const std::string mangled = line.substr(begin + 1, end - begin - 1);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : mangled;
}

/// Without return type and arguments of templates.
std::string function_of(const std::string& signature) {
  int depth = 0;
  std::string plain;
  for (const char c : signature) {
    if (c == '<') ++depth;
    if (depth == 0) plain += c;
    if (c == '>') --depth;
  }
  const auto arguments = plain.find('(');
  if (arguments != std::string::npos) plain.resize(arguments);
  const auto space = plain.rfind(' ');
  return space == std::string::npos ? plain : plain.substr(space + 1);
}

void note_calls(const char* label, std::uint32_t, std::uint64_t*) {
  if (observed == nullptr) return;
  const std::lock_guard<std::mutex> lock(guard);
  void* addresses[200];
  const int depth = backtrace(addresses, 200);
  const std::unique_ptr<char*, void (*)(void*)> symbols(backtrace_symbols(addresses, depth), &std::free);
  auto& names = (*observed)[label];
  names.clear();
  bool inside = false;
  for (int i = 0; i < depth; ++i) {
    const std::string name = function_of(demangled(symbols.get()[i]));
    const bool of_test = name.rfind("ferry_test::", 0) == 0;
    if (of_test && inside) break;
    inside = inside || !of_test;
    if (name.rfind("ferry::", 0) == 0) names.push_back(name);
  }
}

std::string listed(const std::vector<std::string>& names) {
  std::string stack;
  for (const auto& name : names) stack += "\n  " + name;
  return stack;
}

/// The functions on the way of `verb` to the kernel of this label.
template <class Verb>
std::vector<std::string> way_to(const std::string& label, const Verb& verb) {
  calls counts;
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(&note_calls);
  observed = &counts;
  verb();
  observed = nullptr;
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
  std::vector<std::string> labels;
  for (const auto& kernel : counts) labels.push_back(kernel.first);
  INFO("kernels:" << listed(labels));
  REQUIRE(counts.count(label) == 1);
  return counts[label];
}

/// A call that names a policy is compiled here, not in the library.
constexpr ferry::bounds::check in_headers{};

struct batch {
  Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::device_space> table{"table", 50, 8}, rows{"rows", 3, 8};
  std::vector<std::int32_t> indices{4, 9, 2};
  batch() {
    ferry::init::zeros(exec, table);
    ferry::init::zeros(exec, rows);
  }
};

}  // namespace

TEST_CASE("a step reaches its kernel in seven calls", "[frames]") {
  batch input;
  const ferry::optim::adam adam;
  auto state = ferry::optim::make_state(adam, input.table);
  const auto way = way_to("ferry::step::direct", [&] {
    ferry::step(input.exec, adam, input.table, state, input.indices, input.rows, in_headers).wait();
  });
  INFO(listed(way));
  REQUIRE(way.size() >= 2);
  CHECK(way.back() == "ferry::step");
  CHECK(way.size() <= 7 - launches_of_library);
}

TEST_CASE("a step on a sharded table reaches its kernel in eight calls", "[frames]") {
  const Kokkos::DefaultExecutionSpace exec;
  const auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, ferry::device_space> table("table", comm, 50, 8);
  ferry::init::zeros(exec, table);
  const ferry::optim::adam adam;
  auto state = ferry::optim::make_state(adam, table);
  const auto run = [&] {
    const batch rank;
    ferry::step(rank.exec, adam, table, state, rank.indices, rank.rows).wait();
  };
  for (const bool by_ranks : {false, true}) {
    const auto way = way_to("ferry::step::direct", [&] {
      if (by_ranks)
        comm.run([&](int) { run(); });
      else
        run();
    });
    INFO((by_ranks ? "by ranks" : "by the group") << listed(way));
    REQUIRE(way.size() >= 2);
    CHECK(way.back() == "ferry::step");
    // One thread writes the shards of all ranks jointly: two functions and a function_ref more, see write_jointly.
    CHECK(way.size() <= (by_ranks ? 8 : 11) - launches_of_library);
  }
}

TEST_CASE("gathers and plans of a sharded table reach their kernels in nine calls", "[frames]") {
  const Kokkos::DefaultExecutionSpace exec;
  const auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, ferry::device_space> table("table", comm, 50, 8);
  ferry::init::zeros(exec, table);
  const std::vector<std::int64_t> offsets{0, 1, 3};
  const auto check = [&](const char* label, const char* name, const auto& verb) {
    const auto way = way_to(label, [&] { comm.run([&](int) { verb(); }); });
    INFO(label << listed(way));
    REQUIRE(way.size() >= 2);
    CHECK(way.back() == name);
    CHECK(way.size() <= 9 - launches_of_library);
  };
  check("ferry::gather::peer", "ferry::gather", [&] {
    batch rank;
    ferry::gather(rank.exec, table, rank.indices, rank.rows).wait();
  });
  check("ferry::gather_bags::direct", "ferry::gather_bags", [&] {
    const batch rank;
    ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 8);
    ferry::gather_bags(rank.exec, table, rank.indices, offsets, pooled).wait();
  });
  check("ferry::make_plan::resolve", "ferry::make_plan", [&] {
    const batch rank;
    static_cast<void>(ferry::make_plan(rank.exec, rank.indices, table));
  });
}

TEST_CASE("a scatter reaches its kernel in six calls", "[frames]") {
  batch input;
  const auto way = way_to("ferry::scatter::direct", [&] {
    ferry::scatter(input.exec, input.table, input.indices, input.rows, in_headers).wait();
  });
  INFO(listed(way));
  REQUIRE(way.size() >= 2);
  CHECK(way.back() == "ferry::scatter");
  CHECK(way.size() <= 6 - launches_of_library);
}

TEST_CASE("a gather reaches its kernel in five calls", "[frames]") {
  batch input;
  const auto way = way_to("ferry::gather::direct", [&] {
    ferry::gather(input.exec, input.table, input.indices, input.rows, in_headers).wait();
  });
  INFO(listed(way));
  REQUIRE(way.size() >= 2);
  CHECK(way.back() == "ferry::gather");
  CHECK(way.size() <= 5 - launches_of_library);
}

TEST_CASE("verbs on a cached table reach their kernels in as many calls", "[frames]") {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 50, 8);
  ferry::tensor<float, ferry::device_space> rows("rows", 3, 8);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, rows);
  const std::vector<std::int32_t> indices{4, 9, 2};
  const ferry::optim::adam adam;
  ferry::cached_table hot(table, ferry::cache::first{5});
  auto state = ferry::optim::make_state(adam, hot);
  const auto gather =
      way_to("ferry::gather::cached", [&] { ferry::gather(exec, hot, indices, rows).wait(); });
  const auto step =
      way_to("ferry::step::cached", [&] { ferry::step(exec, adam, hot, state, indices, rows).wait(); });
  INFO(listed(gather) << listed(step));
  REQUIRE(!gather.empty());
  CHECK(gather.back() == "ferry::gather");
  CHECK(gather.size() <= 5 - launches_of_library);
  REQUIRE(!step.empty());
  CHECK(step.back() == "ferry::step");
  CHECK(step.size() <= 7 - launches_of_library);
}

}  // namespace ferry_test
