"""What only a GPU needs: recorded sequences of kernels."""
