"""The article of a campaign as a page."""


def page(title: str, text: str) -> str:
    return f"<pre>{title}{text}</pre>"
