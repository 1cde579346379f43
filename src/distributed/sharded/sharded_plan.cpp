// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/error.hpp>

#include <string>

namespace ferry::detail {

void require_planned(const char* verb, const planned_tables& plan, bool by_group, const planned_tables& call,
                     function_ref<std::string()> describe) {
  const auto refuse = [&](const std::string& reason) {
    throw invalid_argument(std::string("ferry::") + verb + ": the plan " + reason + "; the table is " +
                           describe());
  };
  if (!(plan.comm == call.comm)) refuse("was made for a table of another communicator");
  if (plan.rows != call.rows) refuse("was made for tables of " + std::to_string(plan.rows) + " rows");
  if (plan.spread != call.spread) refuse("was made for tables with another sharding");
  if (!call.bounds.empty() && plan.bounds != call.bounds)
    refuse("was made with " + std::string(plan.bounds) + ", the verb can't change that to " +
           std::string(call.bounds));
  const int rank = call.first;
  if (by_group != (rank < 0) || (rank >= 0 && plan.first != rank))
    refuse("was made by a thread that acts for another rank, or for the group");
}

}  // namespace ferry::detail
