"""State that routers share through Redis or Valkey; each keeps its own where there is none."""
