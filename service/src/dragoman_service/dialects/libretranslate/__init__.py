"""LibreTranslate's API.

Source: https://github.com/LibreTranslate/LibreTranslate, version 1.9.6, behaviour only.
"""
