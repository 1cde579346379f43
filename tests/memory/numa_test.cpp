// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <sys/syscall.h>
#include <unistd.h>

namespace ferry_test::numa_test {

namespace numa = ferry::host::numa;
using nodes = std::vector<int>;
using policy = numa::placement::policy;

TEST_CASE("lists of nodes are read as Linux writes them", "[numa]") {
  CHECK(numa::parse_node_list("0\n") == nodes{0});
  CHECK(numa::parse_node_list("0-3\n") == nodes{0, 1, 2, 3});
  CHECK(numa::parse_node_list("0,2-3,8") == nodes{0, 2, 3, 8});
  CHECK(numa::parse_node_list("4-5,0-1\n") == nodes{0, 1, 4, 5});
  CHECK(numa::parse_node_list("1,1,0-1") == nodes{0, 1});
  CHECK(numa::parse_node_list("7-7") == nodes{7});
  for (const char* none :
       {"", "\n", "a", "0-", "-1\n", "0,", ",0", "3-1", "0 1", "0-1-2", "0,,1", "0x1", "99999999999"}) {
    CAPTURE(none);
    CHECK(numa::parse_node_list(none).empty());
  }
}

TEST_CASE("a device's node is read as Linux writes it", "[numa]") {
  CHECK(numa::parse_node("1\n") == 1);
  CHECK(numa::parse_node("0") == 0);
  CHECK(numa::parse_node("-1\n") == -1);
  CHECK(numa::parse_node("") == -1);
  CHECK(numa::parse_node("0-1") == -1);
  CHECK(numa::first_line("/there/is/no/such/file").empty());
}

TEST_CASE("memory is placed near its device where there is a choice", "[numa]") {
  const auto chosen = numa::near_device(1, {0, 1});
  CHECK(chosen.how == policy::preferred);
  CHECK(chosen.nodes == nodes{1});
  CHECK(numa::near_device(0, {0}).how == policy::unset);
  CHECK(numa::near_device(0, {}).how == policy::unset);
  CHECK(numa::near_device(-1, {0, 1}).how == policy::unset);
  CHECK(numa::near_device(2, {0, 1}).how == policy::unset);  // a node without memory
}

TEST_CASE("tables of a host are spread over all nodes", "[numa]") {
  const auto chosen = numa::spread({0, 2});
  CHECK(chosen.how == policy::interleaved);
  CHECK(chosen.nodes == nodes{0, 2});
  CHECK(numa::spread({0}).how == policy::unset);
  CHECK(numa::spread({}).how == policy::unset);
}

TEST_CASE("advice that the system does not take changes nothing", "[numa]") {
  int not_a_page = 0;
  CHECK(numa::advise(&not_a_page, sizeof not_a_page, {}) == 0);
  CHECK(numa::advise(reinterpret_cast<char*>(&not_a_page) + 1, 1, {policy::preferred, {0}}) == 0);
  CHECK(numa::advise(nullptr, 4096, {policy::preferred, {1 << 12}}) == 0);
  CHECK(numa::describe(0).empty());
  CHECK_THAT(numa::describe(2), ContainsSubstring("NUMA node 1"));
  CHECK_THAT(numa::describe(-1), ContainsSubstring("interleaved"));
}

TEST_CASE("advice is the policy of the pages, before and after their first touch", "[numa]") {
  constexpr std::size_t bytes = std::size_t{4} << 20;
  constexpr unsigned long of_address = 2;  // MPOL_F_ADDR
  const auto [choice, mode] = GENERATE(std::pair(policy::preferred, 1), std::pair(policy::interleaved, 3));
  void* const pages = ferry::host::map_pages("test", "placed", bytes);
  const int advised = numa::advise(pages, bytes, {choice, {0}});
  int set = -1;
  std::array<unsigned long, 16> mask{};
  const long status = ::syscall(SYS_get_mempolicy, &set, mask.data(), 1024ul, pages, of_address);
  static_cast<char*>(pages)[bytes - 1] = 1;
  ferry::host::unmap_pages(pages, bytes);
  if (status != 0) SKIP("this system keeps its memory policies to itself");
  if (advised == 0) {
    CHECK(set != mode);
  } else {
    CHECK(advised == (choice == policy::preferred ? 1 : -1));
    CHECK(set == mode);
    CHECK(mask[0] == 1);
  }
}

TEMPLATE_TEST_CASE("a table says where it was placed", "[numa]", ferry::pinned_space, ferry::mapped_space) {
  const auto text = ferry::tensor<char, TestType>("table", std::size_t{3} << 20).describe();
  CAPTURE(text);
  if (numa::nodes_with_memory().size() < 2)
    CHECK(text.find("NUMA") == std::string::npos);
  else if (ferry::detail::device_is_host<TestType>)
    CHECK_THAT(text, ContainsSubstring("interleaved"));
}

}  // namespace ferry_test::numa_test
