// SPDX-License-Identifier: Apache-2.0
#include "../../src/io/unit_digests.hpp"
#include "io/checkpoint_kit.hpp"

#include <ferry/io.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/quantized.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

/// Saves of changes, which compare digests of units with those that the folder keeps.
namespace ferry_test::unit_digests_test {

namespace optim = ferry::optim;
namespace detail = ferry::detail;

std::string read_file(const std::string& path) {
  std::ifstream source(path, std::ios::binary);
  REQUIRE(source);
  return {std::istreambuf_iterator<char>(source), {}};
}
void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The number of the newest generation, and the bytes of pieces in its data file.
std::uint64_t newest(const ferry::io::checkpoint& run) { return run.generations().back(); }
std::uint64_t written(const ferry::io::checkpoint& run) {
  return std::filesystem::file_size(run.path() + "/data-" + std::to_string(newest(run))) - 4096;
}
std::string digests_of(const ferry::io::checkpoint& run) {
  return run.path() + "/digests-" + std::to_string(newest(run));
}

/// Rows whose bytes the test writes by itself: no verb is called.
struct table_of_bytes {
  std::size_t rows, row_bytes;
  ferry::tensor<std::uint8_t, ferry::pageable_space> table, back;

  table_of_bytes(std::size_t row_count, std::size_t bytes)
      : rows(row_count), row_bytes(bytes), table("table", rows, row_bytes), back("back", rows, row_bytes) {
    auto random = generator(rows);
    put(table, values<std::uint8_t>(random, rows * row_bytes));
  }
  [[nodiscard]] std::size_t bytes() const { return rows * row_bytes; }
  /// A row, or neighbouring ones of at most 4 KiB; 4 KiB of a row that has more than 64.
  [[nodiscard]] std::size_t unit() const {
    if (row_bytes > 65536) return 4096;
    return row_bytes >= 4096 ? row_bytes : 4096 / row_bytes * row_bytes;
  }
  [[nodiscard]] std::size_t chunk() const { return (std::size_t{1} << 22) / unit() * unit(); }
  /// True for the bytes that a save of changed bytes writes: a patch for each chunk, each but the last one followed
  /// by a gap up to 64 bytes.
  [[nodiscard]] bool are_written(std::uint64_t count, const std::set<std::size_t>& changed) const {
    std::set<std::pair<std::size_t, std::size_t>> units;
    for (const auto place : changed) units.insert({place / chunk(), place % chunk() / unit()});
    std::uint64_t most = 0;
    for (auto begin = units.begin(); begin != units.end();) {
      const auto end = units.lower_bound({begin->first + 1, 0});
      most += (static_cast<std::uint64_t>(std::distance(begin, end)) * (unit() + 4) + 63) / 64 * 64;
      begin = end;
    }
    return count <= most && count + 64 > most;
  }
  void add_to(ferry::io::checkpoint& run) { run.add("table", table); }
  bool loads_from(const std::string& path) {
    put(back, std::vector<std::uint8_t>(bytes()));
    ferry::io::checkpoint run(path);
    run.add("table", back);
    run.load({.partial = true});
    return take(back) == take(table);
  }
};

TEST_CASE("digests are those of XXH3", "[io][checkpoint][digests]") {
  // From the library's own tables of test vectors: no bytes, seed 0.
  CHECK(detail::digest_of(nullptr, 0) == detail::unit_digest{0x6001c324468d497fu, 0x99aa06d3014798d8u});
}

TEST_CASE("a device's digests are sums over mixed words, wherever the bytes lie",
          "[io][checkpoint][digests]") {
  const auto mixed = [](std::uint64_t bits) {
    for (const std::uint64_t factor : {0xff51afd7ed558ccdu, 0xc4ceb9fe1a85ec53u})
      bits = (bits ^ (bits >> 33)) * factor;
    return bits ^ (bits >> 33);
  };
  auto random = generator(700);
  for (int turn = 0; turn < 40; ++turn) {
    const std::size_t size = 1 + random() % 20000, unit = 1 + random() % 6000,
                      count = (size + unit - 1) / unit;
    const std::size_t shift = random() % 8;
    auto bytes = values<std::uint8_t>(random, size + shift);
    std::vector<detail::unit_digest> digests(count), expected(count);
    const auto sum = [&](std::vector<detail::unit_digest>& target) {
      const ferry::kernels::digest_units kernel{bytes.data() + shift, static_cast<std::int64_t>(size),
                                                static_cast<std::int64_t>(unit), target.data()};
      for (std::size_t i = 0; i < count * 32; ++i) kernel(static_cast<std::int64_t>(i));
    };
    sum(digests);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint8_t> part(
          bytes.begin() + static_cast<std::ptrdiff_t>(shift + i * unit),
          bytes.begin() + static_cast<std::ptrdiff_t>(shift + std::min(size, (i + 1) * unit)));
      part.resize((part.size() + 7) / 8 * 8);
      for (std::size_t k = 0; k < part.size() / 8; ++k) {
        std::uint64_t word = 0;
        std::memcpy(&word, part.data() + 8 * k, 8);
        const std::uint64_t low = mixed(word ^ (8 * (k + 1) * 0x9e3779b97f4a7c15u));
        expected[i].low += low;
        expected[i].high += mixed(low + 8 * (k + 1) * 0xd6e8feb86659fd93u);
      }
    }
    CHECK(digests == expected);
    // One bit, and two words that change places, are seen.
    bytes[shift + random() % size] ^= static_cast<std::uint8_t>(1u << random() % 8);
    std::vector<detail::unit_digest> later(count);
    sum(later);
    CHECK(later != digests);
    if (unit < 16 || size < 16) continue;
    std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(shift),
                     bytes.begin() + static_cast<std::ptrdiff_t>(shift) + 8,
                     bytes.begin() + static_cast<std::ptrdiff_t>(shift) + 8);
    std::vector<detail::unit_digest> swapped(count);
    sum(swapped);
    CHECK(swapped.front().low != later.front().low);
    CHECK(swapped.front().high != later.front().high);
  }
}

