// SPDX-License-Identifier: Apache-2.0
// ferry::distributed as one source, for builds without CMake, next to ferry.cpp and ferry_io.cpp: ranks.
#if !defined(FERRY_DISPATCH_AVX2)
#define FERRY_DISPATCH_AVX2 1
#endif

#include "distributed/communicator/communicator.cpp"
#include "distributed/communicator/message_transport.cpp"
#include "distributed/communicator/thread_transport.cpp"
#include "distributed/communicator/transport.cpp"
#include "distributed/sharded/batches.cpp"
#include "distributed/sharded/checkpoint.cpp"
#include "distributed/sharded/sharded_table.cpp"
#include "distributed/shared/shared_memory.cpp"
