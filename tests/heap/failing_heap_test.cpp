// SPDX-License-Identifier: Apache-2.0
#include "heap/heap.hpp"

#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <vector>

namespace ferry_test::failing_heap_test {

namespace {

constexpr std::int64_t rows = 60, n = 24, width = 12;

std::vector<std::int64_t> batch_indices() {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<std::int64_t>(i * 37 % 50);
  return drawn;
}

/// With empty pools a verb allocates all that it ever may.
void start_anew() { ferry::detail::engine::release<Kokkos::DefaultExecutionSpace>(); }

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
    std::vector<double> all;
    const auto add = [&](const auto& array) {
      std::vector<float> here(array.size());
      ferry::copy(exec, array, here).wait();
      all.insert(all.end(), here.begin(), here.end());
    };
    add(table);
    add(batch);
    for (int f = 0; f < state.fields(); ++f) {
      const auto field = state.field_ref(f);
      std::vector<float> here(static_cast<std::size_t>(field.size()));
      ferry::copy(exec, field, here).wait();
      all.insert(all.end(), here.begin(), here.end());
    }
    all.push_back(static_cast<double>(state.steps()));
    return all;
  }
};

/// Lets the k-th allocation of `call(world)` fail, for k = 1, 2, ... until it has no k-th. Each time the call
/// either throws and leaves everything as it was, or does all of its work; tried again it then does all of it.
template <class Space, class Call>
int survive_every_failure(const char* what, const Call& call) {
  world<Space> never_failed;
  const std::vector<double> before = never_failed.contents();
  call(never_failed);
  const std::vector<double> done = never_failed.contents();
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    world<Space> here;
    start_anew();
    bool thrown = false;
    fail_allocation(k);
    try {
      call(here);
    } catch (const std::bad_alloc&) {
      thrown = true;
    } catch (const ferry::bad_alloc&) {
      thrown = true;
    }
    const bool failed = fail_allocation(0);
    INFO(what << ", allocation " << k);
    if (thrown) {
      REQUIRE(failed);
      REQUIRE(here.contents() == before);
      call(here);
    }
    REQUIRE(here.contents() == done);
    if (!failed) return failures;
    ++failures;
  }
}

