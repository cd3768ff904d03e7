"""Tests of what runs on a device, on a pretended one and, where there is one, on CUDA."""
