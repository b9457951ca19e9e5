// Settings from the environment, the table of architectures, and the errors of the runtime.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "runtime.h"

namespace greenlane {
namespace {

std::string variable(const char* name, const char* fallback = "") {
  const char* value = std::getenv((std::string("GREENLANE_EMULATOR_") + name).c_str());
  return value && *value ? value : fallback;
}

Settings read_settings() {
  Settings s;
  s.arch = variable("ARCH", "gfx1100");
  s.cache = variable("CACHE");
  s.python = variable("PYTHON", "python3");
  s.root = variable("ROOT");
  s.symbolizer = variable("SYMBOLIZER");
  s.outcome = variable("OUTCOME");
  s.translator = variable("TRANSLATOR");
  s.sanitize = variable("SANITIZE") == "1";
  s.deferred = variable("DEFERRED") == "1";
  const std::string order = variable("ORDER", "forward");
  if (order == "reverse") s.order = Settings::Order::kReverse;
  if (order.starts_with("random")) s.order = Settings::Order::kRandom;
  if (order.starts_with("random:")) s.seed = std::strtoull(order.c_str() + 7, nullptr, 10);
  s.step_limit = std::strtoull(variable("STEP_LIMIT", "20000000000").c_str(), nullptr, 10);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const std::string threads = variable("THREADS");
  s.threads = threads.empty() ? cores : std::max(1, std::atoi(threads.c_str()));
  if (s.cache.empty())
    die("GREENLANE_EMULATOR_CACHE is not set: start the program with `greenlane emulate -- PROGRAM`", 3);
  return s;
}

constexpr Architecture kArchitectures[] = {
    {"gfx1100", "emulated gfx1100 (RDNA3)", 32, 48, 11, 0, 196608},
    {"gfx1101", "emulated gfx1101 (RDNA3)", 32, 30, 11, 0, 196608},
    {"gfx1102", "emulated gfx1102 (RDNA3)", 32, 16, 11, 0, 131072},
    {"gfx1150", "emulated gfx1150 (RDNA3.5)", 32, 8, 11, 5, 131072},
    {"gfx1151", "emulated gfx1151 (RDNA3.5)", 32, 20, 11, 5, 196608},
    {"gfx1200", "emulated gfx1200 (RDNA4)", 32, 16, 12, 0, 196608},
    {"gfx1201", "emulated gfx1201 (RDNA4)", 32, 32, 12, 0, 196608},
    {"gfx90a", "emulated gfx90a (CDNA2)", 64, 104, 9, 0, 65536},
    {"gfx942", "emulated gfx942 (CDNA3)", 64, 304, 9, 4, 65536},
};

}  // namespace

const Settings& settings() {
  static const Settings& read = *new Settings(read_settings());  // read once more when the program ends
  return read;
}

const Architecture& architecture() {
  for (const Architecture& known : kArchitectures)
    if (known.name == settings().arch) return known;
  die("architecture " + settings().arch +
          " can't be emulated (known: gfx1100-1102, gfx1150-1151, gfx1200-1201, gfx90a, gfx942)",
      2);
}

std::recursive_mutex& runtime_mutex() {
  static std::recursive_mutex& mutex = *new std::recursive_mutex;
  return mutex;
}

thread_local hipError_t last_error = hipSuccess;

hipError_t note(hipError_t status) {
  if (status != hipSuccess && status != hipErrorNotReady) last_error = status;
  return status;
}

void say(const std::string& line) {
  std::fprintf(stderr, "greenlane emulate: %s\n", line.c_str());
}

void die(const std::string& line, int code) {
  say(line);
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace greenlane

using namespace greenlane;

extern "C" {

// Functions of the vendor's library that this one lacks end here; each says so once.
int greenlane_missing(const char* name) {
  static std::set<std::string>& said = *new std::set<std::string>;
  Lock lock(runtime_mutex());
  if (said.insert(name).second)
    say(std::string(name) + " is not part of the emulated runtime; it returns hipErrorNotSupported");
  return note(hipErrorNotSupported);
}

hipError_t hipGetLastError() {
  return std::exchange(last_error, hipSuccess);
}
hipError_t hipPeekAtLastError() {
  return last_error;
}
hipError_t hipExtGetLastError() {
  return std::exchange(last_error, hipSuccess);
}

struct ErrorText {
  hipError_t code;
  const char *name, *text;
};

static constexpr ErrorText kErrorTexts[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid device symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid device context"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "capture was not initiated in this stream"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

static const ErrorText& error_text(hipError_t code) {
  for (const ErrorText& known : kErrorTexts)
    if (known.code == code) return known;
  static constexpr ErrorText unknown{hipErrorUnknown, "hipErrorUnknown", "unknown error"};
  return unknown;
}

const char* hipGetErrorName(hipError_t code) {
  return error_text(code).name;
}
const char* hipGetErrorString(hipError_t code) {
  return error_text(code).text;
}
hipError_t hipDrvGetErrorName(hipError_t code, const char** text) {
  return *text = error_text(code).name, hipSuccess;
}
hipError_t hipDrvGetErrorString(hipError_t code, const char** text) {
  return *text = error_text(code).text, hipSuccess;
}

}  // extern "C"
