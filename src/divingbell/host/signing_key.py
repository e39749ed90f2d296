"""Keys that sign (Ed25519): a public key is text in base64, and so is a signature."""

import base64

# cryptography is imported where it is used: it takes long to load, and most never sign.


class SigningKey:
    """A key that signs, made of 32 secret bytes."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(secret)

    @property
    def public(self) -> str:
        """The public half: whoever has it can verify and not sign."""
        return base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, data: bytes) -> str:
        """Return the signature of these bytes."""
        return base64.b64encode(self._key.sign(data)).decode()


def is_public_key(text: str) -> bool:
    """Whether a text is a public key, in the one way in which it is written."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw = base64.b64decode(text, validate=True)
        Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        return False
    return base64.b64encode(raw).decode() == text


def is_signed(data: bytes, signature: str, public: str) -> bool:
    """Whether the key with this public half has signed these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        known = Ed25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
        known.verify(base64.b64decode(signature, validate=True), data)
    except (ValueError, InvalidSignature):
        return False
    return True
