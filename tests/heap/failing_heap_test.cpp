// SPDX-License-Identifier: Apache-2.0
#include "heap/heap.hpp"
#include "heap/survive.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/int8.hpp>
#include <ferry/quantized.hpp>

#include <exception>
#include <new>

namespace ferry_test::failing_heap_test {

constexpr std::int64_t rows = 60, n = 24, width = 12;

std::vector<std::int64_t> batch_indices() {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<std::int64_t>(i * 37 % 50);
  return drawn;
}

/// One table with its batch in Space, and all that verbs on them change.
template <class Space>
struct world {
  Kokkos::DefaultExecutionSpace exec;
  std::vector<std::int64_t> indices = batch_indices();
  ferry::tensor<float, Space> table{"a table with a label of more than thirty letters", rows, width};
  ferry::tensor<float, Space> batch{"a batch with a label of more than thirty letters", n, width};
  ferry::optim::adam adam{.lr = 1e-2};
  decltype(ferry::optim::make_state(adam, table)) state = ferry::optim::make_state(adam, table);

  world() {
    ferry::init::uniform(exec, table, -1.0f, 1.0f, 7);
    ferry::init::uniform(exec, batch, -1.0f, 1.0f, 8);
  }

  /// Every number that a verb may change.
  [[nodiscard]] std::vector<double> contents() {
    std::vector<double> content;
    const auto add = [&](const auto& array) {
      std::vector<float> host_copy(array.size());
      ferry::copy(exec, array, host_copy).wait();
      content.insert(content.end(), host_copy.begin(), host_copy.end());
    };
    add(table);
    add(batch);
    for (int f = 0; f < state.fields(); ++f) {
      const auto field = state.field_ref(f);
      std::vector<float> host_copy(static_cast<std::size_t>(field.size()));
      ferry::copy(exec, field, host_copy).wait();
      content.insert(content.end(), host_copy.begin(), host_copy.end());
    }
    content.push_back(static_cast<double>(state.steps()));
    return content;
  }
};

template <class Space>
void survive_all_verbs() {
  using ferry::path::direct;
  using ferry::path::ordered;
  using ferry::path::staged;
  int failures = 0;
  const auto survive = [&](const char* label, const auto& call) {
    failures += survive_every_failure<world<Space>>(label, call);
  };
  survive("gather", [](auto& kit) { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch).wait(); });
  survive("gather direct",
          [](auto& kit) { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch, direct{}).wait(); });
  survive("gather ordered",
          [](auto& kit) { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch, ordered{}).wait(); });
  survive("gather by plan", [](auto& kit) {
    ferry::gather(kit.exec, kit.table, ferry::make_plan(kit.exec, kit.indices, rows), kit.batch).wait();
  });
  survive("gather, detached",
          [](auto& kit) { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch).detach(); });
  survive("scatter", [](auto& kit) { ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch).wait(); });
  survive("scatter by mean", [](auto& kit) {
    ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch, ferry::duplicates::mean{}).wait();
  });
  survive("scatter_add",
          [](auto& kit) { ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch).wait(); });
  survive("copy", [](auto& kit) {
    const std::vector<float> ones(static_cast<std::size_t>(rows * width), 1.0f);
    const ferry::tensor_view<const float, ferry::pageable_space> source(ones.data(), rows, width);
    ferry::copy(kit.exec, source, kit.table).wait();
  });
  survive("init", [](auto& kit) { ferry::init::normal(kit.exec, kit.table, 0.0f, 1.0f, 3); });
  survive("step", [](auto& kit) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch).wait();
  });
  survive("step ordered", [](auto& kit) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch, ordered{}).wait();
  });
  survive("step nonfinite::skip", [](auto& kit) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch, ferry::nonfinite::skip{})
        .wait();
  });
  survive("step per_row", [](auto& kit) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch,
                ferry::step_count::per_row{})
        .wait();
  });
  survive("step catch_up", [](auto& kit) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch,
                ferry::step_count::catch_up{})
        .wait();
  });
  if constexpr (Space::is_host_accessible) {
    survive("gather staged",
            [](auto& kit) { ferry::gather(kit.exec, kit.table, kit.indices, kit.batch, staged{}).wait(); });
    survive("scatter staged",
            [](auto& kit) { ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch, staged{}).wait(); });
    survive("scatter_add staged", [](auto& kit) {
      ferry::scatter_add(kit.exec, kit.table, kit.indices, kit.batch, staged{}).wait();
    });
    survive("copy staged", [](auto& kit) {
      ferry::tensor<float, ferry::device_space> device_copy("there", rows, width);
      ferry::init::constant(kit.exec, device_copy, 2.0f);
      ferry::copy(kit.exec, device_copy, kit.table, staged{}).wait();
    });
    survive("copy staged there and back, rows in reverse", [](auto& kit) {
      ferry::tensor<float, ferry::device_space> device_copy("there", rows, width);
      ferry::copy(kit.exec, kit.table, device_copy, staged{}).wait();
      auto reverse = ferry::make_ref(device_copy);
      reverse.data += (rows - 1) * width;
      reverse.strides[0] = -reverse.strides[0];
      ferry::copy(kit.exec, reverse, kit.table, staged{}).wait();
    });
    survive("step staged", [](auto& kit) {
      ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch, staged{}).wait();
    });
  }
  CHECK(failures > 200);
}

