"""The prompt the model is trained on: one ChatML turn that asks for a translation."""

LANGUAGE_NAMES = {"en": "English", "fr": "French", "de": "German", "ne": "Nepali"}

START, END, PADDING = "<|im_start|>", "<|im_end|>", "<|endoftext|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def user_turn(source: str, target: str, text: str) -> str:
    """What the user says; `source` and `target` are two-letter codes."""
    from_name, to_name = LANGUAGE_NAMES[source], LANGUAGE_NAMES[target]
    return f"Translate the following text from {from_name} into {to_name}.\n{from_name}: {text}\n{to_name}:"


def prompt(source: str, target: str, text: str) -> str:
    """The whole prompt, as the chat template renders it."""
    return f"{START}user\n{user_turn(source, target, text)}{END}\n{START}assistant\n"
