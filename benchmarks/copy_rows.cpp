// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/check.hpp"
#include "support/measure.hpp"
#include "support/tables.hpp"
#include "support/traffic.hpp"

#include <ferry/ferry.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// Rows of many tables moved between two memories, with random rows on both sides: the blocks of paged caches.
namespace ferry_bench {
namespace {

/// Of all rows of a list of tables, those at the positions of the lists must be the rows that were read, and no other may
/// differ from poison.
struct wrong_moved {
  const float* target;
  const std::int64_t* reads;
  const std::int64_t* writes;
  std::int64_t positions, rows;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t width = expected.width, column = i % width, item = i / width;
    const std::int64_t table = item / positions, p = item - table * positions;
    if (target[(table * rows + writes[p]) * width + column] != expected(table * rows + reads[p], column))
      ++wrong;
  }
};
struct not_poison {
  const float* target;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& written) const {
    if (target[i] != -1.0F) ++written;
  }
};

/// Block writes[p] of each layer must be block reads[p] of the source, in which layers lie apart.
struct wrong_blocks {
  const float* target;
  const std::int64_t* reads;
  const std::int64_t* writes;
  std::int64_t positions, rows, width, layer_stride, block_stride;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t column = i % width, item = i / width, layer = item / positions,
                       p = item - layer * positions;
    if (target[layer * layer_stride + writes[p] * block_stride + column] !=
        expected(layer, reads[p] * width + column))
      ++wrong;
  }
};

/// Tables in two memories, half of whose rows travel.
template <class From, class To>
class cache_pair {
 public:
  std::int64_t tables, positions, rows, row_bytes;

  cache_pair(session& run, std::int64_t row_size, std::int64_t bytes, std::int64_t most_tables)
      : tables(std::min(most_tables, bytes / row_size)),
        positions(std::max<std::int64_t>(1, bytes / row_size / tables)),
        rows(2 * positions),
        row_bytes(row_size),
        source_("from", tables * rows, row_size / 4),
        target_("to", tables * rows, row_size / 4),
        reads_(index_sets::make<distinct_row>(run, positions, static_cast<std::size_t>(rows))),
        writes_(index_sets::make<distinct_row>(run, positions, static_cast<std::size_t>(rows))) {
    ferry::init::custom(run.exec(), source_, element_value{width()});
    ferry::init::constant(run.exec(), target_, -1.0F);
    for (std::int64_t t = 0; t < tables; ++t) {
      sources_.push_back(table_of(source_, t));
      targets_.push_back(table_of(target_, t));
    }
  }

  [[nodiscard]] std::int64_t width() const { return row_bytes / 4; }
  [[nodiscard]] double bytes() const { return static_cast<double>(tables * positions * row_bytes); }

  template <class... Policies>
  ferry::ticket move(const exec_space& exec, int call, Policies... policies) {
    return ferry::copy_rows(exec, ferry::for_each_table(sources_), reads_[call],
                            ferry::for_each_table(targets_), writes_[call],
                            ferry::duplicates::assume_unique{}, policies...);
  }

  /// Blocks as baselines move them, by address.
  [[nodiscard]] std::vector<baseline::copies_at_once::part> blocks(int call) {
    std::vector<baseline::copies_at_once::part> list;
    const auto read = to_host(reads_[call]), written = to_host(writes_[call]);
    for (std::int64_t t = 0; t < tables; ++t)
      for (std::size_t p = 0; p < read.size(); ++p)
        list.push_back({target_.data() + (t * rows + written[p]) * width(),
                        source_.data() + (t * rows + read[p]) * width(),
                        static_cast<std::size_t>(row_bytes)});
    return list;
  }
  [[nodiscard]] baseline::row_block_copy job(int call) {
    return {source_.data(), reads_[call].data(), target_.data(), writes_[call].data(),
            tables,         positions,           rows,           row_bytes};
  }

