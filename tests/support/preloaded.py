"""What the fork server of `servers.py` imports before it forks pods and routers."""

import dragoman.__main__
import dragoman_router.__main__
import dragoman_router.dialects.names
import dragoman_service.__main__
from dragoman_protocols.detection import detect

detect("The detection model is loaded once, in this process.")
dragoman_router.dialects.names.load()

__all__ = ["dragoman", "dragoman_router", "dragoman_service"]
