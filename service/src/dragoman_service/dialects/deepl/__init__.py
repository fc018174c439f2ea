"""DeepL's API v2, with its glossaries of v2 and v3, as its clients know it.

Source: https://github.com/DeepLcom/openapi
"""
