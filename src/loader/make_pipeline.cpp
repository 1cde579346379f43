// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/loader/detail/make_pipeline.hpp>

#include "hazards.hpp"
#include "row_reader.hpp"

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/loader/detail/batch_order.hpp>
#include <ferry/loader/detail/gather_listed.hpp>
#include <ferry/loader/detail/lane.hpp>
#include <ferry/loader/detail/slot.hpp>

#include <string>
#include <utility>

namespace ferry::detail {

namespace {

slot_layout layout_of(const source_facts& source, std::int64_t batch, const char* user) {
  slot_layout layout;
  layout.user = user;
  for (std::size_t i = 0; i < source.element_bytes.size(); ++i)
    layout.add(source.fields[i], source.element_bytes[i], batch);
  return layout;
}

std::size_t slots_of(const prefetch_options& options) {
  return static_cast<std::size_t>(options.depth == 0 ? options.workers + 2 : options.depth);
}

void require_ahead(int ahead) {
  if (ahead < 1 || ahead > kernels::most_ahead)
    throw invalid_argument("ferry::row_prefetcher: ahead is " + std::to_string(ahead) +
                           ", must be from 1 to " + std::to_string(kernels::most_ahead));
}

}  // namespace

template <ExecutionSpace Exec>
std::shared_ptr<pipeline> make_pipeline(const Exec& exec, const source_facts& source,
                                        std::unique_ptr<batch_maker> maker, const prefetch_options& options) {
  const batch_order order(source.samples, options);
  const slot_layout layout = layout_of(source, options.batch, "prefetcher");
  const std::size_t depth = slots_of(options);
  return std::make_shared<pipeline>(make_lane(exec, layout, depth), std::move(maker), layout, order, options,
                                    depth);
}

template <ExecutionSpace Exec>
std::shared_ptr<row_pipeline> make_row_pipeline(const Exec& exec, const row_request<Exec>& request,
                                                const source_facts& source,
                                                std::unique_ptr<batch_maker> maker,
                                                const prefetch_options& options) {
  require_ahead(options.ahead);
  const batch_order order(source.samples, options, "row_prefetcher");
  const slot_layout layout = layout_of(source, options.batch, "row_prefetcher");
  const auto ahead = static_cast<std::size_t>(options.ahead);
  const std::size_t depth = slots_of(options) + ahead;
  auto ring = std::make_unique<pipeline>(make_lane(exec, layout, depth), std::move(maker), layout, order,
                                         options, depth, options.ahead + 1);
  const std::size_t positions = static_cast<std::size_t>(options.batch) * layout.fields.at(0).extents.width();
  return std::make_shared<row_pipeline>(std::move(ring), make_row_reader(exec, request, positions, ahead + 1),
                                        ahead);
}

#define FERRY_PIPELINES_OF(EXEC)                                                                           \
  template std::shared_ptr<pipeline> make_pipeline(const EXEC&, const source_facts&,                       \
                                                   std::unique_ptr<batch_maker>, const prefetch_options&); \
  template std::shared_ptr<row_pipeline> make_row_pipeline(                                                \
      const EXEC&, const row_request<EXEC>&, const source_facts&, std::unique_ptr<batch_maker>,            \
      const prefetch_options&);
FERRY_FOR_EXECUTION_SPACES(FERRY_PIPELINES_OF)
#undef FERRY_PIPELINES_OF

}  // namespace ferry::detail