TEST_CASE("a save of changes writes the units with changed bytes, and nothing else",
          "[io][checkpoint][digests]") {
  // Rows of 1 byte to more than 64 KiB; the last units and chunks are shorter than the others.
  const std::pair<std::size_t, std::size_t> shapes[] = {
      {9000001, 1}, {70001, 132}, {9001, 1024}, {2222, 4096}, {2001, 4097}, {160, 65536}, {99, 65537}};
  for (const auto& [rows, row_bytes] : shapes) {
    CAPTURE(rows, row_bytes);
    const temporary_folder folder;
    table_of_bytes now(rows, row_bytes);
    auto random = generator(701);
    ferry::io::checkpoint run(folder.path() + "/run");
    now.add_to(run);
    run.save();
    CHECK(written(run) >= now.bytes());
    run.save({.changes = true});
    CHECK(written(run) == 0);
    const std::size_t unit = now.unit(), chunk = now.chunk(), size = now.bytes();
    // Single bytes at the edges of units, of chunks and of the array.
    for (const std::size_t place :
         {std::size_t{0}, unit - 1, unit, chunk - 1, chunk, chunk + unit - 1, size - 1}) {
      CAPTURE(place);
      now.table.data()[place] ^= 1;
      run.save({.changes = true});
      CHECK(now.are_written(written(run), {place}));
    }
    CHECK(now.loads_from(run.path()));
    run.save();
    for (int turn = 0; turn < 6; ++turn) {
      std::set<std::size_t> changed;
      const std::size_t count = 1 + random() % (row_bytes == 65536 ? 3 : 40), first = random() % (size - 40);
      for (std::size_t i = 0; i < count; ++i) changed.insert(turn % 2 == 0 ? random() % size : first + i);
      for (const auto place : changed)
        now.table.data()[place] ^= static_cast<std::uint8_t>(1 + random() % 255);
      if (turn < 3)
        run.save({.changes = true});
      else
        run.save_async(exec_space{}, {.changes = true, .snapshot_bytes = turn == 4 ? 0 : ~std::size_t{0}})
            .wait();
      CHECK(now.are_written(written(run), changed));
      CHECK(now.loads_from(run.path()));
    }
  }
}

