// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <complex>

namespace ferry_test::npy_test {

struct point {
  float x;
  std::int64_t id;
};

struct packed_point {
  std::uint32_t words[3];
};

/// A number in the header of a file that save_npy wrote.
std::string dictionary_of(const std::string& path) {
  const std::string bytes = bytes_of(path);
  REQUIRE(bytes.size() >= 64);
  REQUIRE(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length =
      static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  CHECK((10 + length) % 64 == 0);
  std::string text = bytes.substr(10, length);
  REQUIRE(text.back() == '\n');
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

TEST_CASE("headers of Python 2 load", "[io][npy]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/old.npy";
  const auto write = [&](const std::string& dictionary) {
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(dictionary.size());
    bytes += '\0';
    write_bytes(path, bytes + dictionary + std::string(12, '\0'));
  };
  for (const char* const dictionary : {"{'descr': '<f4', 'fortran_order': False, 'shape': (3L,), }",
                                       "{u'descr': u'<f4', u'fortran_order': False, u'shape': (3L,), }",
                                       "{ u\"shape\": (3,), u'descr': '<f4', 'fortran_order': False}"}) {
    CAPTURE(dictionary);
    write(dictionary);
    CHECK(take(ferry::io::load_npy<float>(path)) == std::vector<float>(3));
  }
  struct named {
    float x;
  };
  write("{u'descr': [(u'x', u'<f4')], u'fortran_order': False, u'shape': (3,), }");
  CHECK(ferry::io::load_npy<named>(path).size() == 3);
  for (const char* const dictionary : {"{uu'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                                       "{u 'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                                       "{'descr': u, 'fortran_order': False, 'shape': (3,), }"}) {
    CAPTURE(dictionary);
    write(dictionary);
    CHECK_THROWS_AS(ferry::io::load_npy<float>(path), ferry::io_error);
  }
}

TEST_CASE("byte orders that NumPy reads without a change load", "[io][npy]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/order.npy";
  struct byte {
    unsigned char bits;
  };
  const auto bits_of = [&](const std::string& descr, auto sample) {
    using element = decltype(sample);
    std::string bytes("\x93NUMPY\x01\x00", 8);
    const std::string dictionary = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (3,), }";
    bytes += static_cast<char>(dictionary.size());
    bytes += '\0';
    bytes += dictionary;
    std::string data;
    for (std::size_t i = 0; i < 3 * sizeof(element); ++i) data += static_cast<char>(i + 1);
    write_bytes(path, bytes + data);
    const auto loaded = ferry::io::load_npy<element>(path);
    return std::string(reinterpret_cast<const char*>(loaded.data()), data.size()) == data;
  };
  for (const char* order : {"|", "<", ">", "="}) {
    CAPTURE(order);
    const auto named = [&](const char* type) { return "'" + std::string(order) + type + "'"; };
    CHECK(bits_of(named("u1"), std::uint8_t{}));
    CHECK(bits_of(named("i1"), std::int8_t{}));
    CHECK(bits_of(named("V1"), byte{}));
    CHECK(bits_of(named("f1"), byte{}));  // of ml_dtypes, which NumPy writes and does not read
    CHECK(bits_of("[('x', " + named("u1") + ")]", byte{}));
  }
  CHECK(bits_of("'=f4'", float{}));
  CHECK(bits_of("'=i8'", std::int64_t{}));
  CHECK(bits_of("'=f2'", ferry::half_t{}));
  CHECK(bits_of("'=c8'", std::complex<float>{}));
  CHECK(bits_of("[('x', '=f4'), ('id', '=i8')]", packed_point{}));
}

TEMPLATE_TEST_CASE("every byte but 0 of a file of booleans is true", "[io][npy][safetensors]",
                   ferry::device_space, ferry::pageable_space) {
  const temporary_folder folder;
  auto random = generator(381);
  std::string data(7 * 3, '\0');
  for (char& element : data) element = static_cast<char>(random() % 3 == 0 ? 0 : random());
  data[4] = 2;
  const auto is_right = [&](const std::vector<bool>& loaded, bool turned) {
    for (std::size_t i = 0; i < 7; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        if (loaded[i * 3 + j] != (data[turned ? j * 7 + i : i * 3 + j] != 0)) return false;
    return loaded.size() == data.size();
  };
  /// The bits, too: 0 or 1.
  const auto content = [](const auto& table) {
    std::vector<std::uint8_t> bytes(table.size());
    ferry::tensor<bool, ferry::pageable_space> host("host", table.rows(), table.width());
    ferry::copy(exec_space{}, table, host).wait();
    std::memcpy(bytes.data(), host.data(), bytes.size());
    std::vector<bool> flags;
    for (const std::uint8_t byte : bytes) {
      CHECK(byte <= 1);
      flags.push_back(byte != 0);
    }
    return flags;
  };
  const std::string path = folder.path() + "/flags.npy";
  for (const bool turned : {false, true}) {
    const std::string dictionary = std::string("{'descr': '|b1', 'fortran_order': ") +
                                   (turned ? "True" : "False") + ", 'shape': (7, 3), }";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(dictionary.size());
    bytes += '\0';
    write_bytes(path, bytes + dictionary + data);
    CHECK(is_right(content(ferry::io::load_npy<bool, TestType>(path)), turned));
    ferry::tensor<bool, TestType> loaded("into", 7, 3);
    ferry::io::load_npy(path, loaded);
    CHECK(is_right(content(loaded), turned));
  }
  const std::string json = R"({"flags":{"dtype":"BOOL","shape":[7,3],"data_offsets":[0,21]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(json.size());
  write_bytes(path, bytes + json + data);
  const auto file = ferry::io::open_safetensors(path);
  CHECK(is_right(content(file.load<bool, TestType>("flags")), false));
}

TEMPLATE_TEST_CASE("NumPy's golden files load", "[io][npy]", ferry::device_space, ferry::pageable_space) {
  const auto load = [](const char* name, auto element) {
    const auto table = ferry::io::load_npy<decltype(element), TestType>(golden(name), "weights");
    CHECK(table.label() == "weights");
    return table.size() >= 7 && is_golden(take(table));
  };
  CHECK(load("f4.npy", float{}));
  CHECK(load("f4_fortran.npy", float{}));
  CHECK(load("f8_fortran_3d.npy", double{}));
  CHECK(load("f2.npy", ferry::half_t{}));
  CHECK(load("bf16.npy", ferry::bhalf_t{}));
  CHECK(load("i8.npy", std::int64_t{}));
  CHECK(load("u1.npy", std::uint8_t{}));

  const auto table = ferry::io::load_npy<float, TestType>(golden("f4_fortran.npy"));
  CHECK(table.label() == golden("f4_fortran.npy"));
  CHECK(table.rank() == 2);
  CHECK(table.rows() == 5);
  CHECK(table.width() == 3);
  const auto cube = ferry::io::load_npy<double, TestType>(golden("f8_fortran_3d.npy"));
  CHECK(cube.rank() == 3);
  CHECK((cube.extent(0) == 4 && cube.extent(1) == 3 && cube.extent(2) == 5));
}

TEST_CASE("all number types load, and only as themselves", "[io][npy]") {
  const auto load = [](const char* name, auto element) {
    using T = decltype(element);
    const auto table = ferry::io::load_npy<T>(golden(name));
    return table.size() >= 7 && is_golden(take(table));
  };
  CHECK(load("i1.npy", std::int8_t{}));
  CHECK(load("i2.npy", std::int16_t{}));
  CHECK(load("i4.npy", std::int32_t{}));
  CHECK(load("u2.npy", std::uint16_t{}));
  CHECK(load("u4.npy", std::uint32_t{}));
  CHECK(load("u8.npy", std::uint64_t{}));
  CHECK(load("i8.npy", static_cast<long long>(0)));

  CHECK_THROWS_MATCHES(
      ferry::io::load_npy<float>(golden("f8_fortran_3d.npy")), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("f8_fortran_3d.npy") && ContainsSubstring("float64") &&
                     ContainsSubstring("not float32") && ContainsSubstring("convert_dtype")));
  CHECK_THROWS_AS(ferry::io::load_npy<std::uint32_t>(golden("i4.npy")), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::load_npy<std::uint16_t>(golden("bf16.npy")), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::load_npy<ferry::half_t>(golden("bf16.npy")), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::load_npy<bool>(golden("u1.npy")), ferry::invalid_argument);
  CHECK_THROWS_MATCHES(ferry::io::load_npy<float>(golden("f4_big.npy")), ferry::io_error,
                       MessageMatches(ContainsSubstring("big-endian")));
  CHECK_THROWS_MATCHES(ferry::io::load_npy<float>(golden("objects.npy")), ferry::io_error,
                       MessageMatches(ContainsSubstring("Python objects")));
}

TEST_CASE("booleans, single elements, no rows, structs", "[io][npy]") {
  const auto flags = ferry::io::load_npy<bool>(golden("b1.npy"));
  for (std::size_t i = 0; i < 15; ++i) CHECK(flags.data()[i] == (i * 3 % 11 != 0));
  const auto scalar = ferry::io::load_npy<float>(golden("scalar.npy"));
  CHECK((scalar.rank() == 1 && scalar.rows() == 1 && scalar(0) == 3.0f));
  const auto none = ferry::io::load_npy<float>(golden("empty.npy"));
  CHECK((none.rank() == 2 && none.rows() == 0 && none.width() == 3));

  const auto points = ferry::io::load_npy<point>(golden("struct.npy"));
  REQUIRE(points.rows() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(points(i).x == golden_value<float>(i));
    CHECK(points(i).id == golden_value<std::int64_t>(i));
  }
  CHECK(ferry::io::load_npy<std::array<float, 3>>(golden("struct_v3.npy")).rows() == 2);
  CHECK_THROWS_AS(ferry::io::load_npy<point>(golden("struct_v3.npy")), ferry::invalid_argument);
}

TEMPLATE_TEST_CASE("numbers convert where that is requested", "[io][npy]", ferry::device_space,
                   ferry::pageable_space) {
  constexpr ferry::io::convert_dtype converted;
  const auto load = [&](const char* name, auto element) {
    return is_golden(take(ferry::io::load_npy<decltype(element), TestType>(golden(name), "t", converted)));
  };
  CHECK(load("f4.npy", float{}));
  CHECK(load("f2.npy", float{}));
  CHECK(load("bf16.npy", float{}));
  CHECK(load("f8_fortran_3d.npy", float{}));
  CHECK(load("i8.npy", double{}));
  CHECK(load("f4.npy", std::int32_t{}));
  CHECK(load("f4.npy", ferry::bhalf_t{}));
  CHECK_THROWS_MATCHES(
      (ferry::io::load_npy<float, TestType>(golden("struct.npy"), "t", converted)), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("records of 16 bytes") && ContainsSubstring("no conversion")));
  CHECK_THROWS_AS((ferry::io::load_npy<float, TestType>(golden("b1.npy"), "t", converted)),
                  ferry::invalid_argument);
}

TEST_CASE("extents in the type must be the file's", "[io][npy]") {
  using fixed = ferry::extents<ferry::dyn, 3>;
  const auto table = ferry::io::load_npy<float, ferry::mapped_space, fixed>(golden("f4.npy"), "weights");
  CHECK(table.rows() == 5);
  CHECK_THROWS_AS((ferry::io::load_npy<float, ferry::mapped_space, ferry::extents<ferry::dyn, 4>>(
                      golden("f4.npy"), "weights")),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(
      (ferry::io::load_npy<double, ferry::mapped_space, fixed>(golden("f8_fortran_3d.npy"), "cube")),
      ferry::invalid_argument);
}

TEMPLATE_TEST_CASE("arrays of every space are saved and load again", "[io][npy]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  const temporary_folder folder;
  const std::string path = folder.path() + "/w.npy";
  const auto content = values<float>(random, 1031 * 17);
  const auto table = make<TestType>("table", 1031, 17, content);
  ferry::io::save_npy(path, table);
  CHECK(dictionary_of(path) == "{'descr': '<f4', 'fortran_order': False, 'shape': (1031, 17), }");
  CHECK(bytes_of(path).size() == 128 + content.size() * 4);
  CHECK(same_bits(take(ferry::io::load_npy<float, TestType>(path, "again")), content));
  CHECK(same_bits(take(ferry::io::load_npy<float, TestType>(exec_space{}, path, "again")), content));
  // A slice, over the file of the whole.
  ferry::io::save_npy(exec_space{}, path, table.rows_between(7, 9));
  CHECK(same_bits(take(ferry::io::load_npy<float, TestType>(path, "again")),
                  std::vector<float>(content.begin() + 7 * 17, content.begin() + 9 * 17)));
  CHECK(entries_of(folder.path()) == 1);
}

TEST_CASE("what the header says of an array", "[io][npy]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/w.npy";
  const auto saved = [&](const auto& array) {
    ferry::io::save_npy(path, array);
    const std::string text = dictionary_of(path);
    return text.substr(10, text.find(',') - 10) + text.substr(text.find("'shape': ") + 9);
  };
  CHECK(saved(std::vector<double>(7)) == "'<f8'(7,), }");
  CHECK(saved(std::vector<ferry::half_t>(7)) == "'<f2'(7,), }");
  CHECK(saved(std::vector<ferry::bhalf_t>(7)) == "'<V2'(7,), }");
  CHECK(saved(std::vector<std::int8_t>(0)) == "'|i1'(0,), }");
  CHECK(saved(std::vector<std::uint64_t>(7)) == "'<u8'(7,), }");
  CHECK(saved(std::vector<std::complex<float>>(7)) == "'<c8'(7,), }");
  CHECK(saved(std::array{true, false}) == "'|b1'(2,), }");
  CHECK(saved(std::vector<point>(7)) == "'|V16'(7,), }");
  CHECK(saved(std::vector<std::byte>(7)) == "'|u1'(7,), }");
  const ferry::tensor<float, ferry::pageable_space> deep("deep", 1, 2, 3, 4, 5, 6, 7, 8);
  CHECK(saved(deep) == "'<f4'(1, 2, 3, 4, 5, 6, 7, 8), }");
  CHECK(ferry::io::load_npy<float>(path).rank() == 8);
  CHECK_THROWS_MATCHES(ferry::io::save_npy(path, ferry::tensor<float, ferry::pageable_space>()),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring("empty handle")));
}

TEST_CASE("a strided View is saved in row-major order", "[io][npy]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/w.npy";
  const Kokkos::View<float**, Kokkos::LayoutLeft, exec_space> device_array("there", 5, 3);
  const auto mirror = Kokkos::create_mirror_view(device_array);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 3; ++j) mirror(i, j) = golden_value<float>(i * 3 + j);
  Kokkos::deep_copy(device_array, mirror);
  ferry::io::save_npy(path, device_array);
  CHECK(is_golden(take(ferry::io::load_npy<float>(path))));
  CHECK(bytes_of(path) == bytes_of(golden("f4.npy")));
}

}  // namespace ferry_test::npy_test
