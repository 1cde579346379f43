// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <catch2/generators/catch_generators.hpp>

namespace ferry_test::malformed_test {

/// A .npy file with this dictionary.
std::string npy_of(const std::string& dictionary, std::size_t data_bytes, int version = 1) {
  std::string result("\x93NUMPY", 6);
  result += static_cast<char>(version);
  result += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    result += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  return result + dictionary + std::string(data_bytes, '\0');
}
std::string safetensors_of(const std::string& json, std::size_t data_bytes) {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i) & 0xff);
  return text + json + std::string(data_bytes, '\0');
}

/// The message of the load's error; empty if it accepts the file.
template <class Load>
std::string refusal(const std::string& path, const std::string& bytes, const Load& load) {
  write_bytes(path, bytes);
  try {
    load(path);
    return {};
  } catch (const ferry::io_error& error) {
    CHECK(std::string(error.what()).find(path) != std::string::npos);
    return error.what();
  }
}

const auto load_npy = [](const std::string& path) { static_cast<void>(ferry::io::load_npy<float>(path)); };
const auto open = [](const std::string& path) { static_cast<void>(ferry::io::open_safetensors(path)); };

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& type = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

TEST_CASE("malformed .npy files are refused with a reason", "[io][malformed]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/x.npy";
  const auto says = [&](const std::string& dictionary, std::size_t bytes, const std::string& reason) {
    CAPTURE(dictionary);
    CHECK_THAT(refusal(path, npy_of(dictionary, bytes), load_npy), ContainsSubstring(reason));
  };
  const auto accepts = [&](const std::string& dictionary, std::size_t bytes, int version = 1) {
    CAPTURE(dictionary);
    CHECK(refusal(path, npy_of(dictionary, bytes, version), load_npy).empty());
  };
  const std::string rest = ", 'fortran_order': False, 'shape': ";
  accepts("{'descr': '<f4'" + rest + "(3,), }\n", 12);
  accepts("{\"shape\":(3,),'fortran_order':True,'descr':\"<f4\"}", 12);
  accepts("{'descr': '<f4'" + rest + "(3L, 1L)}  \n", 12);
  accepts("{'descr': '<f4'" + rest + "()}", 4);
  accepts("{'descr': '<f4'" + rest + "(0, 1000000)}", 0);
  accepts("{'descr': '<f4'" + rest + "(3,)}", 12, 2);
  accepts("{'descr': '<f4'" + rest + "(3,)}", 12, 3);

  says("{'descr': '>f4'" + rest + "(3,)}", 12, "big-endian");
  accepts("{'descr': '=f4'" + rest + "(3,)}", 12);
  says("{'descr': 'f4'" + rest + "(3,)}", 12, "byte order");
  says("{'descr': '@f4'" + rest + "(3,)}", 12, "byte order");
  says("{'descr': '>U1'" + rest + "(3,)}", 12, "big-endian");
  says("{'descr': '>V2'" + rest + "(3,)}", 6, "big-endian");
  says("{'descr': '=f3'" + rest + "(3,)}", 9, "unknown");
  says("{'descr': '|f4'" + rest + "(3,)}", 12, "byte order");
  says("{'descr': '<f5'" + rest + "(3,)}", 15, "unknown");
  says("{'descr': '<x4'" + rest + "(3,)}", 12, "unknown");
  says("{'descr': '<f99999999999999999999'" + rest + "(3,)}", 12, "unknown");
  says("{'descr': '<M8[ns]'" + rest + "(3,)}", 24, "dates");
  says("{'descr': '|V0'" + rest + "(3,)}", 0, "no bytes");
  says("{'descr': [('a', '<f4'), ('b', '>i4')]" + rest + "(3,)}", 24, "big-endian");
  says("{'descr': [('a', '<f4', (4294967296, 4294967296))]" + rest + "(3,)}", 24, "too large");
  says("{'descr': " + std::string(40, '[') + rest + "(3,)}", 0, "malformed");
  std::string deep = "'<f4'";
  for (int i = 0; i < 40; ++i) deep = "[('a', " + deep + ")]";
  says("{'descr': " + deep + rest + "(3,)}", 12, "nested too deeply");
  says("{'descr': '<f4'" + rest + "(3)}", 12, "comma");
  says("{'descr': '<f4'" + rest + "(-3,)}", 12, "without a sign");
  says("{'descr': '<f4'" + rest + "(03,)}", 12, "leading zero");
  says("{'descr': '<f4'" + rest + "(3.0,)}", 12, "malformed");
  says("{'descr': '<f4'" + rest + "(1,1,1,1,1,1,1,1,3)}", 12, "more than 8 extents");
  says("{'descr': '<f4'" + rest + "(9223372036854775808,)}", 12, "63 bits");
  says("{'descr': '<f4'" + rest + "(4611686018427387904, 4611686018427387904)}", 12, "address space");
  says("{'descr': '<f4'" + rest + "(0, 4611686018427387904, 4611686018427387904)}", 0, "address space");
  says("{'descr': '<f4'" + rest + "(1099511627776,)}", 12, "claims 4398046511104 bytes");
  says("{'descr': '<f4'" + rest + "(3,)}", 13, "claims 12 bytes of elements, and the file has 13");
  says("{'descr': '<f4'" + rest + "(3,), 'more': 1}", 12, "unknown");
  says("{'descr': '<f4'" + rest + "(3,), 'shape': (3,)}", 12, "comes twice");
  says("{'descr': '<f4', 'shape': (3,)}", 12, "missing");
  says("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", 12, "neither True nor False");
  says("{'descr': '<f4'" + rest + "(3,)} import os", 12, "more after the dictionary");
  says("{'descr': '<f4'" + rest + "(3,)", 12, "malformed");
  says("__import__('os').system('true')", 12, "malformed");
  says("", 12, "malformed");
  CHECK_THAT(refusal(path, npy_of("{}", 0, 4), load_npy), ContainsSubstring("version is 4.0"));
  CHECK_THAT(refusal(path, "PK\x03\x04 a zip file, .npz", load_npy), ContainsSubstring("no .npy file"));
  CHECK_THAT(refusal(path, std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), load_npy),
             ContainsSubstring("claims 4294967295 bytes"));
}

