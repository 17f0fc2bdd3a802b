"""Whether speculation pays, and at which K: a cost model over measured inputs."""
