// Converts a checkpoint. Red on main since the header moved away; nobody's pull request is to blame for it.

#include "checkpoint/format.h"

int main() { return checkpoint::convert(); }
