"""Faults of files in `wordveil_releases/`, as this file's import error.

They are not raised in `wordveil_dags.py`: after an error in a file Airflow runs none of its DAGs.
"""

from wordveil_airflow import read_releases

if faults := read_releases()[1]:
    raise ValueError("\n".join(faults))
