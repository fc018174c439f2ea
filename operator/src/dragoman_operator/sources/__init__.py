"""Where the autoscaler's figures come from: the pods themselves, a Prometheus, and the routers."""

from dragoman_operator.sources.heard import Heard
from dragoman_operator.sources.pods import PodMetrics, PodPages
from dragoman_operator.sources.prometheus import Prometheus
from dragoman_operator.sources.routers import Routers

__all__ = ["Heard", "PodMetrics", "PodPages", "Prometheus", "Routers"]