TEST_CASE("digests that are missing, damaged or another checkpoint's are not trusted",
          "[io][checkpoint][digests]") {
  const temporary_folder folder;
  table_of_bytes now(5000, 1000);
  ferry::io::checkpoint run(folder.path() + "/run", {.keep = 2});
  now.add_to(run);
  run.save();
  const auto is_whole = [&](const std::function<void(const std::string&)>& spoil) {
    const std::string path = digests_of(run);
    spoil(path);
    // Bytes that are not those of the file must not be taken for what it holds.
    now.table.data()[4711] ^= 1;
    run.save({.changes = true});
    const bool whole = written(run) >= now.bytes();
    CHECK(now.loads_from(run.path()));
    now.table.data()[4711] ^= 1;
    run.save({.changes = true});  // the digests of the save before are there
    CHECK(now.are_written(written(run), {4711}));
    CHECK(now.loads_from(run.path()));
    return whole;
  };
  CHECK_FALSE(is_whole([](const std::string&) {}));
  CHECK(is_whole([](const std::string& path) { std::filesystem::remove(path); }));
  const std::size_t length = read_file(digests_of(run)).size();
  for (const std::size_t place :
       {std::size_t{0}, std::size_t{8}, std::size_t{16}, std::size_t{31}, std::size_t{32}, std::size_t{40},
        std::size_t{5000}, length - 5, length - 1}) {
    CAPTURE(place);
    CHECK(is_whole([&](const std::string& path) {
      std::string bytes = read_file(path);
      bytes.at(place) = static_cast<char>(bytes.at(place) ^ 4);
      write_file(path, bytes);
    }));
  }
  for (const std::size_t count : {std::size_t{0}, std::size_t{31}, length - 16, length - 1, length + 1})
    CHECK(is_whole([&](const std::string& path) {
      std::string bytes = read_file(path);
      bytes.resize(count);
      write_file(path, bytes);
    }));
  // Intact ones of the generation before, under the newest one's number.
  const std::string earlier = read_file(digests_of(run));
  now.table.data()[4711] ^= 1;
  run.save({.changes = true});
  CHECK(is_whole([&](const std::string& path) { write_file(path, earlier); }));
  std::string path_of_folder;
  CHECK(is_whole([&](const std::string& path) {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path_of_folder = path);
  }));
}

TEST_CASE("a save that does not succeed leaves the digests of the newest generation",
          "[io][checkpoint][digests]") {
  const temporary_folder folder;
  table_of_bytes now(5000, 1000);
  ferry::io::checkpoint run(folder.path() + "/run");
  now.add_to(run);
  run.save();
  const auto content_of = [&] {
    detail::checkpoint_content content;
    auto& entry = content.entries.emplace_back();
    entry.name = "table";
    entry.kind = "array";
    content.arrays.push_back(detail::as_stored("", ferry::make_ref(now.table), "table"));
    entry.arrays.push_back(content.arrays.back().schema);
    return content;
  };
  now.table.data()[1000000] ^= 1;
  {  // ends before its last step
    detail::checkpoint_save lost(run.path(), {}, content_of(), true);
    lost.write(0, lost.chunks(), 2);
    CHECK(now.are_written(lost.written(), {1000000}));
  }
  {  // ends between its digests and its manifest
    detail::manifest next = detail::read_manifest(run.path());
    next.number = 2;
    detail::write_digests(run.path(), next,
                          {{detail::digest_kind::xxh3, std::vector<detail::unit_digest>(1250)}});
    write_file(run.path() + "/digests-2.1-0.part", "half of a file");
  }
  {
    const detail::folder_lock busy(run.path());
    CHECK_THROWS_AS(run.save({.changes = true}), ferry::io_error);
  }
  now.table.data()[3] ^= 1;
  run.save({.changes = true});
  CHECK(now.are_written(written(run), {3, 1000000}));
  CHECK(now.loads_from(run.path()));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(run.path())) ++files;
  CHECK(files == 5);  // manifest, lock, digests and two data files
}

