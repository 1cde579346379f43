// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/error.hpp>

#include <string>

namespace ferry::detail {

void require_planned(const char* verb, const planned_tables& plan, bool by_group,
                     const planned_tables& wanted, function_ref<std::string()> describe) {
  const auto refuse = [&](const std::string& reason) {
    throw invalid_argument(std::string("ferry::") + verb + ": the plan " + reason + "; the table is " +
                           describe());
  };
  if (!(plan.comm == wanted.comm)) refuse("was made for a table of another communicator");
  if (plan.rows != wanted.rows) refuse("was made for tables of " + std::to_string(plan.rows) + " rows");
  if (plan.spread != wanted.spread) refuse("was made for tables with another sharding");
  if (!wanted.bounds.empty() && plan.bounds != wanted.bounds)
    refuse("was made with " + std::string(plan.bounds) + ", the verb can't change that to " +
           std::string(wanted.bounds));
  const int here = wanted.first;
  if (by_group != (here < 0) || (here >= 0 && plan.first != here))
    refuse("was made by a thread that acts for another rank, or for the group");
}

}  // namespace ferry::detail
