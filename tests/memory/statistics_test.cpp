// SPDX-License-Identifier: Apache-2.0
#include "../../src/memory/block_cache.hpp"
#include "support/heap_space.hpp"
#include "support/test.hpp"

namespace ferry_test::statistics_test {

template <class Space>
std::optional<ferry::label_statistics> labelled(const std::string& label) {
  for (const auto& entry : ferry::memory_by_label<Space>())
    if (entry.label == label) return entry;
  return std::nullopt;
}

struct counted_tag {
  static constexpr std::string_view name = "counted_space";
};
struct busy_tag {
  static constexpr std::string_view name = "busy_space";
};
struct failing_tag {
  static constexpr std::string_view name = "failing_space";
};
struct many_tag {
  static constexpr std::string_view name = "many_space";
};

TEMPLATE_TEST_CASE("tensors of every space are counted, with their labels", "[statistics]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  ferry::trim<TestType>();
  const auto before = ferry::memory_statistics<TestType>();
  {
    const ferry::tensor<float, TestType> first("counted", 10, 10);
    const ferry::tensor<std::int8_t, TestType> second("counted", 77);
    const auto usage = ferry::memory_statistics<TestType>();
    CHECK(usage.current == before.current + 477);
    CHECK(usage.count == before.count + 2);
    CHECK(usage.total_count == before.total_count + 2);
    CHECK(usage.peak >= usage.current);
    CHECK(usage.reserved == before.reserved);
    const auto of_label = labelled<TestType>("ferry::tensor::counted");
    REQUIRE(of_label.has_value());
    CHECK(of_label->current == 477);
    CHECK(of_label->count == 2);
  }
  ferry::trim<TestType>();
  const auto after = ferry::memory_statistics<TestType>();
  CHECK(after.current == before.current);
  CHECK(after.count == before.count);
  CHECK(after.total_count == before.total_count + 2);
  const auto of_label = labelled<TestType>("ferry::tensor::counted");
  REQUIRE(of_label.has_value());
  CHECK(of_label->current == 0);
  CHECK(of_label->count == 0);
  CHECK(of_label->peak == 477);
}

TEST_CASE("the peak is the largest that was held at one time, until it is reset", "[statistics]") {
  using space = heap_space<counted_tag>;
  CHECK(ferry::memory_statistics<space>().peak == 0);
  ferry::detail::allocation<space> first("a", 100);
  { const ferry::detail::allocation<space> second("b", 50); }
  const ferry::detail::allocation<space> third("b", 30);
  auto usage = ferry::memory_statistics<space>();
  CHECK(usage.current == 130);
  CHECK(usage.peak == 150);
  CHECK(usage.count == 2);
  CHECK(usage.total_count == 3);
  CHECK(usage.budget == 0);
  CHECK(labelled<space>("ferry::b")->peak == 50);
  ferry::reset_peak<space>();
  CHECK(ferry::memory_statistics<space>().peak == 130);
  CHECK(labelled<space>("ferry::b")->peak == 30);
  // Moving neither frees nor counts twice; assigning frees what was there.
  auto moved = std::move(first);
  CHECK(ferry::memory_statistics<space>().current == 130);
  moved = ferry::detail::allocation<space>("c", 7);
  usage = ferry::memory_statistics<space>();
  CHECK(usage.current == 37);
  CHECK(usage.count == 2);
  CHECK(usage.total_count == 4);
  CHECK(usage.peak == 137);
  CHECK(labelled<space>("ferry::a")->current == 0);
  ferry::reset_peak<space>();
  CHECK_FALSE(labelled<space>("ferry::a").has_value());
  CHECK(labelled<space>("ferry::c")->peak == 7);
}

TEST_CASE("an allocation that fails leaves no trace", "[statistics]") {
  using space = heap_space<failing_tag>;
  space::limit = 1000;
  const ferry::detail::allocation<space> block("held", 600);
  CHECK_THROWS_AS(ferry::detail::allocation<space>("too much", 500), ferry::bad_alloc);
  const auto usage = ferry::memory_statistics<space>();
  CHECK(usage.current == 600);
  CHECK(usage.peak == 600);
  CHECK(usage.count == 1);
  CHECK(usage.total_count == 1);
  CHECK(ferry::memory_by_label<space>().size() == 1);
}

TEST_CASE("what lies idle in a pool is held and reserved; trim gives it back", "[statistics][trim]") {
  using space = ferry::pinned_space;
  ferry::trim();
  const auto before = ferry::memory_statistics<space>();
  ferry::detail::block_cache<space> cache;
  constexpr std::size_t size = 3 << 20;
  auto first = cache.take(size);
  auto second = cache.take(size);
  auto usage = ferry::memory_statistics<space>();
  CHECK(usage.current == before.current + 2 * size);
  CHECK(usage.reserved == before.reserved);
  first.reset();
  usage = ferry::memory_statistics<space>();
  CHECK(usage.current == before.current + 2 * size);
  CHECK(usage.reserved == before.reserved + size);
  CHECK(ferry::trim<ferry::mapped_space>() == 0);
  CHECK(ferry::trim<space>() == size);
  CHECK(ferry::trim<space>() == 0);
  usage = ferry::memory_statistics<space>();
  CHECK(usage.current == before.current + size);
  CHECK(usage.reserved == before.reserved);
  second.reset();
  CHECK(ferry::trim() == size);
  CHECK(ferry::memory_statistics<space>().current == before.current);
}

TEST_CASE("what the verbs keep for their next call can be given back between two of them",
          "[statistics][trim]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 1000, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 5000, 4);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, batch);
  std::vector<std::int64_t> indices(5000);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i % 1000);
  for (int round = 0; round < 3; ++round) {
    ferry::scatter_add(exec, table, indices,
                       make<ferry::device_space>("ones", 5000, 4, std::vector<float>(20000, 1)))
        .wait();
    CHECK(ferry::trim() > 0);
    CHECK(ferry::trim() == 0);
  }
  CHECK(take(table) == std::vector<float>(4000, 15.0f));
}

TEST_CASE("several threads allocate and free; the books stay right", "[statistics]") {
  using space = heap_space<busy_tag>;
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t)
    workers.emplace_back([t] {
      std::vector<ferry::detail::allocation<space>> blocks;
      for (int i = 0; i < 500; ++i) {
        blocks.emplace_back("label " + std::to_string(i % 3), static_cast<std::size_t>(1 + t));
        if (blocks.size() > 5) blocks.erase(blocks.begin());
      }
    });
  for (auto& thread : workers) thread.join();
  const auto usage = ferry::memory_statistics<space>();
  CHECK(usage.current == 0);
  CHECK(usage.count == 0);
  CHECK(usage.total_count == 2000);
  CHECK(usage.peak >= 5 * 4);
  CHECK(usage.peak <= 6 * (1 + 2 + 3 + 4));
  CHECK(ferry::memory_by_label<space>().size() == 3);
}

TEST_CASE("labels that are never used again are not remembered for ever", "[statistics]") {
  using space = heap_space<many_tag>;
  const ferry::detail::allocation<space> first("kept", 1);
  for (int i = 0; i < 5000; ++i)
    const ferry::detail::allocation<space> single("batch " + std::to_string(i), 8);
  CHECK(ferry::memory_by_label<space>().size() <= 300);
  CHECK(labelled<space>("ferry::kept")->current == 1);
  CHECK(ferry::memory_statistics<space>().total_count == 5001);
}

}  // namespace ferry_test::statistics_test
