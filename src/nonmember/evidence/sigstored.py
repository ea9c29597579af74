"""Sigstore: the statement signed with a certificate for who somebody is, and entered in a public log.

Signing and confirming ask Sigstore's servers, and so need a network: only who asks for it gets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigstore.oidc import IdentityToken
    from sigstore.sign import SigningContext

MISSING = (
    'Sigstore needs its own library, which is missing here. Install it with: pip install "nonmember[sigstore]", or '
    "leave the option away."
)
PUBLISHES = (
    "Sigstore's servers get the signed statement (names and hashes of the bundle's files, names of the audits, their "
    "verdicts, versions and machine); its public log keeps for ever that you signed something, with your identity."
)


def require_library() -> Any:
    """Raises ValueError where it is not installed."""
    try:
        import sigstore
    except ImportError as error:
        raise ValueError(MISSING) from error
    return sigstore


def signed_online(payload: bytes) -> bytes:
    """A Sigstore bundle of an in-toto statement. The identity is the machine's own (as in continuous integration), or
    asked for in the browser. Raises ValueError, with what the library says, where that is not to be had."""
    require_library()
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import IdentityToken, Issuer, detect_credential
    from sigstore.sign import SigningContext

    try:
        trust = ClientTrustConfig.production()
        token = detect_credential()
        identity = IdentityToken(token) if token else Issuer(trust.signing_config.get_oidc_url()).identity_token()
        return sign(payload, SigningContext.from_trust_config(trust), identity)
    except Exception as error:  # the library's, or of those that it asks the network by
        raise ValueError(
            f"Sigstore signed nothing: {_message(error)}. It needs a network and an identity (an OpenID provider). "
            "Omit --sigstore to sign with the key alone."
        ) from error


def sign(payload: bytes, context: SigningContext, identity: IdentityToken) -> bytes:
    """By the library's own signing of in-toto statements."""
    from sigstore.dsse import Statement

    with context.signer(identity) as signer:
        return signer.sign_dsse(Statement(payload)).to_json().encode()


def confirm(content: bytes, identity: str, issuer: str | None, verifier: Any = None) -> str | None:
    """What the library has against a Sigstore bundle: chain, log and identity; None where nothing. verifier: of the
    library; None: that of the public servers, whose roots are fetched. Raises OSError where they cannot be had."""
    try:
        require_library()
    except ValueError as error:
        raise OSError(str(error)) from error
    from sigstore.errors import Error
    from sigstore.models import Bundle
    from sigstore.verify import Verifier
    from sigstore.verify.policy import Identity

    if verifier is None:
        try:
            verifier = Verifier.production()
        except Exception as error:  # the library's, or of those that it asks the network by
            raise OSError(f"its roots of trust cannot be fetched: {_message(error)}") from error
    try:
        verifier.verify_dsse(Bundle.from_json(content), Identity(identity=identity, issuer=issuer))
    except (Error, ValueError) as error:
        return _message(error)
    return None


def _message(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
