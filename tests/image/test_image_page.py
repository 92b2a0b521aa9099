"""The command of docs/image.md by which an image is compared prints what the page says."""

from tests.docs.blocks import BLOCKS
from tests.image.conftest import Builds
from tests.image.container import IMAGE


def test_what_is_compared_is_printed(builds: Builds, commit: tuple[str, int]) -> None:
    [command] = BLOCKS["docs/image.md: The same twice"].commands()
    for build in builds:
        printed = build.store.run(["sh", "-c", command.text.replace("IMAGE", IMAGE)])
        id_, revision = printed.split()
        assert f"sha256:{id_}" == build.id
        assert revision.removesuffix("-dirty") == commit[0]
