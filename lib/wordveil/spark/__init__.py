"""The only room that imports Spark. It is internal: code imports from :mod:`wordveil`."""
