"""How tests check the annotations of labkit: by beartype, to which an int is a float too (PEP 484)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