  template <class Work>
  std::int64_t wrong_after(const session& run, const Work& work) {
    ferry::init::constant(run.exec(), target_, -1.0F);
    work(0);
    run.exec().fence("ferry_bench::wait");
    const std::int64_t moved = tables * positions * width();
    const auto written = count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(target_.size()),
                                  not_poison{target_.data()});
    return std::abs(written - moved) +
           count_of(
               run.exec(), "ferry_bench::check", moved,
               wrong_moved{target_.data(), reads_[0].data(), writes_[0].data(), positions, rows, {width()}});
  }

 private:
  template <class Space>
  using view = ferry::tensor_view<float, Space>;
  template <class Space>
  view<Space> table_of(ferry::tensor<float, Space>& memory, std::int64_t table) const {
    const std::array<std::size_t, 2> extents{static_cast<std::size_t>(rows),
                                             static_cast<std::size_t>(width())};
    return view<Space>(memory.data() + table * rows * width(),
                       ferry::shape<ferry::dynamic_rank>::make(extents, memory.label(), sizeof(float)));
  }

  ferry::tensor<float, From> source_;
  ferry::tensor<float, To> target_;
  index_sets reads_, writes_;
  std::vector<view<From>> sources_;
  std::vector<view<To>> targets_;
};

/// Times work(call) on the tables and checks what a call moves.
template <class From, class To, class Work>
void time_moves(session& run, const std::string& name, cache_pair<From, To>& caches, const traffic& moved,
                int burst, const Work& work) {
  figure result;
  result.name = name;
  result.setting = {{"tables", caches.tables}, {"rows", caches.positions}, {"row_bytes", caches.row_bytes}};
  result.bytes = caches.bytes() * moved.factor;
  result.counts = moved.counts;
  result.ceiling = run.ceiling(moved.ceiling);
  result.time = measure(run, burst, work);
  const auto discard = [&](int call) {
    if constexpr (std::is_void_v<decltype(work(call))>)
      work(call);
    else
      work(call).wait();
  };
  conclude(run, result, caches.wrong_after(run, discard));
}

std::int64_t total_bytes(const session& run) { return std::int64_t{1} << (run.chosen().quick ? 21 : 29); }

template <class From, class To, class... Policies>
void blocks(session& run, const std::string& name, std::int64_t row_bytes, const traffic& moved,
            Policies... policies) {
  cache_pair<From, To> caches(run, row_bytes, total_bytes(run), 64);
  time_moves(run, name, caches, moved, 1,
             [&](int call) { return caches.move(run.exec(), call, policies...); });
}

/// "copy_rows.pinned.to_device.4096B"
template <class Host>
void over_link(session& run) {
  const std::string name = "copy_rows." + std::string(Host::name.substr(0, Host::name.find('_')));
  for (const std::int64_t row_bytes : {512, 576, 656, 1152, 4096, 8192, 32768, 131072, 524288}) {
    blocks<Host, ferry::device_space>(run, name + ".to_device." + bytes_text(row_bytes), row_bytes,
                                      over_the_link());
    blocks<ferry::device_space, Host>(run, name + ".from_device." + bytes_text(row_bytes), row_bytes,
                                      back_over_the_link());
  }
}

/// Loops and batches of the vendor's copies, and the copy engines of ferry.
template <class From, class To>
void engines(session& run, const std::string& way, const traffic& moved) {
  for (const std::int64_t row_bytes : {8192, 32768, 131072, 524288}) {
    cache_pair<From, To> caches(run, row_bytes, total_bytes(run), 64);
    const std::string end = way + bytes_text(row_bytes);
    const baseline::copies_at_once queues(run.exec(), 2);
    std::vector<std::vector<baseline::copies_at_once::part>> lists;
    for (int set = 0; set < run.chosen().index_sets; ++set) lists.push_back(caches.blocks(set));
    const auto list = [&](int call) -> auto& { return lists[static_cast<std::size_t>(call) % lists.size()]; };
    time_moves(run, "copy_rows.engines" + end, caches, moved, 1,
               [&](int call) { return caches.move(run.exec(), call, ferry::path::copy_engine{}); });
    time_moves(run, "copy_rows.vendor.batch" + end, caches, moved, 1,
               [&](int call) { queues.enqueue_batch(run.exec(), list(call)); });
    if (row_bytes == 131072) continue;
    time_moves(run, "copy_rows.vendor.loop" + end, caches, moved, 1, [&](int call) {
      for (const auto& part : list(call)) baseline::copy(run.exec(), part.target, part.source, part.bytes);
    });
  }
}
void engine_copies(session& run) {
  engines<ferry::pinned_space, ferry::device_space>(run, ".to_device.", over_the_link());
  engines<ferry::device_space, ferry::pinned_space>(run, ".from_device.", back_over_the_link());
}

