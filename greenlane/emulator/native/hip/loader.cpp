// Loads code objects: finds or makes their folder in the cache, maps their segments, compiles their kernels when first
// launched.

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "runtime.h"

extern char** environ;

namespace greenlane {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlainBundle = "__CLANG_OFFLOAD_BUNDLE__";

template <class T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// How long a blob in memory is: a bundle's table of contents, a compressed bundle's header or an ELF's section table
// says.
size_t blob_size(const uint8_t* blob) {
  if (std::memcmp(blob, kPlainBundle.data(), kPlainBundle.size()) == 0) {
    const uint64_t count = read<uint64_t>(blob + 24);
    size_t end = 32;
    const uint8_t* at = blob + 32;
    for (uint64_t i = 0; i < count; i++) {
      end = std::max<size_t>(end, read<uint64_t>(at) + read<uint64_t>(at + 8));
      at += 24 + read<uint64_t>(at + 16);
    }
    return std::max<size_t>(end, at - blob);
  }
  if (std::memcmp(blob, "CCOB", 4) == 0) {
    const uint16_t version = read<uint16_t>(blob + 4);
    if (version == 2) return read<uint32_t>(blob + 8);
    if (version == 3) return read<uint64_t>(blob + 8);
    throw std::runtime_error("compressed fat binary of version " + std::to_string(version) +
                             ", which doesn't say how long it is");
  }
  if (std::memcmp(blob, ELFMAG, SELFMAG) == 0) {
    const auto header = read<Elf64_Ehdr>(blob);
    return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  }
  throw std::runtime_error("neither a fat binary nor a code object");
}

std::string digest(const uint8_t* data, size_t size) {
  uint64_t a = 0x9e3779b97f4a7c15, b = size * 0xff51afd7ed558ccd + 1;
  const auto mix = [&](uint64_t word) {
    a = (a ^ word) * 0x9fb21c651e98df25;
    a ^= a >> 29;
    b = (b + word) * 0xd6e8feb86659fd93;
    b ^= b >> 32;
  };
  size_t at = 0;
  for (; at + 8 <= size; at += 8) mix(read<uint64_t>(data + at));
  uint64_t tail = 0;
  std::memcpy(&tail, data + at, size - at);
  mix(tail);
  char text[33];
  std::snprintf(text, sizeof text, "%016lx%016lx", a, b);
  return text;
}

std::vector<uint8_t> file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_whole(const fs::path& path, const void* data, size_t size) {
  const fs::path temporary = path.string() + "." + std::to_string(getpid());
  std::ofstream(temporary, std::ios::binary).write((const char*)data, size);
  fs::rename(temporary, path);
}

// The child gets the environment without what makes programs load this library.
std::vector<std::string> child_environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry; entry++) {
    const std::string_view text = *entry;
    if (!text.starts_with("LD_PRELOAD=") && !text.starts_with("LD_LIBRARY_PATH=") && !text.starts_with("PYTHON"))
      kept.emplace_back(text);
  }
  kept.push_back("PYTHONPATH=" + settings().root);
  kept.push_back("PYTHONDONTWRITEBYTECODE=1");
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

// Runs a program and gives its exit status and, when asked, what it printed.
int run_program(std::vector<std::string> command, std::string* output) {
  int pipe_ends[2] = {-1, -1};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output) {
    if (pipe2(pipe_ends, O_CLOEXEC)) return -1;
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  } else {
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
  }
  std::vector<std::string> environment = child_environment();
  pid_t child;
  const int failed = posix_spawnp(&child, command[0].c_str(), &actions, nullptr, pointers(command).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (output) {
    close(pipe_ends[1]);
    char buffer[4096];
    for (ssize_t got; !failed && (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;) output->append(buffer, got);
    close(pipe_ends[0]);
  }
  if (failed) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

// An empty kernel name only takes the code object out of the blob.
void translate(const std::string& folder, const std::string& kernel) {
  std::vector<std::string> command = {
      settings().python, "-m", "greenlane.emulator.translate", "--folder", folder, "--arch", settings().arch};
  if (!kernel.empty()) command.insert(command.end(), {"--kernel", kernel});
  if (settings().sanitize) command.push_back("--sanitize");
  const int status = run_program(command, nullptr);
  if (status == -1) die("can't start the translator with " + settings().python, 3);
  if (status != 0 && !kernel.empty()) die("kernel " + demangled(kernel) + " could not be translated (see above)", 3);
  if (status != 0) throw std::runtime_error("the translator failed with exit code " + std::to_string(status));
}

void map_segments(Image& image) {
  const auto header = read<Elf64_Ehdr>(image.file.data());
  std::vector<Elf64_Phdr> segments;
  for (int i = 0; i < header.e_phnum; i++)
    segments.push_back(read<Elf64_Phdr>(image.file.data() + header.e_phoff + i * sizeof(Elf64_Phdr)));
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD) image.size = std::max(image.size, segment.p_vaddr + segment.p_memsz);
  image.base = (uint8_t*)mmap(nullptr, image.size + kSlack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image.base == MAP_FAILED) throw std::runtime_error("no memory for the code object");
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD)
      std::memcpy(image.base + segment.p_vaddr, image.file.data() + segment.p_offset, segment.p_filesz);
  add_allocation(image.base, image.size, Home::kCode);
}

