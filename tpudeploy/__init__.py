"""tpudeploy: a declarative deployer for vLLM on Google Cloud TPU."""
