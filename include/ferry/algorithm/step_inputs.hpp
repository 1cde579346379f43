#pragma once

#include <ferry/algorithm/index_access.hpp>
#include <ferry/execution/call.hpp>
#include <ferry/execution/host_side.hpp>
#include <ferry/execution/launch.hpp>
#include <ferry/execution/transfer.hpp>
#include <ferry/kernels/find_nonfinite.hpp>
#include <ferry/kernels/stage_pack.hpp>
#include <ferry/optim/update_log.hpp>
#include <ferry/tensor/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Stages of kernels as one pack.
template <class... Kernels>
struct pack_stages {
  static kernels::stage_pack<> of() { return {}; }
};
template <class First, class... Rest>
struct pack_stages<First, Rest...> {
  static kernels::stage_pack<First, Rest...> of(const First& first, const Rest&... rest) {
    return {first, pack_stages<Rest...>::of(rest...)};
  }
};

/// What the kernels of a step need beside table, state and gradients.
struct step_inputs {
  const void* on_host = nullptr;    ///< the updates of a log
  const void* on_device = nullptr;  ///< the same, in a device's memory
  std::int64_t first = 1;
  std::int64_t count = 0;
  const index_report* findings = nullptr;  ///< about the gradients, where kernels read them
  bool refused = false;                    ///< whether the host found that the gradients spoil the step

  /// The log's entries for kernels of the host and of `of`'s execution space.
  template <class Exec, class Log>
  void take_updates(call<Exec>& of, Log& log) {
    on_host = log.entries();
    first = log.first();
    count = log.size();
    if constexpr (!is_host_exec<Exec>) {
      of.refuse_capture(
          "but rows that count their steps need another update each time; use step_count::global");
      const auto lacking = log.lacking();
      const auto memory = make_ref(*lacking.memory);
      of.hold(lacking.memory);
      if (lacking.bytes != 0) {
        of.writes_to(memory);
        auto* copy = of.template pinned<std::byte>(static_cast<std::int64_t>(lacking.bytes));
        std::memcpy(copy, lacking.from, lacking.bytes);
        transfer(of.exec(), "ferry::step::updates", memory.data + lacking.begin, device_space::name, copy,
                 pinned_space::name, static_cast<std::int64_t>(lacking.bytes));
        log.sent();
      } else {
        of.reads_from(memory);
      }
      on_device = memory.data;
    }
  }

  template <class Exec, class Update>
  [[nodiscard]] const Update* updates_for() const {
    return static_cast<const Update*>(is_host_exec<Exec> ? on_host : on_device);
  }

  /// Looks at every value of the batch before anything is written. A path that occupies the calling thread learns the
  /// answer here, the others' kernels read it.
  template <bool Staged, class Exec, class Value, class Space>
  void look_for_nonfinite(call<Exec>& of, const std::string& label, const array_ref<Value, Space>& values) {
    using plain = std::remove_const_t<Value>;
    if (values.size() == 0) return;
    const auto look = [&](const auto& exec, const report_writer& report) {
      launch(exec, of.label_part(label, "find_nonfinite"), values.size(),
             kernels::find_nonfinite<plain>{values.data, values.row_stride(), fast_divisor(values.width()),
                                            report});
    };
    if constexpr (!Staged || is_host_exec<Exec>) {
      const report_writer report = of.report();
      look(of.exec(), report);
      findings = report.findings;
    } else if constexpr (Space::is_host_accessible) {
      const auto host = host_side(of.exec());
      look(host, of.host_report());
      host.fence(label);
      refused = of.host_found();
    } else {
      const report_writer report = of.report();
      look(of.exec(), report);
      execution_backend<Exec>::fence(of.exec(), label);
      refused = report_pool<execution_backend<Exec>>::read(report).nonfinite != 0;
    }
  }
};

}  // namespace ferry::detail