TEST_CASE("an allocation that fails is noticed", "[failing_heap]") {
  fail_allocation(1);
  CHECK_THROWS_AS(std::vector<int>(3), std::bad_alloc);
  CHECK(fail_allocation(0));
  CHECK_FALSE(fail_allocation(0));
}

TEST_CASE("a verb whose k-th allocation fails leaves everything as it was: device_space", "[failing_heap]") {
  survive_all_verbs<ferry::device_space>();
}

TEST_CASE("a verb whose k-th allocation fails leaves everything as it was: pinned_space", "[failing_heap]") {
  survive_all_verbs<ferry::pinned_space>();
}

/// A table behind the rows used last, of which some have changed.
struct lru_world {
  Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> table{"a table with a label of more than thirty letters", rows,
                                                  width};
  ferry::tensor<float, ferry::device_space> batch{"a batch with a label of more than thirty letters", n,
                                                  width};
  ferry::tensor<std::int64_t, ferry::device_space> list{"rows", n}, slots{"slots", n};
  ferry::cached_table<decltype(table), ferry::cache::lru> hot = make();

  lru_world() {
    const std::vector<std::int64_t> drawn = batch_indices();
    ferry::init::uniform(exec, batch, -1.0f, 1.0f, 8);
    ferry::copy(exec, ferry::tensor_view<const std::int64_t, ferry::pageable_space>(drawn.data(), n), list)
        .wait();
    ferry::scatter(exec, hot, drawn, batch).wait();
  }
  [[nodiscard]] std::vector<double> contents() {
    std::vector<double> content;
    for (std::int64_t first = 0; first < rows; first += 20) {
      std::vector<std::int64_t> part(20);
      for (std::size_t i = 0; i < part.size(); ++i) part[i] = first + static_cast<std::int64_t>(i);
      ferry::tensor<float, ferry::device_space> out("out", 20, width);
      ferry::gather(exec, hot, part, out).wait();
      const auto numbers = take(out);
      content.insert(content.end(), numbers.begin(), numbers.end());
    }
    return content;
  }

 private:
  decltype(hot) make() {
    ferry::init::uniform(exec, table, -1.0f, 1.0f, 7);
    return decltype(hot)(table, ferry::cache::lru{.slots = 13, .groups = 2});
  }
};

TEST_CASE("slots hold the rows that they are said to hold after an allocation has failed", "[failing_heap]") {
  int failures = 0;
  const auto survive = [&](const char* label, const auto& call) {
    failures += survive_every_failure<lru_world>(label, call);
  };
  survive("resolve", [](auto& kit) {
    ferry::resolve(kit.exec, kit.hot, kit.list, kit.slots, ferry::overflow::spill{}).wait();
  });
  survive("forget", [](auto& kit) { kit.hot.forget(kit.exec, 0).wait(); });
  survive("prefetch",
          [](auto& kit) { kit.hot.prefetch(kit.exec, kit.list, ferry::overflow::spill{}).wait(); });
  survive("gather", [](auto& kit) { ferry::gather(kit.exec, kit.hot, kit.list, kit.batch).wait(); });
  CHECK(failures > 10);
}

