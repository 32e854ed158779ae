"""Import Google's client without what few commands use of it: such a module is imported when it is first read.

`import googleapiclient.discovery` takes 780 million instructions, and 400 million without these three: httplib2.auth
imports pyparsing for the challenge in a reply of status 401 (150), google.oauth2.service_account cryptography to
sign with a key file (190), and the boundary of regions asyncio (40).

Why one client, and not a thinner one for `plan`: decision 6 in docs/decisions.md.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import RLock
from types import ModuleType

_MODULES = ("httplib2.auth", "google.oauth2.service_account", "google.auth._regional_access_boundary_utils")
_IMPORTING = RLock()


class _Deferred(ModuleType):
    """Stands in `sys.modules` for a module until an attribute of it is read, by any thread."""

    def __getattr__(self, name: str) -> object:
        with _IMPORTING:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            module = import_module(self.__name__)
        return getattr(module, name)


for _name in _MODULES:
    sys.modules.setdefault(_name, _Deferred(_name))

import googleapiclient.discovery  # noqa: E402 - after the modules that stand in
import googleapiclient.discovery_cache  # noqa: E402 - as above
import googleapiclient.http  # noqa: E402 - as above
import httplib2  # noqa: E402 - as above

__all__ = ["googleapiclient", "httplib2"]
