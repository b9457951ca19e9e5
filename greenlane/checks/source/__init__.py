"""What the rules share: text, directives, presence conditions, slices, the include graph and the index of a project."""
