"""The fixtures of the product's tests, such as `spark`."""

pytest_plugins = ["conftest"]
