// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/random.hpp"

#include <ferry/io.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry_test::python_io_test {
namespace {

struct point {
  float x;
  std::int64_t id;
};

template <class T>
std::vector<T> random_bits(std::mt19937_64& random, std::size_t count) {
  std::vector<T> made(count);
  for (auto& each : made) {
    std::uint64_t bits = random();
    if (std::is_same_v<T, bool>) bits &= 0x0101010101010101u;
    std::memcpy(static_cast<void*>(&each), &bits, std::min(sizeof(T), sizeof bits));
  }
  return made;
}

template <class T, class Space>
std::string raw(const ferry::tensor<T, Space>& from) {
  const auto host = take(from);
  return {reinterpret_cast<const char*>(host.data()), host.size() * sizeof(T)};
}

template <class T>
void write_for_python(const std::string& folder, const char* name,
                      const ferry::tensor<T, ferry::mapped_space>& table) {
  ferry::io::save_npy(folder + "/ferry_" + name + ".npy", table);
  write_bytes(folder + "/ferry_" + name + ".raw", raw(table));
}

template <class T>
ferry::tensor<T, ferry::mapped_space> table_of(std::mt19937_64& random) {
  return make<ferry::mapped_space>("table", 1031, 3, random_bits<T>(random, 1031 * 3));
}

template <class T>
void read_from_python(const std::string& folder, const ferry::io::safetensors_file& m,
                      const std::string& name) {
  CAPTURE(name);
  for (const char* kind : {"1C", "1F", "2C", "2F", "3C", "3F"}) {
    const std::string path = folder + "/numpy_" + name + "_" + kind;
    const auto table = ferry::io::load_npy<T>(path + ".npy");
    CHECK(table.rank() == (kind[1] == 'F' ? 3 : 2));
    CHECK((raw(table) == bytes_of(path + ".raw")));
  }
  CHECK((raw(m.load<T>(name)) == bytes_of(folder + "/python_" + name + ".raw")));
}

}  // namespace

TEST_CASE("NumPy and safetensors read ferry's files, and ferry theirs", "[io][python]") {
  const std::string script = tests_folder() + "/io/python_io.py";
  if (::access(script.c_str(), R_OK) != 0) SKIP("the sources of the tests are not on this machine");
  std::mt19937_64 random(std::random_device{}());
  const temporary_folder folder;
  const auto i8 = table_of<std::int8_t>(random);
  const auto i16 = table_of<std::int16_t>(random);
  const auto i32 = table_of<std::int32_t>(random);
  const auto i64 = table_of<std::int64_t>(random);
  const auto u8 = table_of<std::uint8_t>(random);
  const auto u16 = table_of<std::uint16_t>(random);
  const auto u32 = table_of<std::uint32_t>(random);
  const auto u64 = table_of<std::uint64_t>(random);
  const auto f16 = table_of<ferry::half_t>(random);
  const auto f32 = table_of<float>(random);
  const auto f64 = table_of<double>(random);
  const auto b16 = table_of<ferry::bhalf_t>(random);
  const auto& at = folder.path();
  write_for_python(at, "int8", i8);
  write_for_python(at, "int16", i16);
  write_for_python(at, "int32", i32);
  write_for_python(at, "int64", i64);
  write_for_python(at, "uint8", u8);
  write_for_python(at, "uint16", u16);
  write_for_python(at, "uint32", u32);
  write_for_python(at, "uint64", u64);
  write_for_python(at, "float16", f16);
  write_for_python(at, "float32", f32);
  write_for_python(at, "float64", f64);
  write_for_python(at, "bfloat16", b16);
  write_for_python(at, "struct", table_of<point>(random));
  ferry::io::save_safetensors(at + "/ferry.safetensors",
                              {{"int8", i8},
                               {"int16", i16},
                               {"int32", i32},
                               {"int64", i64},
                               {"uint8", u8},
                               {"uint16", u16},
                               {"uint32", u32},
                               {"uint64", u64},
                               {"float16", f16},
                               {"float32", f32},
                               {"float64", f64},
                               {"bfloat16", b16}},
                              {{"made by", "ferry \u2708"}});

  const auto e4m3 = table_of<ferry::fp8_e4m3_t>(random);
  const auto e5m2 = table_of<ferry::fp8_e5m2_t>(random);
  const auto e8m0 = table_of<ferry::ue8m0_t>(random);
  const auto e2m1 = table_of<ferry::fp4_e2m1_pair_t>(random);
  write_for_python(at, "float8_e4m3fn", e4m3);
  write_for_python(at, "float8_e5m2", e5m2);
  write_for_python(at, "float8_e8m0fnu", e8m0);
  write_bytes(at + "/ferry_float4_e2m1fn_x2.raw", raw(e2m1));
  ferry::io::save_safetensors(
      at + "/ferry_fp8.safetensors",
      {{"float8_e4m3fn", e4m3}, {"float8_e5m2", e5m2}, {"float8_e8m0fnu", e8m0}, {"float4_e2m1fn_x2", e2m1}});

  const int status =
      std::system((std::string("'") + FERRY_TESTS_PYTHON + "' '" + script + "' '" + at + "'").c_str());
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
    SKIP("Python's packages numpy, ml_dtypes and safetensors are missing");
  REQUIRE(status == 0);

  const auto m = ferry::io::open_safetensors(at + "/python.safetensors");
  CHECK(m.names().size() == 13);
  read_from_python<std::int8_t>(at, m, "int8");
  read_from_python<std::int16_t>(at, m, "int16");
  read_from_python<std::int32_t>(at, m, "int32");
  read_from_python<std::int64_t>(at, m, "int64");
  read_from_python<std::uint8_t>(at, m, "uint8");
  read_from_python<std::uint16_t>(at, m, "uint16");
  read_from_python<std::uint32_t>(at, m, "uint32");
  read_from_python<std::uint64_t>(at, m, "uint64");
  read_from_python<ferry::half_t>(at, m, "float16");
  read_from_python<float>(at, m, "float32");
  read_from_python<double>(at, m, "float64");
  read_from_python<ferry::bhalf_t>(at, m, "bfloat16");
  const auto bytes = ferry::io::open_safetensors(at + "/python_fp8.safetensors");
  const auto read_bytes = [&]<class T>(T, const std::string& name) {
    CAPTURE(name);
    const std::string expected = bytes_of(at + "/numpy_" + name + ".raw");
    CHECK(expected.size() == 257 * 3);
    CHECK((raw(ferry::io::load_npy<T>(at + "/numpy_" + name + ".npy")) == expected));
    CHECK((raw(bytes.load<T>(name)) == expected));
  };
  read_bytes(ferry::fp8_e4m3_t{}, "float8_e4m3fn");
  read_bytes(ferry::fp8_e5m2_t{}, "float8_e5m2");
  read_bytes(ferry::ue8m0_t{}, "float8_e8m0fnu");
  const auto flags = ferry::io::load_npy<bool>(at + "/numpy_bool_1F.npy");
  CHECK((std::string(reinterpret_cast<const char*>(flags.data()), flags.size()) ==
         bytes_of(at + "/numpy_bool_1F.raw")));
}

}  // namespace ferry_test::python_io_test