void read_symbols(Image& image, const Elf64_Shdr& table, const Elf64_Shdr& strings) {
  for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = read<Elf64_Sym>(image.file.data() + table.sh_offset + at);
    if (symbol.st_shndx == SHN_UNDEF) continue;
    image.symbols[(const char*)image.file.data() + strings.sh_offset + symbol.st_name] = {symbol.st_value,
                                                                                          symbol.st_size};
  }
}

void relocate(Image& image, const Elf64_Shdr& table, const Elf64_Shdr& symbols) {
  constexpr uint32_t kAbs64 = 3, kRelative64 = 13;
  for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Rela)) {
    const auto entry = read<Elf64_Rela>(image.file.data() + table.sh_offset + at);
    uint64_t value = (uint64_t)image.base + entry.r_addend;
    const uint32_t type = ELF64_R_TYPE(entry.r_info);
    if (type == kAbs64)
      value += read<Elf64_Sym>(image.file.data() + symbols.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym))
                   .st_value;
    else if (type != kRelative64)
      throw std::runtime_error("relocation type " + std::to_string(type) + " in the code object");
    std::memcpy(image.base + entry.r_offset, &value, sizeof value);
  }
}

void link(Image& image) {
  const auto header = read<Elf64_Ehdr>(image.file.data());
  std::vector<Elf64_Shdr> sections;
  for (int i = 0; i < header.e_shnum; i++)
    sections.push_back(read<Elf64_Shdr>(image.file.data() + header.e_shoff + i * sizeof(Elf64_Shdr)));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNSYM) read_symbols(image, section, sections[section.sh_link]);
    if (section.sh_type == SHT_RELA && section.sh_flags & SHF_ALLOC)
      relocate(image, section, sections[section.sh_link]);
  }
}

uint64_t name_hash(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

}  // namespace

std::shared_ptr<Image> load_image(const void* blob, size_t known_size) {
  const auto* bytes = (const uint8_t*)blob;
  const size_t size = known_size ? known_size : blob_size(bytes);
  auto image = std::make_shared<Image>();
  image->folder = settings().cache + "/code/" + digest(bytes, size) + "-" + settings().arch;
  const fs::path code = fs::path(image->folder) / "code_object";
  if (!fs::exists(code)) {
    fs::create_directories(image->folder);
    write_whole(fs::path(image->folder) / "blob", bytes, size);
    translate(image->folder, "");
  }
  image->file = file_bytes(code);
  map_segments(*image);
  link(*image);
  return image;
}

const Kernel& compiled(Function& function) {
  if (function.kernel) return *function.kernel;
  char name[64];
  std::snprintf(name, sizeof name, "%016lx%s", name_hash(function.symbol), settings().sanitize ? "-sanitize" : "");
  const fs::path base = fs::path(function.image->folder) / name, library = base.string() + ".so",
                 problem = base.string() + ".error";
  if (!fs::exists(library) && !fs::exists(problem)) translate(function.image->folder, function.symbol);
  if (fs::exists(problem)) {
    const std::vector<uint8_t> text = file_bytes(problem);
    die("kernel " + demangled(function.symbol) + ": " + std::string(text.begin(), text.end()), 3);
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  function.kernel = (const Kernel*)dlsym(handle, "greenlane_kernel");
  if (!function.kernel || function.kernel->abi != kKernelAbi)
    throw std::runtime_error(library.string() + " was made by another version");
  return *function.kernel;
}

std::vector<Function*>& all_functions() {
  static auto& functions = *new std::vector<Function*>;
  return functions;
}

Function* function_for(const std::shared_ptr<Image>& image, const std::string& symbol) {
  if (!image->symbols.contains(symbol + ".kd")) return nullptr;
  for (Function* known : all_functions())
    if (known->image == image && known->symbol == symbol) return known;
  auto* function = new Function{symbol, image};
  all_functions().push_back(function);
  return function;
}

}  // namespace greenlane
