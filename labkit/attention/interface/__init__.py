"""Attention of users' arrays, called directly or as plans."""
