import yaml

NAME = "translationdeployments.dragoman.io"


def test_chart_carries_the_generated_file(chart, root):
    """`make crd` writes both; helm packs no file from outside a chart's own folder."""
    generated = (root / f"crds/{NAME}.yaml").read_text()
    assert (chart / f"files/{NAME}.yaml").read_text() == generated


def test_rendering_adds_metadata_and_changes_nothing_else(render, root):
    generated = yaml.safe_load((root / f"crds/{NAME}.yaml").read_text())
    rendered = render().one("CustomResourceDefinition")
    assert rendered["metadata"]["name"] == NAME
    assert rendered["spec"] == generated["spec"]


def test_helm_upgrades_the_crd_and_uninstall_leaves_it(render, chart):
    assert not (chart / "crds").exists(), "Helm installs what lies there once and never upgrades it"
    assert render().one("CustomResourceDefinition")["metadata"]["annotations"] == {
        "helm.sh/resource-policy": "keep"
    }


def test_crd_is_deleted_with_the_release_only_if_configured(render):
    unprotected = render(crds={"keep": False}).one("CustomResourceDefinition")
    assert "helm.sh/resource-policy" not in unprotected["metadata"]["annotations"]


def test_crd_can_be_left_to_someone_else(render):
    assert "CustomResourceDefinition" not in render(crds={"install": False}).kinds
