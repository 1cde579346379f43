// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/message_transport.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

/// Processes of one machine, each connected to each by a local stream socket. The end of a process closes its
/// sockets, so the others notice at once.
class socket_transport final : public message_transport {
 public:
  /// Connects the ranks that pass the same key, of the same user, within the deadline.
  socket_transport(int rank, int size, const std::string& key, std::chrono::nanoseconds deadline);
  ~socket_transport() override;

  [[nodiscard]] std::string_view name() const override { return "sockets"; }
  [[nodiscard]] bool passes_descriptors() const override { return true; }

 protected:
  std::string swap_headers(const call_header& header, std::vector<call_header>& headers,
                           clock::time_point until) override;
  void send_last(const call_header& last, clock::time_point until) override;
  bool move_parts(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                  clock::time_point until) override;
  int move_descriptor(int owner, int descriptor, clock::time_point until) override;

 private:
  void connect_all(const std::string& key, clock::time_point until);
  [[nodiscard]] int to_rank(const std::string& key, int rank, clock::time_point until);
  void close_all() noexcept;
  /// Sends and receives what is left of the parts, which are moved on; false if the time is over before.
  /// `lost` becomes a rank that no longer receives.
  bool pump(std::vector<outgoing_part>& outgoing, std::vector<incoming_part>& incoming,
            clock::time_point until, int& lost);

  const bool watches_;      ///< each rank may have a processor
  std::vector<int> peers_;  ///< descriptor by rank, -1 for this one
};

}  // namespace ferry::detail