TEST_CASE("malformed safetensors files are refused with a reason", "[io][malformed]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/x.safetensors";
  const auto says = [&](const std::string& json, std::size_t bytes, const std::string& reason) {
    CAPTURE(json);
    CHECK_THAT(refusal(path, safetensors_of(json, bytes), open), ContainsSubstring(reason));
  };
  const auto accepts = [&](const std::string& json, std::size_t bytes) {
    CAPTURE(json);
    CHECK(refusal(path, safetensors_of(json, bytes), open).empty());
  };
  const std::string a = entry("a", "[3]", "[0,12]");
  accepts("{}", 0);
  accepts("{" + a + "}   ", 12);
  accepts("{ " + a + " , \"__metadata__\" : { } }", 12);
  accepts("{" + entry("b", "[0,9]", "[12,12]") + "," + a + "}", 12);
  accepts("{\"__metadata__\": null ," + a + "}", 12);
  accepts("{" + entry("b", "[3]", "[12,17]", "F5") + "," + a + "}", 17);
  accepts("{" + entry("b", "[2]", "[12,13]", "F4") + "," + a + "}", 13);
  accepts("{" + entry("\\u00e4\\ud83d\\ude00", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4);

  says("{" + a + "," + entry("b", "[1]", "[16,20]") + "}", 20, "comes after a hole");
  says("{" + entry("a", "[1]", "[4,8]") + "}", 8, "comes after a hole");
  says("{" + a + "," + entry("b", "[1]", "[8,12]") + "}", 12, "overlaps");
  says("{" + a + "," + entry("b", "[3]", "[0,12]") + "}", 12, "overlaps");
  says("{" + entry("a", "[3]", "[12,0]") + "}", 12, "hole");
  says("{" + entry("z", "[0]", "[0,0]") + "," + entry("a", "[3]", "[0,16]") + "}", 16,
       "another number of bytes");
  says("{" + entry("a", "[3]", "[0,12]", "F64") + "}", 12, "another number of bytes");
  says("{" + a + "," + entry("b", "[3]", "[11,14]", "F5") + "}", 14, "overlaps");
  says("{" + a + "," + entry("b", "[3]", "[13,16]", "F5") + "}", 16, "comes after a hole");
  says("{" + a + "," + entry("b", "[3]", "[12,17]", "F5") + "}", 16, "claims 17 bytes");
  says("{" + entry("b", "[3]", "[5,0]", "F5") + "}", 5, "hole");
  says("{" + entry("b", "[0]", "[0,1]", "F5") + "}", 1, "another number of bytes");
  says("{" + entry("b", "[4294967296,4294967296]", "[0,1]", "F5") + "}", 1, "another number of bytes");
  says("{" + entry("a", "[3]", "[0,2]", "F4") + "}", 2, "another number of bytes");
  says("{" + entry("a", "[4294967296,4294967296]", "[0,0]") + "}", 0, "another number of bytes");
  says("{" + a + "}", 13, "claims 12 bytes of tensors, and the file has 13");
  says("{" + a + "}", 11, "claims 12 bytes of tensors, and the file has 11");
  says("{" + a + "," + entry("a", "[1]", "[12,16]") + "}", 16, "\"a\" comes twice");
  says("{" + a + "," + entry("\\u0061", "[1]", "[12,16]") + "}", 16, "\"a\" comes twice");
  says("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "the metadata \"a\" comes twice");
  says("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "\"__metadata__\" comes twice");
  says("{\"__metadata__\":{\"a\":1}}", 0, "the value of \"a\" is of another type");
  says("{\"__metadata__\":{\"a\":null}}", 0, "the value of \"a\" is of another type");
  says("{\"__metadata__\":{\"a\":{}}}", 0, "the value of \"a\" is of another type");
  says("{\"__metadata__\":[]}", 0, "the value of \"__metadata__\" is of another type");
  says("{\"__metadata__\":nul}", 0, "it is no JSON");
  says("{\"a\":null}", 0, "the value of \"a\" is of another type");
  says("{\"a\":{\"dtype\":4}}", 0, "the value of \"dtype\" is of another type");
  says("{\"a\":{\"shape\":\"3\"}}", 0, "the value of \"shape\" is of another type");
  says("{\"a\":{\"shape\":[[3]]}}", 0, "the value of \"shape\" is of another type");
  says("{\"a\":{\"shape\":" + std::string(100000, '[') + "}}", 0,
       "the value of \"shape\" is of another type");
  says("{\"a\":" + std::string(100000, '[') + "}", 0, "the value of \"a\" is of another type");
  says("{\"__metadata__\":null,\"__metadata__\":{}}", 0, "\"__metadata__\" comes twice");
  says("{\"a\":{\"dtype\":\"F32\",\"shape\":[3]}}", 12, "lacks one of");
  says("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 12,
       "\"dtype\" comes twice");
  says("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12],\"x\":1}}", 12, "\"x\" is unknown");
  says("{" + entry("a", "[3]", "[0,12,13]") + "}", 12, "are not two");
  says("{" + entry("a", "[3]", "[12]") + "}", 12, "are not two");
  says("{" + entry("a", "[-3]", "[0,12]") + "}", 12, "a number has a sign");
  says("{" + entry("a", "[3.0]", "[0,12]") + "}", 12, "malformed");
  says("{" + entry("a", "[3e0]", "[0,12]") + "}", 12, "malformed");
  says("{" + entry("a", "[3]", "[0,18446744073709551628]") + "}", 12, "63 bits");
  says("{" + entry("a", "[3]", "[0,9223372036854775808]") + "}", 12, "63 bits");
  says("{" + entry("a", "[03]", "[0,12]") + "}", 12, "it is no JSON");
  says("{" + a + ",}", 12, "malformed");
  says("{" + a + "} x", 12, "expected end of input");
  says("{" + a + "}" + std::string("\0x", 2), 12, "is no JSON");
  says("{" + a + std::string("\0}", 2), 12, "is no JSON");
  says("{" + a, 12, "malformed");
  says(" {" + a + "}", 12, "does not begin");
  says("", 12, "does not begin");
  says("[]", 0, "does not begin");
  says("{\"\xff\":1}", 0, "byte 2 of the header is not UTF-8");
  says("{\"\xed\xa0\x80\":1}", 0, "not UTF-8");
  says("{\"\xc0\xaf\":1}", 0, "not UTF-8");
  says("{\"\xf4\x90\x80\x80\":1}", 0, "not UTF-8");
  says("{\"\xe4\xbd", 0, "not UTF-8");
  says("{\"\\ud83d\":1}", 0, "surrogate");
  says("{\"\\ude00\":1}", 0, "surrogate");
  says("{\"\\ud83d\\u0041\":1}", 0, "surrogate");
  says("{\"\\u12g4\":1}", 0, "4 hex digits");
  says("{\"\\x\":1}", 0, "after backslash");
  says("{\"a\nb\":1}", 0, "control character");
  CHECK_THAT(refusal(path, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10), open),
             ContainsSubstring("claims 9223372036854775807 bytes"));
  CHECK_THAT(refusal(path, std::string("\x40\0\0\0\0\0\0\0{}", 10), open),
             ContainsSubstring("ends within its header"));
}

TEST_CASE("a file that is cut is refused", "[io][malformed]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/cut";
  for (const char* name : {"f4.npy", "f8_fortran_3d.npy", "struct_v3.npy"}) {
    const std::string whole = bytes_of(golden(name));
    for (std::size_t length = 0; length < whole.size(); length += length < 200 ? 1 : 7)
      REQUIRE_FALSE(refusal(path, whole.substr(0, length), load_npy).empty());
    REQUIRE_FALSE(refusal(path, whole + "x", load_npy).empty());
  }
  const std::string whole = bytes_of(golden("all.safetensors"));
  for (std::size_t length = 0; length < whole.size(); length += length < 200 ? 1 : 7)
    REQUIRE_FALSE(refusal(path, whole.substr(0, length), open).empty());
  REQUIRE_FALSE(refusal(path, whole + "x", open).empty());
}

}  // namespace ferry_test::malformed_test
