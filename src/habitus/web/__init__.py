"""The web console: cameras in, a short list of what was unusual out, in a browser.

`server` puts the parts together; `database` is what they share; `store` is the one place that
writes events; `supervisor` runs the cameras' processes; `app` and its routers are the web.
"""

from importlib.util import find_spec

from habitus.errors import MissingPackageError

_PACKAGES = (
    "aiomqtt",
    "alembic",
    "apprise",
    "argon2",
    "cryptography",
    "fastapi",
    "prometheus_client",
    "python_multipart",
    "sqlalchemy",
    "uvicorn",
)

for _name in _PACKAGES:
    if find_spec(_name) is None:
        raise MissingPackageError(f"the console needs {_name}: pip install 'habitus[console]'")
