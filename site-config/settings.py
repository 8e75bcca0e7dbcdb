"""ReFrame's configuration: all systems of this folder, one file each, validated together."""

from pathlib import Path

from netproof.site import site

site_configuration = site.gather(Path(__file__).parent)
