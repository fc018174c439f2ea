"""What fork servers import before they fork pods, routers and operators: that of `servers.py`, and the devcluster's."""

import gc

import pydantic.v1

import dragoman.__main__
import dragoman_operator.__main__
import dragoman_router.__main__
import dragoman_service.__main__
from dragoman_protocols.detection import detect
from dragoman_protocols.languages import load_names

detect("The detection model is loaded once, in this process.")
load_names()

# A pod's own collection, and the children of a fork, leave alone what is here already.
gc.collect()
gc.freeze()

__all__ = ["dragoman", "dragoman_operator", "dragoman_router", "dragoman_service", "pydantic"]
