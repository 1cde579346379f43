// SPDX-License-Identifier: Apache-2.0
#include "support/copy_case.hpp"

#include <algorithm>
#include <cstdio>

/// The numbers of backends/*/tuning.hpp that decide the rate of a copy, over their range: which of them are best on
/// this machine.
namespace ferry_bench {
namespace {

using here_array = ferry::tensor<float, ferry::pageable_space>;
using there_array = ferry::tensor<float, ferry::device_space>;

std::string slots_text(const ferry::detail::slot_tuning& how) {
  return std::to_string(how.slot_bytes >> 10) + "KiB." + std::to_string(how.workers) + "x" +
         std::to_string(how.slots) + (how.fills_past_caches || how.drains_past_caches ? ".past" : ".cached");
}

void print_best(const std::string& title, std::vector<std::pair<double, std::string>> rates) {
  std::sort(rates.rbegin(), rates.rend());
  std::printf("%s:", title.c_str());
  for (std::size_t i = 0; i < std::min<std::size_t>(5, rates.size()); ++i)
    std::printf("  %s %.2f", rates[i].second.c_str(), rates[i].first);
  std::printf(" GB/s\n");
}

/// Bytes of a slot x host threads x slots of a thread x kind of store, in both directions.
void slots(session& run) {
  const bool quick = run.chosen().quick;
  run.limit_calls(3, 1);
  constexpr std::int64_t width = 512;
  const std::size_t bytes = quick ? std::size_t{1} << 23 : std::size_t{1} << 30;
  const std::size_t rows = bytes / sizeof(float) / width;
  const element_value formula{width};
  here_array first("here", rows, width);
  there_array second("there", rows, width);
  ferry::init::custom(run.exec(), first, formula);
  const int threads = Kokkos::DefaultHostExecutionSpace().concurrency();
  std::vector<std::pair<double, std::string>> uploads, downloads;
  const auto near = ferry::make_ref(first);
  const auto far = ferry::make_ref(second);
  for (const std::int64_t kib : {512, 1024, 2048, 4096})
    for (const int workers : {2, 4, 6, 8, 12, 16})
      for (const int depth : {2, 3})
        for (const bool past : {false, true}) {
          if ((quick && (kib != 1024 || workers > 4)) || (workers > threads && workers != 2)) continue;
          const ferry::detail::slot_tuning how{kib << 10, workers, depth, past, past};
          const facts setting = {{"slot_kib", kib},
                                 {"workers", std::int64_t{workers}},
                                 {"slots", std::int64_t{depth}},
                                 {"stores", std::string(past ? "past the caches" : "ordinary")}};
          const auto result =
              time_copy(run, "copy_sweep.to_device." + slots_text(how), setting, second,
                        static_cast<double>(bytes), over_the_link(), formula, [&](int) {
                          return ferry::detail::copy_array<ferry::path::staged>(run.exec(), near, far, how);
                        });
          uploads.emplace_back(result.gb_per_s(), slots_text(how));
          const auto back =
              time_copy(run, "copy_sweep.from_device." + slots_text(how), setting, first,
                        static_cast<double>(bytes), back_over_the_link(), formula, [&](int) {
                          return ferry::detail::copy_array<ferry::path::staged>(run.exec(), far, near, how);
                        });
          downloads.emplace_back(back.gb_per_s(), slots_text(how));
        }
  print_best("to the device", uploads);
  print_best("from the device", downloads);
}

/// Rows of page-locked memory, two row lengths apart, by transfers and by kernels: from which length on do
/// transfers win?
void rows_apart(session& run) {
  const bool quick = run.chosen().quick;
  run.limit_calls(5, 1);
  const std::size_t bytes = quick ? std::size_t{1} << 20 : std::size_t{1} << 28;
  for (std::int64_t row_bytes = 32; row_bytes <= 16384; row_bytes *= 2) {
    const auto width = row_bytes / static_cast<std::int64_t>(sizeof(float));
    const auto rows = static_cast<std::int64_t>(bytes) / row_bytes;
    ferry::tensor<float, ferry::pinned_space> wide("wide", rows, 2 * width);
    there_array dense("dense", rows, width);
    auto left = ferry::make_ref(wide);
    left.extents[1] = width;
    const auto upload =
        ferry::detail::box_of(left, ferry::make_ref(dense)).ordered(ferry::detail::copy_box::side::target);
    const auto download =
        ferry::detail::box_of(ferry::make_ref(dense), left).ordered(ferry::detail::copy_box::side::target);
    ferry::init::zeros(run.exec(), wide);
    ferry::init::zeros(run.exec(), dense);
    const auto add = [&](const std::string& name, const char* ceiling, const auto& copy) {
      figure result;
      result.name = "copy_sweep.pitched." + name + "." + bytes_text(row_bytes);
      result.setting = {{"row_bytes", row_bytes}};
      result.bytes = static_cast<double>(bytes);
      result.counts = "payload";
      result.ceiling = run.ceiling(ceiling);
      result.time = measure(run, 1, copy);
      result.verified = true;  // copy.pitched checks both ways
      run.results().add(result);
    };
    add("transfer.to_device", "ceiling.h2d", [&](int) {
      ferry::detail::transfer_box<ferry_bench::exec_space, float>(run.exec(), "rows", dense.data(),
                                                                  wide.data(), upload);
    });
    add("kernel.to_device", "ceiling.h2d", [&](int) {
      ferry::detail::launch_box<ferry_bench::exec_space, float, float>(run.exec(), "rows", dense.data(),
                                                                       wide.data(), upload);
    });
    add("transfer.from_device", "ceiling.d2h", [&](int) {
      ferry::detail::transfer_box<ferry_bench::exec_space, float>(run.exec(), "rows", wide.data(),
                                                                  dense.data(), download);
    });
    add("kernel.from_device", "ceiling.d2h", [&](int) {
      ferry::detail::launch_box<ferry_bench::exec_space, float, float>(run.exec(), "rows", wide.data(),
                                                                       dense.data(), download);
    });
  }
}

const registration of_slots{"copy_sweep.slots", slots};
const registration of_rows{"copy_sweep.pitched", rows_apart};

}  // namespace
}  // namespace ferry_bench