TEST_CASE("objects that share a folder, and arrays that change, are compared by the folder's digests",
          "[io][checkpoint][digests]") {
  const temporary_folder folder;
  table_of_bytes now(5000, 1000), second(5000, 1000), wide(2500, 2000);
  const std::string path = folder.path() + "/run";
  ferry::io::checkpoint first(path), partner(path), elsewhere(folder.path() + "/there");
  for (auto* run : {&first, &partner, &elsewhere}) {
    now.add_to(*run);
    run->save();
  }
  auto random = generator(702);
  std::set<std::size_t> in_path, in_second_path;  // changed bytes since the last save
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t place = random() % now.bytes();
    now.table.data()[place] = static_cast<std::uint8_t>(now.table.data()[place] + 1);
    in_path.insert(place), in_second_path.insert(place);
    auto* const run = std::vector<ferry::io::checkpoint*>{&first, &partner, &elsewhere}[random() % 3];
    auto& changed = run == &elsewhere ? in_second_path : in_path;
    run->save({.changes = true});
    CHECK(now.are_written(written(*run), changed));
    CHECK(now.loads_from(run->path()));
    changed.clear();
  }
  // A load changes the table; the digests of the file then are the table's.
  first.save();
  now.table.data()[77] ^= 1;
  first.load();
  first.save({.changes = true});
  CHECK(written(first) == 0);
  // A named save leaves them, and so does a load of it.
  now.table.data()[78] ^= 1;
  first.save({.changes = true, .name = "best"});
  now.table.data()[5555] ^= 1;
  first.save({.changes = true});
  CHECK(now.are_written(written(first), {78, 5555}));
  // Another name, further entries, other extents and other types are written whole.
  ferry::io::checkpoint renamed(path), more(path), reshaped(path), typed(path);
  renamed.add("second", now.table);
  renamed.save({.changes = true});
  CHECK(written(renamed) >= now.bytes());
  more.add("table", second.table), more.add("second", now.table);
  more.save({.changes = true});
  CHECK((written(more) >= now.bytes() && written(more) < 2 * now.bytes()));
  CHECK(second.loads_from(path));
  reshaped.add("table", wide.table), reshaped.add("second", now.table);
  reshaped.save({.changes = true});
  CHECK((written(reshaped) >= now.bytes() && written(reshaped) < 2 * now.bytes()));
  CHECK(wide.loads_from(path));
  const ferry::tensor_view same_bytes(reinterpret_cast<std::int8_t*>(wide.table.data()), wide.rows,
                                      wide.row_bytes);
  typed.add("table", same_bytes), typed.add("second", now.table);
  typed.save({.changes = true});
  CHECK((written(typed) >= now.bytes() && written(typed) < 2 * now.bytes()));
  typed.save({.changes = true});
  CHECK(written(typed) == 0);
}

TEST_CASE("a folder without digests, whose units are rows, is written whole once",
          "[io][checkpoint][digests]") {
  const temporary_folder folder;
  table_of_bytes now(5000, 1000);
  ferry::io::checkpoint run(folder.path() + "/run");
  now.add_to(run);
  detail::make_folder(run.path());
  detail::manifest old;
  old.number = 1;
  auto& entry = old.entries.emplace_back();
  entry.name = "table";
  entry.kind = "array";
  auto& array = entry.arrays.emplace_back();
  array.dtype = "u8";
  array.extents = {now.rows, now.row_bytes};
  array.unit_bytes = 1000;
  array.chunk_bytes = 4194000;
  detail::piece_file data(run.path(), 1);
  for (std::size_t place = 0; place < array.chunk_count(); ++place) {
    array.chunks.push_back(
        {data.append(reinterpret_cast<const std::byte*>(now.table.data()) + place * 4194000,
                     static_cast<std::size_t>(array.bytes_of_chunk(place))),
         {}});
    array.chunks.back().piece.file = 0;
  }
  old.files.push_back({1, data.size()});
  data.finish();
  data.keep();
  detail::write_manifest(run.path(), old);
  CHECK(now.loads_from(run.path()));
  now.table.data()[9] ^= 1;
  run.save({.changes = true});
  CHECK(written(run) >= now.bytes());
  CHECK(now.loads_from(run.path()));
  run.save({.changes = true});
  CHECK(written(run) == 0);
  CHECK(now.loads_from(run.path()));
}

TEMPLATE_TEST_CASE("training resumes from saves of changes", "[io][checkpoint][digests]",
                   ferry::step_count::global, ferry::step_count::per_row, ferry::step_count::catch_up) {
  const temporary_folder folder;
  const exec_space exec;
  using run_type = training_run<float, ferry::device_space, optim::adam, TestType>;
  run_type training(optim::adam{.lr = 0.01}), resumed(optim::adam{}, 1);
  ferry::io::checkpoint saving(folder.path() + "/run"), loading(folder.path() + "/run"),
      whole(folder.path() + "/whole");
  training.add_to(saving);
  resumed.add_to(loading);
  training.add_to(whole);
  saving.save();
  for (std::int64_t begin = 0; begin < 24; begin += 3) {
    training.train(begin, begin + 3, true);
    if (begin % 2 == 0)
      saving.save({.changes = true});
    else
      saving.save_async(exec, {.changes = true}).wait();
    loading.load();
    training.require_same(resumed);
    whole.save();
    run_type plain(optim::adam{}, 2);
    ferry::io::checkpoint reading(whole.path());
    plain.add_to(reading);
    reading.load();
    plain.require_same(resumed);
    if (begin % 4 == 0) {  // goes on from the file, and saves into it
      resumed.train(begin + 3, begin + 4, true);
      loading.save({.changes = true});
      training.train(begin + 3, begin + 4, true);
      saving.save({.changes = true});
      loading.load();
      training.require_same(resumed);
    }
  }
}

