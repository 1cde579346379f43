// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::page_lock_test {

using ferry::pinned_space;

/// Pages of their own: a device locks whole ones.
struct page_memory {
  static constexpr std::size_t floats = 1024;
  explicit page_memory(std::size_t pages) : tensor_("pages", pages * floats) {}
  std::span<float> part(std::size_t first, std::size_t count) {
    return {tensor_.data() + first * floats, count * floats};
  }
  ferry::tensor<float, ferry::pageable_space> tensor_;
};

/// The words with which memory is not adopted.
[[maybe_unused]] std::string refusal(std::span<float> memory) {
  try {
    const auto table = ferry::adopt<pinned_space>(memory, memory.size());
  } catch (const ferry::invalid_argument& error) {
    return error.what();
  }
  return "it was adopted";
}

TEST_CASE("a device refuses memory that is adopted already", "[adopt]") {
  page_memory memory(8);
  const auto middle = memory.part(2, 4);
  auto first = std::optional(ferry::adopt<pinned_space>(middle, middle.size()));
  const auto usage = ferry::memory_statistics<pinned_space>();
  using part = std::pair<std::size_t, std::size_t>;
  if constexpr (!ferry::detail::is_host_exec<exec_space>)
    for (const auto& [begin, count] :
         {part{2, 4}, part{0, 8}, part{3, 2}, part{0, 3}, part{5, 3}, part{2, 1}}) {
      CAPTURE(begin, count);
      CHECK_THAT(refusal(memory.part(begin, count)),
                 ContainsSubstring("'ferry::adopted' are page-locked already: by another adoption"));
    }
  // A refusal leaves nothing locked; neighbours are no overlap; pageable memory is nobody's business.
  CHECK(ferry::memory_statistics<pinned_space>().current == usage.current);
  const auto below = ferry::adopt<pinned_space>(memory.part(0, 2), 2 * page_memory::floats);
  const auto above = ferry::adopt<pinned_space>(memory.part(6, 2), 2 * page_memory::floats);
  const auto plain = ferry::adopt<ferry::pageable_space>(memory.part(0, 8), 8, page_memory::floats);
  CHECK(plain.rows() == 8);
  // It is free again when the tensor has gone, wherever that was moved.
  auto moved = std::optional(std::move(*first));
  first.reset();
  moved.reset();
  for (int i = 0; i < 3; ++i) {
    const auto repeat = ferry::adopt<pinned_space>(middle, 2, middle.size() / 2);
    CHECK(repeat.width() == middle.size() / 2);
  }
}

TEST_CASE("adopted page-locked memory counts, in budgets too", "[adopt][statistics]") {
  page_memory memory(4);
  ferry::trim<pinned_space>();
  const auto before = ferry::memory_statistics<pinned_space>();
  {
    const auto table = ferry::adopt<pinned_space>(memory.part(0, 4), 4, page_memory::floats);
    const auto usage = ferry::memory_statistics<pinned_space>();
    CHECK(usage.current == before.current + 4 * 4096);
    CHECK(usage.count == before.count + 1);
    bool is_listed = false;
    for (const auto& entry : ferry::memory_by_label<pinned_space>())
      is_listed = is_listed || (entry.label == "ferry::adopted" && entry.current == 4 * 4096);
    CHECK(is_listed);
  }
  CHECK(ferry::memory_statistics<pinned_space>().current == before.current);
  ferry::set_memory_budget<pinned_space>(before.current + 4096);
  CHECK_THROWS_AS(ferry::adopt<pinned_space>(memory.part(0, 2), 2, page_memory::floats),
                  ferry::budget_exceeded);
  CHECK(ferry::adopt<pinned_space>(memory.part(0, 1), 1, page_memory::floats).rows() == 1);
  ferry::set_memory_budget<pinned_space>(0);
  CHECK(ferry::adopt<pinned_space>(memory.part(0, 2), 2, page_memory::floats).rows() == 2);
}

}  // namespace ferry_test::page_lock_test
