"""The only room that knows Spark. It is internal: code imports from :mod:`wordveil`."""
