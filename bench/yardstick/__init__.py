"""What bench/run is made of: see bench/README.md."""