/// Few bytes, few blocks of the device: next to a kernel written by hand.
void few_blocks(session& run) {
  const auto compare = [&](const std::string& name, std::int64_t row_bytes, std::int64_t bytes,
                           int hand_blocks, int burst, auto... policies) {
    cache_pair<ferry::mapped_space, ferry::device_space> caches(run, row_bytes, bytes, 64);
    time_moves(run, name, caches, over_the_link(), burst,
               [&](int call) { return caches.move(run.exec(), call, policies...); });
    time_moves(run, name + ".by_hand", caches, over_the_link(), burst,
               [&](int call) { baseline::copy_rows(run.exec(), caches.job(call), hand_blocks); });
    compare_rates(run, name, name + ".by_hand");
  };
  compare("copy_rows.small.4096B", 4096, std::int64_t{1} << 21, 64, 20);
  compare("copy_rows.blocks8.32768B", 32768, total_bytes(run), 8, 1, ferry::occupancy::blocks<8>{});
  compare("copy_rows.blocks16.32768B", 32768, total_bytes(run), 16, 1, ferry::occupancy::blocks<16>{});
}

/// [layers, blocks, heads, tokens, dim] in mapped memory to [blocks, layers, heads, tokens, dim] on the device.
void layouts(session& run) {
  const bool quick = run.chosen().quick;
  const std::size_t layers = quick ? 4 : 64, heads = 8, tokens = 16, dim = 64, count = quick ? 8 : 256;
  ferry::tensor<float, ferry::mapped_space> source("from", layers, 2 * count, heads, tokens, dim);
  ferry::tensor<float, ferry::device_space> equal("equal", layers, 2 * count, heads, tokens, dim),
      by_block("by_block", 2 * count, layers, heads, tokens, dim);
  const auto width = static_cast<std::int64_t>(heads * tokens * dim);
  ferry::init::custom(run.exec(), source, element_value{static_cast<std::int64_t>(source.width())});
  const auto reads = index_sets::make<distinct_row>(run, static_cast<std::int64_t>(count), 2 * count);
  const auto writes = index_sets::make<distinct_row>(run, static_cast<std::int64_t>(count), 2 * count);
  const auto unique = ferry::duplicates::assume_unique{};
  const auto to_equal = [&](int call) {
    return ferry::copy_rows(run.exec(), ferry::rows_along<1>(source), reads[call],
                            ferry::rows_along<1>(equal), writes[call], unique);
  };
  const auto to_blocks = [&](int call) {
    return ferry::copy_rows(run.exec(), ferry::rows_along<1>(source), reads[call],
                            ferry::rows_along<0>(by_block), writes[call], unique);
  };
  const auto wrong = [&](const auto& copy, const float* target, std::int64_t layer_stride,
                         std::int64_t block_stride) {
    copy(0).wait();
    const std::int64_t rows = 2 * static_cast<std::int64_t>(count);
    return count_of(
        run.exec(), "ferry_bench::check", static_cast<std::int64_t>(layers * count) * width,
        wrong_blocks{target, reads[0].data(), writes[0].data(), static_cast<std::int64_t>(count), rows, width,
                     layer_stride, block_stride, element_value{static_cast<std::int64_t>(source.width())}});
  };
  const auto time = [&](const std::string& name, const auto& copy, const float* target,
                        std::int64_t layer_stride, std::int64_t block_stride) {
    figure result;
    result.name = name;
    result.bytes = static_cast<double>(layers * count) * static_cast<double>(width) * 4;
    result.counts = "payload";
    result.ceiling = run.ceiling("ceiling.h2d");
    result.time = measure(run, 1, copy);
    conclude(run, result, wrong(copy, target, layer_stride, block_stride));
  };
  ferry::init::constant(run.exec(), equal, -1.0F);
  ferry::init::constant(run.exec(), by_block, -1.0F);
  time("copy_rows.layouts.equal", to_equal, equal.data(), 2 * static_cast<std::int64_t>(count) * width,
       width);
  time("copy_rows.layouts.different", to_blocks, by_block.data(), width,
       static_cast<std::int64_t>(layers) * width);
  compare_rates(run, "copy_rows.layouts.different", "copy_rows.layouts.equal");
}