TEST_CASE("quantized tables, records and slices have digests", "[io][checkpoint][digests]") {
  const temporary_folder folder;
  const exec_space exec;
  auto random = generator(703);
  constexpr std::size_t rows = 20000, width = 64;
  const optim::adam rule{.lr = 0.1};
  const auto numbers = make<ferry::mapped_space>("numbers", rows, width, values<float>(random, rows * width));
  using quantized = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space>;
  quantized codes("codes", rows, width), codes_back("codes", rows, width);
  ferry::quantize(exec, numbers, codes).wait();
  auto records = optim::make_records<float, ferry::mapped_space>(rule, "records", rows, 6);
  ferry::init::uniform(exec, records.table(), -1, 1, 3);
  ferry::tensor<float, ferry::mapped_space> part("part", rows, 7);
  ferry::init::uniform(exec, part, 0, 1, 1);
  auto slice = part.rows_between(100, rows - 100);
  ferry::tensor<float, ferry::pageable_space> part_back("part", rows - 200, 7),
      weights_back("weights", rows, 6);
  auto state_back = optim::make_state(rule, weights_back);
  ferry::io::checkpoint run(folder.path() + "/run"), back(folder.path() + "/run");
  run.add("codes", codes), run.add("adam", rule, records), run.add("part", slice);
  back.add("codes", codes_back), back.add("part", part_back);
  back.add("adam/weights", weights_back), back.add("adam", rule, state_back);
  run.save();
  const auto everything = written(run);
  for (int turn = 0; turn < 8; ++turn) {
    const auto row = indices<std::int64_t>(random, 3, rows - 200);
    ferry::scatter(exec, codes, row,
                   make<ferry::mapped_space>("rows", 3, width, values<float>(random, 3 * width)))
        .wait();
    ferry::step(exec, rule, records, row, make<ferry::mapped_space>("grads", 3, 6, values<float>(random, 18)))
        .wait();
    ferry::scatter(exec, slice, row, make<ferry::mapped_space>("rows", 3, 7, values<float>(random, 21)))
        .wait();
    if (turn % 2 == 0)
      run.save({.changes = true});
    else
      run.save_async(exec, {.changes = true}).wait();
    // Codes, scales, weights, two fields and the slice: three units each.
    CHECK(written(run) <= 6 * (3 * (4096 + 4) + 64) + 1024);
    CHECK(written(run) < everything / 20);
    back.load();
    ferry::tensor<float, ferry::pageable_space> now("now", rows - 200, 7), weights("weights", rows, 6),
        first("exp_avg", rows, 6);
    ferry::copy(exec, slice, now).wait();
    ferry::copy(exec, records.table(), weights).wait();
    ferry::copy(exec, records.field("exp_avg"), first).wait();
    CHECK(take(part_back) == take(now));
    CHECK(take(weights_back) == take(weights));
    CHECK(take(state_back.field("exp_avg")) == take(first));
    CHECK(bits(codes_back.codes()) == bits(codes.codes()));
    CHECK(bits(codes_back.scales()) == bits(codes.scales()));
  }
}

TEST_CASE("no change is lost while another thread writes", "[io][checkpoint][digests]") {
  const temporary_folder folder;
  constexpr std::size_t many = 50000, wide = 33;
  auto random = generator(704);
  ferry::tensor<float, ferry::mapped_space> table("table", many, wide);
  put(table, values<float>(random, many * wide));
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  run.save();
  std::atomic<bool> stop{false};
  std::thread writer([&, own = generator(705)]() mutable {
    const exec_space exec;
    while (!stop) {
      const auto rows = indices<std::int64_t>(own, 50, many);
      std::vector<float> elements(50 * wide, static_cast<float>(own() % 1000));
      ferry::scatter(exec, table, rows, ferry::tensor_view(elements.data(), 50, wide)).wait();
    }
  });
  // Such a save may hold any content of a row that is being written. The row is in the next one.
  for (int turn = 0; turn < 15; ++turn) run.save_async(exec_space{}, {.changes = true}).wait();
  stop = true;
  writer.join();
  run.save({.changes = true});
  ferry::tensor<float, ferry::pageable_space> back("back", many, wide);
  ferry::io::checkpoint reading(run.path());
  reading.add("table", back);
  reading.load();
  CHECK(take(back) == take(table));
}

}  // namespace ferry_test::unit_digests_test