TEST_CASE("a step with a bad index is not counted where its message lacks memory", "[failing_heap]") {
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    world<ferry::device_space> kit;
    kit.indices[3] = rows + 7;
    ferry::ticket work = ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch);
    fail_allocation(k);
    bool thrown = false;
    try {
      work.wait();
    } catch (const std::bad_alloc&) {
      thrown = true;
    } catch (const ferry::out_of_range&) {
      thrown = true;
    }
    const bool failed = fail_allocation(0);
    INFO("allocation " << k);
    REQUIRE(thrown);
    REQUIRE(kit.state.steps() == 0);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 0);
}

/// Quantized tables in memory that the test reads.
struct quantized_world {
  using table_type = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::pinned_space>;
  static constexpr std::int64_t columns = 32;

  Kokkos::DefaultExecutionSpace exec;
  std::vector<std::int64_t> indices = batch_indices();
  ferry::tensor<float, ferry::device_space> whole{"whole", rows, columns}, batch{"batch", n, columns};
  table_type table{"a table with a label of more than thirty letters", rows, columns};
  table_type second{"a second table with a label of more than thirty letters", rows, columns};
  table_type packed{"packed rows with a label of more than thirty letters", n, columns};
  ferry::optim::adam adam{.lr = 1e-2};
  decltype(ferry::optim::make_state(adam, table)) state = ferry::optim::make_state(adam, table);

  quantized_world() {
    ferry::init::uniform(exec, whole, -1.0f, 1.0f, 7);
    ferry::init::uniform(exec, batch, -100.0f, 100.0f, 8);
    ferry::quantize(exec, whole, table).wait();
    ferry::init::uniform(exec, whole, -500.0f, 500.0f, 9);
    ferry::quantize(exec, whole, second).wait();
    ferry::quantize(exec, batch, packed).wait();
  }

  [[nodiscard]] std::vector<int> contents() const {
    std::vector<int> bytes;
    for (const table_type* part : {&table, &second, &packed}) {
      for (std::size_t i = 0; i < part->codes().size(); ++i) bytes.push_back(part->codes().data()[i].bits());
      for (std::size_t i = 0; i < part->scales().size(); ++i)
        bytes.push_back(part->scales().data()[i].bits());
    }
    bytes.push_back(static_cast<int>(state.steps()));
    return bytes;
  }
};

/// Lets each allocation of a call fail once. Tables and state are then as they were, if the call writes by
/// one kernel; codes may be new and scales old, if it writes both by verbs of their own. Tried again, the call
/// does all of its work. Returns the number of allocations.
template <class Call>
int survive_on_codes(const char* label, bool by_one_kernel, const Call& call) {
  quantized_world never_failed;
  const auto before = never_failed.contents();
  call(never_failed);
  const auto expected = never_failed.contents();
  REQUIRE(before != expected);
  for (std::int64_t k = 1;; ++k) {
    quantized_world kit;
    start_anew();
    const auto [thrown, failed] = call_without_allocation(k, [&] { call(kit); });
    INFO(label << ", allocation " << k);
    if (thrown) {
      REQUIRE(failed);
      if (by_one_kernel) REQUIRE(kit.contents() == before);
      call(kit);
    }
    REQUIRE(kit.contents() == expected);
    if (!failed) return static_cast<int>(k - 1);
  }
}

TEST_CASE("codes and scales survive failing allocations", "[failing_heap]") {
  using ferry::path::staged;
  int failures = 0;
  const auto survive = [&](const char* label, bool by_one_kernel, const auto& call) {
    failures += survive_on_codes(label, by_one_kernel, call);
  };
  survive("step", true, [](auto& kit) {
    ferry::step(kit.exec, kit.adam, kit.table, kit.state, kit.indices, kit.batch).wait();
  });
  survive("scatter", false,
          [](auto& kit) { ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch).wait(); });
  survive("scatter of sums", false, [](auto& kit) {
    ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch, ferry::duplicates::sum{}).wait();
  });
  survive("scatter staged", false,
          [](auto& kit) { ferry::scatter(kit.exec, kit.table, kit.indices, kit.batch, staged{}).wait(); });
  survive("gather of packed rows", false,
          [](auto& kit) { ferry::gather(kit.exec, kit.second, kit.indices, kit.packed).wait(); });
  survive("copy", false, [](auto& kit) { ferry::copy(kit.exec, kit.second, kit.table).wait(); });
  CHECK(failures > 100);
}

}  // namespace ferry_test::failing_heap_test
