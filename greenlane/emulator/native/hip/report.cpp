// Findings of the sanitizer, and what ran: printed as they come, written as JSON when the program ends.

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "runtime.h"

namespace greenlane {

int run_program(std::vector<std::string> command, std::string* output);

namespace {

struct Noted {
  std::string kernel, symbol, kind, source, message;
  bool error;
  uint32_t pc;
  uint64_t times;
};

struct Notes {
  std::mutex mutex;
  std::map<std::tuple<const Function*, uint32_t, Finding>, Noted> all;
  std::set<std::tuple<const Function*, std::string, Finding>> said;  // one line for each line of source
};
Notes& notes() {
  static Notes& notes = *new Notes;
  return notes;
}

const char* kind_of(Finding finding) {
  switch (finding) {
    case Finding::kGlobalBounds:
      return "out-of-bounds";
    case Finding::kLdsBounds:
      return "lds-out-of-bounds";
    case Finding::kScratchBounds:
      return "stack-out-of-bounds";
    case Finding::kLdsUninitialised:
      return "uninitialised-lds";
    case Finding::kLdsRace:
      return "race";
    case Finding::kMisaligned:
      return "misaligned";
    case Finding::kLaneOutOfRange:
      return "lane-out-of-range";
    case Finding::kStepLimit:
      return "step-limit";
    case Finding::kTrap:
      return "trap";
    case Finding::kNullCode:
      return "bad-jump";
  }
  return "unknown";
}

const char* verb(Access access) {
  return access == Access::kLoad ? "load" : access == Access::kStore ? "store" : "atomic";
}

struct Detail {
  Finding finding;
  Access access;
  uint64_t address;
  uint32_t bytes, other;
};

std::string what(const Wave& wave, const Detail& d, int lanes) {
  const std::string access = std::string(verb(d.access)) + " of " + std::to_string(d.bytes) + " bytes";
  const std::string at = "LDS byte " + std::to_string(d.address);
  switch (d.finding) {
    case Finding::kGlobalBounds:
      return "out-of-bounds " + access + ", " + describe_address(d.address);
    case Finding::kLdsBounds:
      return "out-of-bounds " + access + " at " + at + " of " + std::to_string(wave.lds_bytes);
    case Finding::kScratchBounds:
      return "out-of-bounds " + access + " at byte " + std::to_string(d.address) + " of a stack of " +
             std::to_string(wave.scratch_bytes);
    case Finding::kLdsUninitialised:
      return std::string(verb(d.access)) + " of uninitialised shared memory at " + at;
    case Finding::kLdsRace:
      return "race: " + std::string(verb(d.access)) + " at " + at + " by wave " + std::to_string(wave.index) +
             " and an access by wave " + std::to_string(d.other) + " with no barrier between them";
    case Finding::kMisaligned:
      return std::string("misaligned ") + verb(d.access) + ": the address is no multiple of " + std::to_string(d.bytes);
    case Finding::kLaneOutOfRange:
      return "cross-lane read of lane " + std::to_string(d.address) + " in a wave of " + std::to_string(lanes) +
             " (is a warp size assumed?)";
    case Finding::kStepLimit:
      return "the step limit of " + std::to_string(settings().step_limit) +
             " instructions was reached: the kernel may never end";
    case Finding::kTrap:
      return "the kernel trapped (a failed assertion or __builtin_trap)";
    case Finding::kNullCode:
      return "jump to an address that holds no function";
  }
  return "unknown";
}

std::string thread_of(const Wave& wave, int lane, int lanes) {
  const uint32_t thread = wave.index * lanes + std::max(lane, 0);
  std::ostringstream out;
  out << "block (" << wave.group[0] << "," << wave.group[1] << "," << wave.group[2] << ")";
  if (lane >= 0)
    out << " thread (" << thread % wave.group_size[0] << "," << thread / wave.group_size[0] % wave.group_size[1] << ","
        << thread / wave.group_size[0] / wave.group_size[1] << ")";
  return out.str();
}

// Unaligned plain accesses to global memory work on this hardware; they are worth knowing, not wrong.
bool is_error(const Detail& d) {
  return d.finding != Finding::kMisaligned || d.access == Access::kAtomic || d.address >= kSharedAperture;
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      out << '\\' << c;
    else if (c < 0x20)
      out << "\\u00" << "0123456789abcdef"[c >> 4] << "0123456789abcdef"[c & 15];
    else
      out << c;
  }
  out << '"';
  return out.str();
}

// `a::b<int>::name(...)` is `name`.
std::string bare(const std::string& demangled_name) {
  std::string text = demangled_name;
  for (size_t at; (at = text.find("(anonymous namespace)")) != std::string::npos;) text.erase(at, 21);
  int depth = 0;
  std::string flat;
  for (char c : text) {
    if (c == '<') depth++;
    if (c == '(' && depth == 0) break;
    if (depth == 0) flat += c;
    if (c == '>') depth--;
  }
  const size_t colon = flat.rfind(':'), space = flat.rfind(' ');
  const size_t start = std::max(colon == std::string::npos ? 0 : colon + 1, space == std::string::npos ? 0 : space + 1);
  return flat.substr(start);
}

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream out(temporary);
  out << text;
  out.close();
  std::error_code failed;
  std::filesystem::rename(temporary, path, failed);
  if (!out || failed) say("can't write " + path);
}