void inside_device(session& run) {
  for (const std::int64_t row_bytes : {512, 65536})
    blocks<ferry::device_space, ferry::device_space>(run, "copy_rows.device." + bytes_text(row_bytes),
                                                     row_bytes, inside_the_device());
}

/// Both directions at once, by an instance each.
void both_ways(session& run) {
  const auto instances = Kokkos::Experimental::partition_space(run.exec(), 1, 1);
  cache_pair<ferry::mapped_space, ferry::device_space> up(run, 32768, total_bytes(run), 64);
  cache_pair<ferry::device_space, ferry::mapped_space> down(run, 32768, total_bytes(run), 64);
  figure result;
  result.name = "copy_rows.both_ways.32768B";
  result.bytes = up.bytes() + down.bytes();
  result.counts = "payload, both ways";
  result.ceiling = run.ceiling("ceiling.link_both_ways");
  const auto work = [&](int call) {
    auto first = up.move(instances[0], call), second = down.move(instances[1], call);
    first.then(run.exec());
    second.then(run.exec());
    first.detach();
    second.detach();
  };
  result.time = measure(run, 1, work);
  conclude(run, result, up.wrong_after(run, work) + down.wrong_after(run, work));
}

/// A matrix product alone, and while another instance copies blocks without a pause.
void beside_product(session& run) {
  if constexpr (std::is_same_v<exec_space, Kokkos::DefaultHostExecutionSpace>)
    return run.results().skipped("copy_rows.product", "a host has no copy engines");
  const auto side = Kokkos::Experimental::partition_space(run.exec(), 1).at(0);
  const baseline::matrix_product product(run.exec(), run.chosen().quick ? 256 : 8192);
  const auto time = [&](const std::string& name) {
    figure result;
    result.name = name;
    result.time = measure(run, 4, [&](int) { product.enqueue(); });
    result.verified = true;
    run.results().add(result);
    return result.time.device.median();
  };
  const double alone = time("copy_rows.product.alone");
  const auto beside = [&](const std::string& name, auto& caches, auto... policies) {
    std::atomic<bool> ends{false};
    std::atomic<int> copies{0};
    std::thread copier([&] {
      for (int call = 0; !ends; ++call, ++copies) caches.move(side, call, policies...).wait();
    });
    while (copies == 0) std::this_thread::yield();
    const double ms = time(name);
    ends = true;
    copier.join();
    run.results().ratio(name, "copy_rows.product.alone", ms / alone);
  };
  cache_pair<ferry::pinned_space, ferry::device_space> large(run, 524288, total_bytes(run), 64);
  beside("copy_rows.product.beside_engines.524288B", large, ferry::path::copy_engine{});
  cache_pair<ferry::mapped_space, ferry::device_space> small(run, 32768, total_bytes(run), 64);
  beside("copy_rows.product.beside_blocks8.32768B", small, ferry::occupancy::blocks<8>{});
  beside("copy_rows.product.beside_full.32768B", small);
}

const registration pinned_blocks{"copy_rows.pinned", over_link<ferry::pinned_space>};
const registration mapped_blocks{"copy_rows.mapped", over_link<ferry::mapped_space>};
const registration by_engines{"copy_rows.engines", engine_copies};
const registration limited{"copy_rows.few_blocks", few_blocks};
const registration strides{"copy_rows.layouts", layouts};
const registration device_blocks{"copy_rows.device", inside_device};
const registration two_ways{"copy_rows.both_ways", both_ways};
const registration next_to_product{"copy_rows.product", beside_product};

}  // namespace
}  // namespace ferry_bench
