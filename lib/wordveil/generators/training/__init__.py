"""Training of generators. Its modules load JAX, which the extra ``er-ae`` brings; inference needs neither."""
