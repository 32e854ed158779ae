"""A folder of a Cloud Storage bucket."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class BucketFolder:
    """`gs://name/prefix`. `prefix` is "", or ends with a slash."""

    name: str
    prefix: str

    @classmethod
    def parse(cls, url: str) -> BucketFolder:
        """Return the folder of a URL that the schema has validated."""
        name, _, path = url.removeprefix("gs://").partition("/")
        path = path.strip("/")
        return cls(name=name, prefix=f"{path}/" if path else "")
