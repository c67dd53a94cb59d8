"""The functions of scalars that a kernel may call, a table a family: what each is typed as, and what lanes do."""