template <class Space>
void survive_all_verbs() {
  using ferry::path::direct;
  using ferry::path::ordered;
  using ferry::path::staged;
  int failures = 0;
  const auto survive = [&](const char* what, const auto& call) {
    failures += survive_every_failure<Space>(what, call);
  };
  survive("gather", [](auto& of) { ferry::gather(of.exec, of.table, of.indices, of.batch).wait(); });
  survive("gather direct",
          [](auto& of) { ferry::gather(of.exec, of.table, of.indices, of.batch, direct{}).wait(); });
  survive("gather ordered",
          [](auto& of) { ferry::gather(of.exec, of.table, of.indices, of.batch, ordered{}).wait(); });
  survive("gather by plan", [](auto& of) {
    ferry::gather(of.exec, of.table, ferry::make_plan(of.exec, of.indices, rows), of.batch).wait();
  });
  survive("gather, detached",
          [](auto& of) { ferry::gather(of.exec, of.table, of.indices, of.batch).detach(); });
  survive("scatter", [](auto& of) { ferry::scatter(of.exec, of.table, of.indices, of.batch).wait(); });
  survive("scatter by mean", [](auto& of) {
    ferry::scatter(of.exec, of.table, of.indices, of.batch, ferry::duplicates::mean{}).wait();
  });
  survive("scatter_add",
          [](auto& of) { ferry::scatter_add(of.exec, of.table, of.indices, of.batch).wait(); });
  survive("copy", [](auto& of) {
    const std::vector<float> ones(static_cast<std::size_t>(rows * width), 1.0f);
    const ferry::tensor_view<const float, ferry::pageable_space> from(ones.data(), rows, width);
    ferry::copy(of.exec, from, of.table).wait();
  });
  survive("init", [](auto& of) { ferry::init::normal(of.exec, of.table, 0.0f, 1.0f, 3); });
  survive("step",
          [](auto& of) { ferry::step(of.exec, of.adam, of.table, of.state, of.indices, of.batch).wait(); });
  survive("step ordered", [](auto& of) {
    ferry::step(of.exec, of.adam, of.table, of.state, of.indices, of.batch, ordered{}).wait();
  });
  survive("step nonfinite::skip", [](auto& of) {
    ferry::step(of.exec, of.adam, of.table, of.state, of.indices, of.batch, ferry::nonfinite::skip{}).wait();
  });
  survive("step per_row", [](auto& of) {
    ferry::step(of.exec, of.adam, of.table, of.state, of.indices, of.batch, ferry::step_count::per_row{})
        .wait();
  });
  survive("step catch_up", [](auto& of) {
    ferry::step(of.exec, of.adam, of.table, of.state, of.indices, of.batch, ferry::step_count::catch_up{})
        .wait();
  });
  if constexpr (Space::is_host_accessible) {
    survive("gather staged",
            [](auto& of) { ferry::gather(of.exec, of.table, of.indices, of.batch, staged{}).wait(); });
    survive("scatter staged",
            [](auto& of) { ferry::scatter(of.exec, of.table, of.indices, of.batch, staged{}).wait(); });
    survive("scatter_add staged",
            [](auto& of) { ferry::scatter_add(of.exec, of.table, of.indices, of.batch, staged{}).wait(); });
    survive("copy staged", [](auto& of) {
      ferry::tensor<float, ferry::device_space> there("there", rows, width);
      ferry::init::constant(of.exec, there, 2.0f);
      ferry::copy(of.exec, there, of.table, staged{}).wait();
    });
    survive("copy staged there and back, rows in reverse", [](auto& of) {
      ferry::tensor<float, ferry::device_space> there("there", rows, width);
      ferry::copy(of.exec, of.table, there, staged{}).wait();
      auto reverse = ferry::make_ref(there);
      reverse.data += (rows - 1) * width;
      reverse.strides[0] = -reverse.strides[0];
      ferry::copy(of.exec, reverse, of.table, staged{}).wait();
    });
    survive("step staged", [](auto& of) {
      ferry::step(of.exec, of.adam, of.table, of.state, of.indices, of.batch, staged{}).wait();
    });
  }
  CHECK(failures > 200);
}

}  // namespace

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

TEST_CASE("a step with a bad index is not counted where its message lacks memory", "[failing_heap]") {
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    world<ferry::device_space> here;
    here.indices[3] = rows + 7;
    ferry::ticket work = ferry::step(here.exec, here.adam, here.table, here.state, here.indices, here.batch);
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
    REQUIRE(here.state.steps() == 0);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 0);
}

TEST_CASE("8-bit rows survive failing allocations", "[failing_heap]") {
  struct codes_world {
    Kokkos::DefaultExecutionSpace exec;
    std::vector<std::int64_t> indices = batch_indices();
    ferry::tensor<float, ferry::device_space> table{"table", rows, width}, batch{"batch", n, width};
    ferry::rowwise_int8_tensor<ferry::device_space> codes{"codes", rows, width};
  };
  const auto survive = [](const auto& call) {
    int failures = 0;
    for (std::int64_t k = 1;; ++k) {
      codes_world here;
      ferry::init::uniform(here.exec, here.table, -1.0f, 1.0f, 7);
      start_anew();
      fail_allocation(k);
      bool thrown = false;
      try {
        call(here);
      } catch (const std::bad_alloc&) {
        thrown = true;
      } catch (const ferry::bad_alloc&) {
        thrown = true;
      }
      const bool failed = fail_allocation(0);
      if (thrown) {
        REQUIRE(failed);
        REQUIRE_NOTHROW(call(here));
      }
      if (!failed) return failures;
      ++failures;
    }
  };
  CHECK(survive([](codes_world& of) {
          ferry::quantize(of.exec, of.table, of.codes).wait();
          ferry::gather(of.exec, of.codes, of.indices, of.batch).wait();
          ferry::scatter(of.exec, of.codes, of.indices, of.batch).wait();
          ferry::dequantize(of.exec, of.codes, of.table).wait();
        }) > 0);
}

}  // namespace ferry_test::failing_heap_test
