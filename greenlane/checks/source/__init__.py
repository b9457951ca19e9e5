"""What the rules share: slicer, index, include graph, presence conditions."""
