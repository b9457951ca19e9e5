"""Lane images: build, seed a base without a registry, digest."""
