// The parts of the stand-in HIP runtime and what each offers the others. One lock guards all of them.

#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../kernel/wave.h"

// Last: it defines macros (__noinline__) that the standard library uses as names.
#include <hip/hip_runtime_api.h>

namespace greenlane {

// Settings, read once from GREENLANE_EMULATOR_*.
struct Settings {
  enum class Order { kForward, kReverse, kRandom };
  std::string arch, cache, python, root, symbolizer, outcome, translator;
  bool sanitize = false;
  bool deferred = false;  // stream operations run as late as they may
  Order order = Order::kForward;
  uint64_t seed = 1;
  uint64_t step_limit = 0;
  unsigned threads = 1;
};
const Settings& settings();

// The architecture as the device's properties show it.
struct Architecture {
  std::string_view name, market_name;
  int lanes, multiprocessors, major, minor, registers_per_block;
};
const Architecture& architecture();

using Lock = std::lock_guard<std::recursive_mutex>;
std::recursive_mutex& runtime_mutex();

// Errors

hipError_t note(hipError_t status);  // remembers a failure for hipGetLastError, per thread
void say(const std::string& line);   // one line on standard error
[[noreturn]] void die(const std::string& line, int code);

// Memory

enum class Home { kDevice, kHost, kManaged, kRegistered, kCode };
struct Allocation {
  uint64_t begin, size;
  Home home;
  unsigned flags;
};
const Allocation* find_allocation(const void* pointer);
Allocation add_allocation(void* pointer, size_t size, Home home, unsigned flags = 0);
bool remove_allocation(const void* pointer);
std::string describe_address(uint64_t address);
bool copies_to_pageable_host(const void* pointer);

// Streams: a queue of operations that usually run when they are submitted.

using Operation = std::function<hipError_t()>;

struct Graph;
struct Node;

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  std::deque<Operation> waiting;
  uint64_t submitted = 0, completed = 0;
  Graph* capture = nullptr;
  bool capture_origin = false;
  hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;
};
Stream* stream_of(hipStream_t handle);  // null for a handle that is no stream
hipError_t submit(Stream* stream, Operation operation);
hipError_t drain(Stream* stream, uint64_t until = ~0ull);
hipError_t drain_all();
bool any_capture();

// Graphs: operations in the order in which they were captured or added.

struct Graph {
  std::vector<std::shared_ptr<Node>> nodes;
};
struct Node {
  hipGraphNodeType type;
  Operation run;
  std::shared_ptr<hipKernelNodeParams> kernel;
  Graph* child = nullptr;
  bool enabled = true;
};
hipError_t add_captured(Graph* graph, Operation operation);

// Code

struct Image {         // a loaded code object
  std::string folder;  // of the cache
  std::vector<uint8_t> file;
  uint8_t* base = nullptr;
  size_t size = 0;
  struct Symbol {
    uint64_t address, size;
  };
  std::unordered_map<std::string, Symbol> symbols;
};

struct Function {
  std::string symbol;
  std::shared_ptr<Image> image;
  const Kernel* kernel = nullptr;  // null until first asked for
  uint64_t launches = 0, workgroups = 0, waves = 0, instructions = 0;
};

std::shared_ptr<Image> load_image(const void* blob, size_t known_size);  // throws std::runtime_error
const Kernel& compiled(Function& function);                              // translates when the cache has none
std::vector<Function*>& all_functions();
Function* function_for(const std::shared_ptr<Image>& image, const std::string& symbol);

// Launches

struct Launch {
  Function* function;
  dim3 grid, block;  // workgroups, work-items of one
  uint32_t dynamic_lds;
  std::vector<uint8_t> kernarg;
  bool cooperative = false;
};
hipError_t check_launch(Function& function, dim3 grid, dim3 block, size_t dynamic_lds);
std::vector<uint8_t> pack_arguments(Function& function, void** arguments);
hipError_t run(Launch& launch);
hipError_t launch(Function* function, dim3 grid, dim3 block, std::vector<uint8_t> kernarg, size_t lds, Stream* stream,
                  bool cooperative);

// An address for a service of the host that is lacking, and the end of a program that touches one.
uint64_t missing_service(uint32_t kind);
void refuse_missing_service(const Function& function, uint64_t address);

// Findings and counts

struct Place {
  const Launch* launch = nullptr;
  const Wave* wave = nullptr;
};
extern thread_local Place current_place;
void report(Wave* wave, Finding finding, Access access, uint32_t pc, int lane, uint64_t address, uint32_t bytes,
            uint32_t other);
std::string source_line(const Image& image, uint32_t pc);
std::string demangled(const std::string& symbol);
void write_outcome();

}  // namespace greenlane
