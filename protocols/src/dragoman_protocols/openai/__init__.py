"""OpenAI's chat completions and models, and Qwen-MT's translation options."""
