import yaml

NAME = "translationdeployments.dragoman.io"


def test_the_only_file_is_the_chart_s(chart, root):
    """Helm packs no file from outside a chart's own folder; `kubectl apply -f crds/` follows the link."""
    assert (root / f"crds/{NAME}.yaml").resolve() == chart.resolve() / f"files/{NAME}.yaml"
    assert not (chart / f"files/{NAME}.yaml").is_symlink()


def test_rendering_adds_metadata_and_changes_nothing_else(render, chart):
    generated = yaml.safe_load((chart / f"files/{NAME}.yaml").read_text())
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
