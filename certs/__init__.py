"""Certificates for the webhook's own listener: a small authority and the pair it signs.

The only importer of `cryptography`. It makes certificates; serving and reloading them is `app.tls`, which needs no
more than `ssl`.
"""
