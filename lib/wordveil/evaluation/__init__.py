"""What mechanisms are measured against: published ways of doing things that no release may choose."""
