import re

import pytest

DOCKERFILES = [
    "operator/Dockerfile",
    "service/Dockerfile",
    "service/Dockerfile.cpu",
    "router/Dockerfile",
]


@pytest.fixture(params=DOCKERFILES)
def dockerfile(request, root):
    return (root / request.param).read_text()


def test_bases_are_pinned_by_digest_and_vllm_s_by_its_version(dockerfile):
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.M))
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.M))
    bases = re.findall(r"^FROM \$\{(\w+)\}", dockerfile, re.M)
    assert bases
    assert re.findall(r"^FROM (?!\$)(\S+)", dockerfile, re.M) in ([], sorted(stages))
    for base in bases:
        pinned = r"vllm/vllm-openai:v[\d.]+" if base == "VLLM" else r"\S+:\S+@sha256:[0-9a-f]{64}"
        assert re.fullmatch(pinned, arguments[base]), base


def test_image_runs_as_the_user_that_the_pods_name(dockerfile, render):
    user = render().pod["securityContext"]["runAsUser"]
    assert re.findall(r"^USER (\S+)$", dockerfile, re.M)[-1] == f"{user}:{user}"
    assert f"useradd --uid {user} --gid dragoman " in dockerfile
    assert f"groupadd --gid {user} dragoman" in dockerfile


def test_build_proves_the_command_that_pods_run(dockerfile):
    (subcommand,) = re.findall(r'^CMD \["(\w+)"\]$', dockerfile, re.M)
    assert f'RUN ["dragoman", "{subcommand}", "--help"]' in dockerfile
    assert 'ENTRYPOINT ["dragoman"]' in dockerfile


def test_all_images_pin_the_same_python(root):
    pins = [re.findall(r"^ARG PYTHON=(\S+)$", (root / path).read_text(), re.M) for path in DOCKERFILES]
    assert pins == [pins[0]] * len(pins)
    assert len(pins[0]) == 1
