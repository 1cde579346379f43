// SPDX-License-Identifier: Apache-2.0
#include "typed_table.hpp"

namespace ferry_tables {
template std::unique_ptr<table> make_in<ferry::pageable_space>(const std::string&, std::size_t, std::size_t);
template std::unique_ptr<table> load_in<ferry::pageable_space>(const std::string&, const std::string&);
}  // namespace ferry_tables