std::string counts_json() {
  std::map<std::string, uint64_t> launches, opcodes;
  std::ostringstream kernels;
  const char* separator = "";
  for (const Function* f : all_functions()) {
    if (!f->launches) continue;
    const std::string name = demangled(f->symbol);
    launches[bare(name)] += f->launches;
    kernels << separator << "\n    {\"name\": " << quoted(name) << ", \"symbol\": " << quoted(f->symbol)
            << ", \"launches\": " << f->launches << ", \"workgroups\": " << f->workgroups << ", \"waves\": " << f->waves
            << ", \"instructions\": " << f->instructions << "}";
    separator = ",";
    std::istringstream lines(f->kernel->opcodes);
    std::string opcode;
    for (uint64_t count; lines >> opcode >> count;) opcodes[opcode] += count;
  }
  std::ostringstream out;
  out << "{\"schema\": 1, \"arch\": " << quoted(settings().arch)
      << ", \"translator\": " << quoted(settings().translator)
      << ", \"sanitized\": " << (settings().sanitize ? "true" : "false") << ",\n  \"kernel_launches\": {";
  separator = "";
  for (const auto& [name, count] : launches) out << std::exchange(separator, ", ") << quoted(name) << ": " << count;
  out << "},\n  \"kernels\": [" << kernels.str() << "],\n  \"opcodes\": {";
  separator = "";
  for (const auto& [name, count] : opcodes) out << std::exchange(separator, ", ") << quoted(name) << ": " << count;
  out << "}}\n";
  return out.str();
}

std::string findings_json() {
  std::ostringstream out;
  out << "{\"schema\": 1, \"findings\": [";
  const char* separator = "";
  for (const auto& [key, n] : notes().all) {
    out << separator << "\n  {\"kind\": " << quoted(n.kind) << ", \"severity\": \"" << (n.error ? "error" : "warning")
        << "\", \"kernel\": " << quoted(n.kernel) << ", \"symbol\": " << quoted(n.symbol)
        << ", \"source\": " << quoted(n.source) << ", \"pc\": " << n.pc << ", \"times\": " << n.times
        << ", \"message\": " << quoted(n.message) << "}";
    separator = ",";
  }
  out << "]}\n";
  return out.str();
}

struct AtExit {
  ~AtExit() { write_outcome(); }
} at_exit;

}  // namespace

std::string demangled(const std::string& symbol) {
  int status;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string result = text ? text : symbol;
  std::free(text);
  return result;
}

// The line of the program's own source: frames of inlined functions in the toolchain's headers are passed over.
std::string source_line(const Image& image, uint32_t pc) {
  char address[32];
  std::snprintf(address, sizeof address, "0x%x", pc);
  std::string output;
  if (settings().symbolizer.empty() || run_program({settings().symbolizer, "--obj=" + image.folder + "/code_object",
                                                    "--inlines", "--functions=none", address},
                                                   &output) != 0)
    return {};
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("??")) continue;
    line = line.substr(0, line.rfind(':'));  // without the column
    if (first.empty()) first = line;
    if (!line.starts_with("/usr/") && !line.starts_with("/opt/rocm") && !line.ends_with(":0")) return line;
  }
  return first;
}

void report(Wave* wave, Finding finding, Access access, uint32_t pc, int lane, uint64_t address, uint32_t bytes,
            uint32_t other) {
  const Launch& launch = *current_place.launch;
  const Function& function = *launch.function;
  refuse_missing_service(function, address);
  std::lock_guard lock(notes().mutex);
  auto [entry, fresh] = notes().all.try_emplace({&function, pc, finding});
  entry->second.times++;
  if (!fresh) return;
  Noted& n = entry->second;
  const Detail detail{finding, access, address, bytes, other};
  const int lanes = function.kernel->lanes;
  n.kernel = demangled(function.symbol);
  n.symbol = function.symbol;
  n.kind = kind_of(finding);
  n.pc = pc;
  n.error = is_error(detail);
  n.source = source_line(*function.image, pc);
  n.message = what(*wave, detail, lanes) + "; " + thread_of(*wave, lane, lanes);
  char offset[32];
  std::snprintf(offset, sizeof offset, "offset 0x%x", pc);
  const std::string where =
      n.source.empty() ? std::string(offset) + " (no line table: compile with -gline-tables-only)" : n.source;
  if (!n.source.empty() && !notes().said.insert({&function, n.source, finding}).second) return;
  say(std::string(n.error ? "" : "note: ") + "kernel " + n.kernel + " at " + where + ": " + n.message);
}

void write_outcome() {
  const bool launched =
      std::any_of(all_functions().begin(), all_functions().end(), [](const Function* f) { return f->launches > 0; });
  if (settings().outcome.empty()) return;
  const std::string id = "-" + std::to_string(getpid()) + ".json";
  if (launched) write_file(settings().outcome + "/counts" + id, counts_json());
  if (!notes().all.empty()) write_file(settings().outcome + "/findings" + id, findings_json());
}

}  // namespace greenlane
