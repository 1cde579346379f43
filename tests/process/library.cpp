// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <ferry/ferry.hpp>

#include <list>
#include <string>

namespace {

using exec_space = Kokkos::DefaultHostExecutionSpace;
using ferry::pageable_space;

std::list<ferry::tensor<char, pageable_space>> blocks;

const library_functions functions = {
    [] {
      if (!Kokkos::is_initialized()) Kokkos::initialize();
    },
    [] { Kokkos::finalize(); },
    [](const char* name, std::size_t bytes) { blocks.emplace_back(name, bytes); },
    [] { blocks.clear(); },
    [] { return ferry::memory_statistics<pageable_space>().current; },
    [](const char* name) {
      std::size_t sum = 0;
      for (const auto& holding : ferry::memory_by_label<pageable_space>())
        if (holding.label.find(name) != std::string::npos) sum += holding.current;
      return sum;
    },
    [](std::size_t bytes) { ferry::set_memory_budget<pageable_space>(bytes); },
    [] { return ferry::memory_statistics<pageable_space>().budget; },
    [](std::size_t bytes) {
      try {
        const ferry::tensor<char, pageable_space> more("more", bytes);
        return true;
      } catch (const ferry::budget_exceeded&) {
        return false;
      }
    },
    [] { return ferry::current_profile(exec_space{}).call_us; },
    [](double us) {
      auto profile = ferry::default_profile(exec_space{});
      profile.call_us = us;
      ferry::use_profile(exec_space{}, profile);
    },
    []() -> const void* { return ferry::detail::engine::get_on<exec_space>().get(); },
    [] {
      const std::vector<int> none;
      ferry::tensor<float, pageable_space> three("three", 5, 3), four("four", 0, 4);
      ferry::gather(exec_space{}, three, none, four).wait();
    },
    [] {
      const std::vector<int> rows{1, 0};
      ferry::tensor<float, pageable_space> table("table", 2, 3), batch("batch", 2, 3);
      ferry::gather(exec_space{}, table, rows, batch).wait();
    },
    [] {
      std::uint64_t sum = 0;
      for (const auto& count : ferry::transfer_statistics()) sum += count.calls;
      return sum;
    },
};

}  // namespace

const library_functions* ferry_test_library() { return &functions; }
