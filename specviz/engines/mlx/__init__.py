"""Models on MLX: Metal, CUDA and CPU."""
