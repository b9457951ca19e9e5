// Prints the backends of this build, one a line, with the devices that each finds.
#include <cstdio>

#include "vt/backend.h"

int main() {
  for (const vt::Backend* backend : vt::backends()) {
    std::printf("%.*s %d\n", static_cast<int>(backend->name.size()), backend->name.data(),
                backend->platform.device_count());
  }
}
