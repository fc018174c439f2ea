"""`examples/demo.yaml`: the pod that the demo's burst adds is removed, on machines of any speed."""

from pathlib import Path

import pytest
import yaml
from tests.support.decisions import make_clock

from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.inputs import policy_of

EXAMPLE = Path(__file__).parents[4] / "examples/demo.yaml"


@pytest.mark.parametrize("service_s", [0.1, 0.3, 1.0, 3.0, 10.0])
def test_the_pod_of_a_burst_is_removed_within_two_minutes(service_s):
    clock = make_clock(1)
    clock.policy = policy_of(
        TranslationDeploymentSpec.model_validate(yaml.safe_load(EXAMPLE.read_text())["spec"]), tick_s=5.0
    )
    running = clock.policy.max_num_seqs
    burst = {"running": running, "waiting": 8 * running, "finished_per_s": running / service_s}
    clock.tick(2, running=4, finished_per_s=0, time_to_ready_s=13.0)
    clock.tick(2, **burst, time_to_ready_s=13.0)
    assert clock.replicas == 2
    clock.tick(120 // 5, running=4, finished_per_s=4 / service_s, time_to_ready_s=13.0)
    assert Rule.SCALE_DOWN in {decision.rule for decision in clock.decisions}
